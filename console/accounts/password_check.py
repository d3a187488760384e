"""The own password, asked again before a change of the sign-in.

Whoever finds an open browser must not put an own authenticator app on the account. The session
holds the time of the check, which counts for CHECKED_MS. Wrong passwords count for the limits of
the sign-in page.
"""

from typing import Final

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from console.audit.recording import audited
from console.gateway import Unusable, now_ms

SESSION_KEY: Final = "gantry_password_checked_ms"
#: Time for which a check counts, ms: long enough to install an authenticator app.
CHECKED_MS: Final = 10 * 60 * 1_000


class WrongPassword(Unusable):
    def __init__(self) -> None:
        super().__init__(_("This is not the password of your account."))


def check_password(request: HttpRequest, user: User, password: str) -> None:
    """Note a right password in the session. Raises WrongPassword."""
    name = user.get_username()
    with audited(request, "user.password.check", target=name):
        if authenticate(request, username=name, password=password) != user:
            raise WrongPassword
    request.session[SESSION_KEY] = now_ms()


def is_checked(request: HttpRequest) -> bool:
    """Whether the password was given within CHECKED_MS."""
    return 0 <= now_ms() - int(request.session.get(SESSION_KEY, 0)) <= CHECKED_MS


def forget(request: HttpRequest) -> None:
    request.session.pop(SESSION_KEY, None)
