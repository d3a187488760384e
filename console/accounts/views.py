"""Lock-out of sign-in, password and theme."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render, resolve_url
from django.urls import reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from console.accounts.forms import NewPasswordForm, SignInForm
from console.accounts.sessions import note_session
from console.accounts.sign_in import sign_in_methods
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import THEME_COOKIE, THEMES

THEME_COOKIE_AGE_S = 365 * 24 * 3600


def locked_out(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """Answer 429 after too many wrong passwords; `sign_in_limits` has the limits."""
    rest_s = int(settings.AXES_COOLOFF_TIME.total_seconds())
    if request.resolver_match and "classic" in request.resolver_match.app_names:
        reason = _("Too many wrong passwords; wait a few minutes.")
        return JsonResponse(
            {"status": -1, "data": None, "errMsg": reason},
            status=429,
            headers={"Retry-After": str(rest_s)},
        )
    context = {
        "title": _("Sign in"),
        "form": SignInForm(request),
        "rest_minutes": rest_s // 60,
        "locked": True,
        **sign_in_methods(),
    }
    response = render(request, "accounts/login.html", context, status=429)
    response.headers["Retry-After"] = str(rest_s)
    return response


@needs(Need.SIGNED_IN)
class PasswordPage(PasswordChangeView):
    template_name = "accounts/password.html"
    http_method_names = ["get", "head", "options", "post"]
    actions = {"post": "user.password"}
    form_class = NewPasswordForm
    success_url = reverse_lazy("accounts:password")
    extra_context = {"title": gettext_lazy("Change password")}

    def form_valid(self, form: Any) -> HttpResponse:
        with audited(self.request, "user.password", target=self.request.user.get_username()):
            response = super().form_valid(form)
            note_session(self.request, self.request.user)  # the session key has changed
        messages.success(self.request, _("Your password is changed."))
        return response


@needs(Need.OPEN)
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme in a cookie, so that the server renders each page in the theme."""
    chosen = request.POST.get("theme", "")
    response = HttpResponseRedirect(_next(request))
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            chosen,
            max_age=THEME_COOKIE_AGE_S,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response


def _next(request: HttpRequest) -> str:
    """Return the form's `next` URL when the URL is on this site, else the start page."""
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return target
    return resolve_url(settings.LOGIN_REDIRECT_URL)
