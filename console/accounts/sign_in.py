"""Sign-in with password and, where the account has one, a second factor.

After the password, the session holds the account as pending, without a sign-in, for PENDING_MS.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View

from console.accounts import second_factor
from console.accounts.external import is_external
from console.accounts.forms import CodeForm, SignInForm
from console.accounts.sessions import note_session
from console.audit.recording import audited_as
from console.frame.access import Need, needs
from console.gateway import GatewayError, now_ms

PENDING = "gantry_pending_sign_in"
PENDING_MS = 5 * 60 * 1_000


@needs(Need.OPEN)
class SignInPage(LoginView):
    """Sign in; several wrong passwords lock the account for some minutes (see AXES_*)."""

    template_name = "accounts/login.html"
    http_method_names = ["get", "head", "options", "post"]
    authentication_form = SignInForm
    redirect_authenticated_user = True
    extra_context = {"title": gettext_lazy("Sign in")}

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.get_user()
        return entered(
            self.request,
            user,
            user.backend,
            self.get_success_url(),
            enrols=settings.SECOND_FACTOR == "required",
            hours=hours_of(user),
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), **sign_in_methods()}


def sign_in_methods() -> dict[str, Any]:
    """What the sign-in page offers, for its template."""
    return {
        "oidc_title": (settings.OIDC.title or _("single sign-on")) if settings.OIDC.issuer else "",
        "with_directory": bool(settings.LDAP.urls),
    }


def entered(
    request: HttpRequest,
    user: User,
    backend: str,
    target: str,
    *,
    enrols: bool = False,
    hours: int = 0,
) -> HttpResponse:
    """Sign in and go to `target`, or first to the page of the second factor.

    `enrols`: an account without a second factor sets one up first. `hours` limits the session.
    """
    has_factor = second_factor.has_second_factor(user)
    if not has_factor and not enrols:
        sign_in(request, user, backend, hours)
        return redirect(target)
    request.session.cycle_key()
    request.session[PENDING] = {
        "user": user.pk,
        "backend": backend,
        "until_ms": now_ms() + PENDING_MS,
        "next": target,
        "hours": hours,
    }
    return redirect("accounts:code" if has_factor else "accounts:enrol")


def hours_of(user: User) -> int:
    """Return the limit of a session after a sign-in with a password; 0 for local accounts."""
    return settings.LDAP.session_hours if is_external(user) else 0


def sign_in(request: HttpRequest, user: User, backend: str, hours: int) -> None:
    login(request, user, backend=backend)
    if hours:
        # A number of seconds would count from the last change of the session.
        request.session.set_expiry(timezone.now() + timedelta(hours=hours))
        note_session(request, user)


class PendingPage(View):
    """A page between password and sign-in; without a pending account, back to the password."""

    http_method_names = ["get", "head", "options", "post"]
    user: User

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        pending = request.session.get(PENDING) or {}
        user = User.objects.filter(pk=pending.get("user", 0), is_active=True).first()
        if user is None or pending["until_ms"] < now_ms():
            request.session.pop(PENDING, None)
            return redirect("accounts:login")
        self.user = user
        return super().dispatch(request, *args, **kwargs)

    def enter(self) -> str:
        """Sign in; return the address that the user asked for."""
        pending = self.request.session.pop(PENDING)
        sign_in(self.request, self.user, pending["backend"], pending["hours"])
        return str(pending["next"] or resolve_url(settings.LOGIN_REDIRECT_URL))


@needs(Need.OPEN)
class CodePage(PendingPage):
    """The code of the authenticator app, or a recovery code."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.form(CodeForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = CodeForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        try:
            with audited_as(self.user, "user.second-factor.check", target=str(self.user)) as entry:
                is_recovery = second_factor.check(self.user, form.cleaned_data["code"])
                entry.after = {"recovery_code": is_recovery}
        except GatewayError as refusal:
            form.add_error("code", f"{refusal.detail} {refusal.hint}")
            return self.form(form, status=422 if refusal.status == 400 else 429)
        if is_recovery:
            left = second_factor.recovery_codes_left(self.user)
            messages.warning(request, _("Recovery code used; %(count)d left.") % {"count": left})
        return redirect(self.enter())

    def form(self, form: CodeForm, status: int = 200) -> HttpResponse:
        context = {"title": _("Second factor"), "form": form}
        return render(self.request, "accounts/code.html", context, status=status)


@needs(Need.OPEN)
class EnrolPage(PendingPage):
    """Enrolment before the sign-in, where CONSOLE_SECOND_FACTOR is `required`."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        return self.form(CodeForm())

    def post(self, request: HttpRequest) -> HttpResponseBase:
        form = CodeForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        try:
            with audited_as(self.user, "user.second-factor.on", target=str(self.user)):
                codes = second_factor.confirm(self.user, form.cleaned_data["code"])
        except GatewayError as refusal:
            form.add_error("code", f"{refusal.detail} {refusal.hint}")
            return self.form(form, status=422)
        following = self.enter()
        context = {"title": _("Recovery codes"), "codes": codes, "following": following}
        response = render(request, "accounts/enrolled.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def form(self, form: CodeForm, status: int = 200) -> HttpResponseBase:
        if second_factor.has_second_factor(self.user):
            return redirect("accounts:code")
        context = {
            "title": _("Second factor"),
            "form": form,
            "enrolment": second_factor.begin(self.user),
            "required": True,
        }
        response = render(self.request, "accounts/code.html", context, status=status)
        response.headers["Cache-Control"] = "no-store"
        return response
