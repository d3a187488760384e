"""Pages of the user's own account: API tokens and time zone."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.accounts import changes
from console.accounts.confirmations import of_token
from console.accounts.forms import TokenForm, ZoneForm
from console.accounts.models import Profile
from console.audit.recording import audited
from console.frame.access import Need, Role, needs, role_of
from console.frame.confirmations import ASK, Confirmation
from console.frame.pages import Crumb, Page
from console.frame.targets import resources
from console.gateway import GatewayError


@needs(Need.SIGNED_IN)
class TokensPage(Page):
    """The user's API tokens. A new token is shown only in the response to the form."""

    template = "accounts/tokens.html"
    actions = {"post": "token.create"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.form(request, self.empty(request), confirmation=self.confirmation(request))

    def confirmation(self, request: HttpRequest) -> Confirmation | None:
        """Return the question of the address."""
        if request.GET.get(ASK) != "revoke":
            return None
        key = request.GET.get("token", "")
        return of_token(changes.token_of(key, request.user))  # type: ignore[arg-type]

    def post(self, request: HttpRequest) -> HttpResponseBase:
        if "revoke" in request.POST:
            return self.revoke(request)
        form = TokenForm(request.POST, most=self.most(request))
        if not form.is_valid():
            return self.form(request, form, status=422)
        given = form.cleaned_data
        role, days = Role(given["role"]), given["days"]
        target = f"{request.user.get_username()}/{given['name']}"
        permissions = given["permissions"]
        try:
            with audited(request, "token.create", target=target) as entry:
                _facts, text = changes.issue_token(
                    request.user,  # type: ignore[arg-type]
                    given["name"],
                    role,
                    days,
                    permissions=permissions,
                )
                listed = [str(each) for each in permissions]
                entry.after = {"role": role, "days": days, "permissions": listed}
        except GatewayError as refusal:
            form.add_error(None, f"{refusal.detail} {refusal.hint}")
            return self.form(request, form, status=refusal.status)
        response = self.form(request, self.empty(request), new_token=text, new_name=given["name"])
        response.headers["Cache-Control"] = "no-store"
        return response

    def revoke(self, request: HttpRequest) -> HttpResponseBase:
        token = changes.token_of(request.POST["revoke"], request.user)  # type: ignore[arg-type]
        name = getattr(getattr(token, "facts", None), "name", "") or token.token_key
        with audited(request, "token.revoke", target=f"{request.user.get_username()}/{name}"):
            token.delete()
        messages.success(request, _("The token is revoked."))
        return redirect("accounts:tokens")

    def most(self, request: HttpRequest) -> Role:
        return role_of(request.user) or Role.VIEWER

    def empty(self, request: HttpRequest) -> TokenForm:
        return TokenForm(most=self.most(request))

    def form(
        self, request: HttpRequest, form: TokenForm, status: int = 200, **more: Any
    ) -> HttpResponse:
        return self.show(
            title=_("API tokens"),
            crumbs=[Crumb(_("API tokens"))],
            status=status,
            form=form,
            resources=resources(),
            tokens=changes.tokens_of(request.user),
            example=request.build_absolute_uri(reverse("api-whoami")),
            **more,
        )


@needs(Need.SIGNED_IN)
class ZonePage(Page):
    """The user's time zone for display. Display settings are not audited."""

    template = "accounts/zone.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        profile = getattr(request.user, "profile", None)
        initial = {"time_zone": profile.time_zone if profile is not None else ""}
        return self.form(ZoneForm(initial=initial, console_zone=settings.TIME_ZONE))

    def post(self, request: HttpRequest) -> HttpResponseBase:
        form = ZoneForm(request.POST, console_zone=settings.TIME_ZONE)
        if not form.is_valid():
            return self.form(form, status=422)
        chosen = {"time_zone": form.cleaned_data["time_zone"]}
        Profile.objects.update_or_create(pk=request.user.pk, defaults=chosen)
        messages.success(request, _("Times are shown in this zone from now on."))
        return redirect("accounts:zone")

    def form(self, form: ZoneForm, status: int = 200) -> HttpResponse:
        return self.show(title=_("Time zone"), form=form, status=status)
