"""Start of a sign-in at the provider, and its callback.

`attempts.py` keeps the secrets between the two requests in the browser.
"""

from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View

from console.accounts.external import ProviderFailed, SignInRefused, account_of
from console.accounts.oidc import attempts, provider
from console.accounts.oidc.provider import Attempt
from console.accounts.sign_in import entered
from console.frame.access import Need, needs
from console.gateway import GatewayError, NotFound

CODE_CHARS_MAX: Final = 8_000
BACKEND: Final = "django.contrib.auth.backends.ModelBackend"


class OidcPage(View):
    """Base of both pages: errors are shown with a way back to the sign-in page."""

    http_method_names = ["get"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.OIDC.issuer:
            raise NotFound(gettext_lazy("Sign-in by OpenID Connect is off: CONSOLE_OIDC_ISSUER."))
        try:
            return super().dispatch(request, *args, **kwargs)
        except (ProviderFailed, SignInRefused) as failure:
            return failed_page(request, failure)


@needs(Need.OPEN)
class StartPage(OidcPage):
    def get(self, request: HttpRequest) -> HttpResponse:
        attempt = Attempt.new()
        url = provider.authorization_url(settings.OIDC, attempt, redirect_uri(request))
        response = redirect(url)
        attempts.keep(request, response, attempt, request.GET.get("next", ""))
        return response


@needs(Need.OPEN)
class CallbackPage(OidcPage):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        attempts.forget(request, response)
        return response

    def get(self, request: HttpRequest) -> HttpResponse:
        pending = attempts.pending_of(request)
        answered_by = request.GET.get("iss", settings.OIDC.issuer)
        if answered_by != settings.OIDC.issuer:
            raise ProviderFailed(gettext_lazy("Another provider has answered (iss)."))
        if error := request.GET.get("error"):
            reason = (request.GET.get("error_description") or error)[:200]
            text = gettext_lazy("The provider refused the sign-in: {reason}")
            raise SignInRefused(format_lazy(text, reason=reason))
        code = request.GET.get("code", "")
        if not 0 < len(code) <= CODE_CHARS_MAX:
            raise ProviderFailed(gettext_lazy("The provider sent no code."))
        person = provider.person_of(settings.OIDC, pending.attempt, code, redirect_uri(request))
        user = account_of(person, settings.OIDC.groups, "CONSOLE_OIDC_GROUPS")
        return self.signed_in(request, user, pending.target)

    def signed_in(self, request: HttpRequest, user: User, target: str) -> HttpResponse:
        if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
            target = resolve_url(settings.LOGIN_REDIRECT_URL)
        hours: int = settings.OIDC.session_hours
        return entered(request, user, BACKEND, target, hours=hours)


def redirect_uri(request: HttpRequest) -> str:
    """Return the address of the callback: below CONSOLE_URL, else of the request."""
    path = reverse("accounts:oidc-callback")
    base: str = settings.CONSOLE_URL
    return f"{base}{path}" if base else request.build_absolute_uri(path)


def failed_page(request: HttpRequest, failure: GatewayError) -> HttpResponse:
    context = {"title": _("Sign in"), "failure": failure}
    response = render(request, "accounts/oidc_failed.html", context, status=failure.status)
    response.headers["Cache-Control"] = "no-store"
    if failure.retry_after_s:
        response.headers["Retry-After"] = str(failure.retry_after_s)
    return response
