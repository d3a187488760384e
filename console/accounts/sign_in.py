"""Sign-in with password and, where the account has one, a second factor.

After the password, the session holds the account as pending, without a sign-in, for PENDING_MS.
"""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View

from console.accounts import second_factor
from console.accounts.forms import CodeForm, SignInForm
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
        has_factor = second_factor.has_second_factor(user)
        if not has_factor and settings.SECOND_FACTOR != "required":
            return super().form_valid(form)
        self.request.session.cycle_key()
        self.request.session[PENDING] = {
            "user": user.pk,
            "backend": user.backend,
            "until_ms": now_ms() + PENDING_MS,
            "next": self.get_success_url(),
        }
        return redirect("accounts:code" if has_factor else "accounts:enrol")


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
        login(self.request, self.user, backend=pending["backend"])
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
