"""Sign-ins between start and callback, in encrypted cookies of the browser.

    gantry_oidc_<state>    state, nonce, PKCE verifier, time of the start, requested page

The start page stores nothing: anybody may visit it, any number of times. The callback deletes the
cookie of its state, so a state counts once in its browser; the provider accepts a code once. The
cookies of at most ATTEMPTS_MAX sign-ins are kept, so that tabs do not disturb one another.
"""

import re
import time
from hmac import compare_digest
from typing import Final

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.accounts.external import ProviderFailed
from console.accounts.oidc.provider import Attempt
from console.frame.ciphers import Cipher

COOKIE_PREFIX: Final = "gantry_oidc_"
COOKIE_NAME: Final = re.compile(rf"{COOKIE_PREFIX}[A-Za-z0-9_-]{{1,64}}", re.ASCII)
ATTEMPTS_MAX: Final = 5
#: Time between start and callback, seconds.
ATTEMPT_S_MAX: Final = 600
#: Maximum length of the requested page's address, bytes: with ATTEMPTS_MAX cookies, the header
#: stays below 8 KiB, the limit of common proxies.
NEXT_BYTES_MAX: Final = 800
CIPHER: Final = Cipher(b"gantry console: sign-ins by OpenID Connect")


class Pending(msgspec.Struct, frozen=True):
    """The content of a cookie."""

    attempt: Attempt
    began_s: float
    target: str


def keep(request: HttpRequest, response: HttpResponseBase, attempt: Attempt, target: str) -> None:
    """Set the cookie of a new sign-in; delete those of the oldest beyond ATTEMPTS_MAX."""
    if len(target.encode(errors="replace")) > NEXT_BYTES_MAX:
        target = ""
    began_s = {
        name: pending.began_s if (pending := CIPHER.opened(text, Pending)) else 0.0
        for name, text in request.COOKIES.items()
        if COOKIE_NAME.fullmatch(name)
    }
    newest_first = sorted(began_s, key=began_s.__getitem__, reverse=True)
    for name in newest_first[ATTEMPTS_MAX - 1 :]:
        response.delete_cookie(name, path=_path())
    response.set_cookie(
        f"{COOKIE_PREFIX}{attempt.state}",
        CIPHER.sealed(Pending(attempt, time.time(), target)),
        max_age=ATTEMPT_S_MAX,
        path=_path(),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def pending_of(request: HttpRequest) -> Pending:
    """Return the sign-in of the request's state. Raises ProviderFailed."""
    state = request.GET.get("state", "")
    pending = CIPHER.opened(request.COOKIES.get(f"{COOKIE_PREFIX}{state}", ""), Pending)
    is_own = pending is not None and compare_digest(pending.attempt.state.encode(), state.encode())
    if pending is None or not is_own or time.time() - pending.began_s > ATTEMPT_S_MAX:
        raise ProviderFailed(
            _("This sign-in has ended, was used before, or began in another browser."),
            hint=_("Begin again at the sign-in page."),
        )
    return pending


def forget(request: HttpRequest, response: HttpResponseBase) -> None:
    """Delete the cookie of the request's state."""
    name = f"{COOKIE_PREFIX}{request.GET.get('state', '')}"
    if name in request.COOKIES and COOKIE_NAME.fullmatch(name):
        response.delete_cookie(name, path=_path())


def _path() -> str:
    return reverse("accounts:oidc")
