"""The page of the own sign-in: second factor and open sessions."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.accounts import password_check, second_factor
from console.accounts.forms import CodeForm, OwnPasswordForm
from console.accounts.sessions import end, sessions_of
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.pages import Crumb, Page
from console.gateway import GatewayError, NotAllowedNow


@needs(Need.SIGNED_IN)
class SecurityPage(Page):
    """Switch the second factor on and off, renew recovery codes, end sessions."""

    template = "accounts/security.html"
    actions = {"post": "user.security"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.form(CodeForm(), enrol="enrol" in request.GET)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        if "end" in request.POST:
            return self.end_sessions(request)
        if "password" in request.POST:
            return self.begin(request)
        form = CodeForm(request.POST)
        enrol = "confirm" in request.POST
        if not form.is_valid():
            return self.form(form, status=422, enrol=enrol)
        try:
            codes = self.change(request, form.cleaned_data["code"])
        except GatewayError as refusal:
            form.add_error("code", f"{refusal.detail} {refusal.hint}")
            status = 422 if refusal.status == 400 else refusal.status
            return self.form(form, status=status, enrol=enrol)
        if codes:
            return self.form(CodeForm(), codes=codes)
        messages.success(request, _("The second factor is off."))
        return redirect("accounts:security")

    def begin(self, request: HttpRequest) -> HttpResponseBase:
        """Check the password; the enrolment follows."""
        form = OwnPasswordForm(request.POST)
        if form.is_valid():
            try:
                password_check.check_password(request, self.account, form.cleaned_data["password"])
                return redirect(f"{reverse('accounts:security')}?enrol=1")
            except password_check.WrongPassword as refusal:
                form.add_error("password", str(refusal.detail))
        return self.form(CodeForm(), status=422, enrol=True, password_form=form)

    def change(self, request: HttpRequest, code: str) -> list[str]:
        """Run the action of the pressed button; return new recovery codes."""
        user, name = self.account, request.user.get_username()
        if "confirm" in request.POST:
            with audited(request, "user.second-factor.on", target=name):
                if not self.is_offered:
                    raise NotAllowedNow(_("Not available for this account."))
                if not password_check.is_checked(request):
                    raise NotAllowedNow(_("The password was not given, or too long ago."))
                codes = second_factor.confirm(user, code)
                password_check.forget(request)
                return codes
        if "renew" in request.POST:
            with audited(request, "user.second-factor.renew", target=name):
                second_factor.check(user, code)
                return second_factor.new_recovery_codes(user)
        with audited(request, "user.second-factor.off", target=name):
            if settings.SECOND_FACTOR == "required":
                raise NotAllowedNow(_("The setting CONSOLE_SECOND_FACTOR requires it."))
            second_factor.check(user, code)
            second_factor.switch_off(user)
        return []

    def end_sessions(self, request: HttpRequest) -> HttpResponseBase:
        chosen = sessions_of(self.account).exclude(session_key=request.session.session_key)
        number = request.POST["end"]
        if number != "others":
            chosen = chosen.filter(pk=int(number) if number.isdecimal() and len(number) < 19 else 0)
        with audited(request, "session.end", target=request.user.get_username()) as entry:
            count = end(chosen)
            entry.after = {"ended": count}
        messages.success(request, _("Sessions ended: %(count)d.") % {"count": count})
        return redirect("accounts:security")

    @property
    def account(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    @property
    def is_offered(self) -> bool:
        return settings.SECOND_FACTOR != "off" and self.account.has_usable_password()

    def form(
        self,
        form: CodeForm,
        *,
        status: int = 200,
        enrol: bool = False,
        codes: list[str] | None = None,
        password_form: OwnPasswordForm | None = None,
    ) -> HttpResponse:
        is_on = second_factor.has_second_factor(self.account)
        enrols = enrol and not is_on and self.is_offered
        is_checked = password_check.is_checked(self.request)
        response = self.show(
            title=_("Sign-in and sessions"),
            crumbs=[Crumb(_("Sign-in and sessions"))],
            status=status,
            form=form,
            is_on=is_on,
            is_required=settings.SECOND_FACTOR == "required",
            is_offered=self.is_offered,
            enrolment=second_factor.begin(self.account) if enrols and is_checked else None,
            password_form=(password_form or OwnPasswordForm()) if enrols else None,
            codes=codes,
            codes_left=second_factor.recovery_codes_left(self.account),
            sessions=sessions_of(self.account),
        )
        response.headers["Cache-Control"] = "no-store"
        return response
