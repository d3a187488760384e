"""Open sessions: one row per session, so that an administrator can end the session."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from console.accounts.models import SignIn

SESSIONS_PER_USER_MAX = 50
BROWSER_CHARS_MAX = 200


@receiver(user_logged_in, dispatch_uid="gantry-session")
def note_sign_in(request: HttpRequest, user: Any, **_: Any) -> None:
    SignIn.objects.filter(expires_at__lt=timezone.now()).delete()
    note_session(request, user)
    end(SignIn.objects.filter(user=user).order_by("-pk")[SESSIONS_PER_USER_MAX:])


@receiver(user_logged_out, dispatch_uid="gantry-session")
def note_sign_out(request: HttpRequest, **_: Any) -> None:
    SignIn.objects.filter(session_key=request.session.session_key).delete()


def note_session(request: HttpRequest, user: Any) -> None:
    """Record the session of the request for the user; also after a change of the session key."""
    if request.session.session_key is None:  # `login` has flushed the session of another account
        request.session.save()
    SignIn.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={
            "user": user,
            "expires_at": request.session.get_expiry_date(),
            "source": str(request.META.get("REMOTE_ADDR") or "")[:64],
            "browser": browser_of(request.headers.get("User-Agent", "")),
        },
    )


def sessions_of(user: User) -> Any:
    """Return the open sessions of a user, newest first."""
    open_keys = Session.objects.filter(expire_date__gte=timezone.now()).values("session_key")
    return SignIn.objects.filter(user=user, session_key__in=open_keys)


def end(sign_ins: Any) -> int:
    """End sessions; return the number of ended sessions."""
    keys = list(sign_ins.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    SignIn.objects.filter(session_key__in=keys).delete()
    return len(keys)


def browser_of(agent: str) -> str:
    return "".join(char for char in agent if char.isprintable())[:BROWSER_CHARS_MAX]
