"""Every change of accounts and tokens: pages, REST resources and commands come here.

Passwords and tokens are returned once, to be shown once; only their hashes are kept.
"""

import secrets
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from knox.models import AuthToken

from console.accounts.models import SignIn, TokenFacts
from console.accounts.sessions import end
from console.frame.access import Role, role_of
from console.gateway import AlreadyExists, NotAllowedNow, NotFound, Unusable

PASSWORD_BYTES = 15
USERS_MAX = 1_000
TOKENS_PER_USER_MAX = 20
TOKEN_DAYS_DEFAULT = 90
TOKEN_DAYS_MAX = 3_650


def create_user(name: str, role: Role) -> tuple[User, str]:
    """A new account and its password; Unusable for a name that cannot be one."""
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise Unusable(" ".join(error.messages)) from error
    if User.objects.count() >= USERS_MAX:
        raise NotAllowedNow(format_lazy(_("There are {count} accounts already."), count=USERS_MAX))
    password = new_password()
    taken = AlreadyExists(format_lazy(_("There is an account “{name}”."), name=name))
    if User.objects.filter(username__iexact=name).exists():
        raise taken
    try:
        with transaction.atomic():
            user = User.objects.create_user(name, password=password)
            _keep_role(user, role)
    except IntegrityError:
        raise taken from None
    return user, password


def user_of(number: int) -> User:
    """One account; NotFound when there is none."""
    found = (
        User.objects.select_related("profile").filter(pk=number).first() if number < 2**63 else None
    )
    if found is None:
        raise NotFound(_("There is no such account."))
    return found


def set_role(user: User, role: Role) -> None:
    with transaction.atomic():
        _keep_role(user, role)
        _check_an_administrator_is_left()


def set_active(user: User, active: bool) -> None:
    """Switch an account on or off; switched off, its sessions end and its tokens are refused."""
    with transaction.atomic():
        user.is_active = active
        user.save(update_fields=["is_active"])
        _check_an_administrator_is_left()
    if not active:
        end(SignIn.objects.filter(user=user))


def reset_password(user: User) -> str:
    """A new password; the account's sessions end."""
    password = new_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    end(SignIn.objects.filter(user=user))
    return password


def issue_token(
    user: User, name: str, role: Role, days: int, *, within: Role | None = None
) -> tuple[TokenFacts, str]:
    """A new token and its text. Its role is at most the user's, and at most `within`."""
    most = role_of(user)
    if most is None:
        raise NotAllowedNow(_("The account is switched off."))
    if role.within(most.within(within or most)) is not role:
        raise Unusable(
            format_lazy(_("A token of yours may be {role} at most."), role=(within or most).label)
        )
    AuthToken.objects.filter(user=user, expiry__lt=timezone.now()).delete()
    if AuthToken.objects.filter(user=user).count() >= TOKENS_PER_USER_MAX:
        raise NotAllowedNow(
            format_lazy(_("An account has {count} tokens at most."), count=TOKENS_PER_USER_MAX),
            hint=_("Revoke one that is no longer used."),
        )
    with transaction.atomic():
        token, text = AuthToken.objects.create(user, expiry=timedelta(days=days))
        facts = TokenFacts.objects.create(token=token, name=name, role=role)
    return facts, text


def token_of(key: str, user: User | None = None) -> AuthToken:
    """A token by its public key, of one user or of anybody; NotFound when there is none."""
    tokens = AuthToken.objects.select_related("user", "facts").filter(token_key=key)
    found = (tokens if user is None else tokens.filter(user=user)).first()
    if found is None:
        raise NotFound(_("There is no such token."))
    return found


def tokens_of(user: User | AnonymousUser) -> Any:
    """The tokens of a user that still work, newest first."""
    alive = AuthToken.objects.filter(user_id=user.pk, expiry__gte=timezone.now())
    return alive.select_related("facts", "user").order_by("-created")


def new_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)


def _keep_role(user: User, role: Role) -> None:
    """The role, and with it Django's own flags, which other programs may look at."""
    user.profile.role = role
    user.profile.save(update_fields=["role"])
    user.is_staff = role is not Role.VIEWER
    user.is_superuser = role is Role.ADMINISTRATOR
    user.save(update_fields=["is_staff", "is_superuser"])


def _check_an_administrator_is_left() -> None:
    left = User.objects.filter(is_active=True, profile__role=Role.ADMINISTRATOR)
    if not left.exists():
        raise NotAllowedNow(
            _("This is the last administrator."),
            hint=_("Make somebody else an administrator first."),
        )
