"""Pages for administrators: accounts, roles, sessions, tokens."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.accounts import changes, confirmations, second_factor
from console.accounts.changes import user_of
from console.accounts.custom_roles import check_not_above
from console.accounts.forms import RolesForm, UserForm
from console.accounts.sessions import end, sessions_of
from console.audit.recording import audited
from console.frame.access import Need, Role, held_by, needs
from console.frame.confirmations import ASK, Confirmation
from console.frame.pages import Crumb, Page
from console.frame.versions import check_posted, posted_version
from console.gateway import AlreadyExists, NotAllowedNow, PreconditionFailed, Unusable

PAGE_USERS = 50
SEARCH_CHARS_MAX = 150


@needs(Need.ADMIN)
class UserListPage(Page):
    template = "accounts/users.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        search = request.GET.get("q", "").replace("\x00", "")[:SEARCH_CHARS_MAX].strip()
        alive = Q(auth_token_set__expiry__gte=timezone.now())
        users = User.objects.select_related("profile").prefetch_related("profile__roles")
        users = users.order_by("username")
        found = users.filter(username__icontains=search) if search else users
        counted = found.annotate(tokens=Count("auth_token_set", filter=alive, distinct=True))
        page = Paginator(counted, PAGE_USERS).get_page(request.GET.get("page"))
        return self.show(title=_("Users"), page=page, search=search, roles=list(Role))


@needs(Need.ADMIN)
class UserCreatePage(Page):
    template = "accounts/create.html"
    actions = {"post": "user.create"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.form(UserForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = UserForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        name, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
        try:
            with audited(request, "user.create", target=name) as entry:
                user, password = changes.create_user(request.user, name, role)
                entry.after = {"role": role}
        except (AlreadyExists, NotAllowedNow, Unusable) as refusal:
            form.add_error("username", str(refusal.detail))
            return self.form(form, status=refusal.status)
        return shown_once(self, request, user, password)

    def form(self, form: UserForm, status: int = 200) -> HttpResponse:
        title = _("Create a user")
        crumbs = [Crumb(_("Users"), reverse("accounts:users")), Crumb(title)]
        return self.show(title=title, crumbs=crumbs, form=form, status=status, roles=list(Role))


@needs(Need.ADMIN)
class UserPage(Page):
    """One account: role, password, status, sessions, tokens."""

    template = "accounts/user.html"
    actions = {"post": "user.update"}

    def get(self, request: HttpRequest, number: int) -> HttpResponse:
        user = user_of(number)
        return self.show(
            confirmation=self.confirmation(user),
            title=user.get_username(),
            crumbs=[Crumb(_("Users"), reverse("accounts:users")), Crumb(user.get_username())],
            person=user,
            version=changes.version_of_roles(user),
            person_role=Role(user.profile.role),
            form=RolesForm(initial=changes.roles_of(user)),
            held=held_by(user),
            has_second_factor=second_factor.has_second_factor(user),
            roles=list(Role),
            sessions=sessions_of(user),
            tokens=changes.tokens_of(user),
            is_self=user.pk == request.user.pk,
        )

    def confirmation(self, user: User) -> Confirmation | None:
        """Return the question of the address."""
        asked = self.request.GET.get(ASK, "")
        if asked == "revoke":
            token = changes.token_of(self.request.GET.get("token", ""), user)
            return confirmations.of_token(token)
        ask = confirmations.OF_USER.get(asked)
        return None if ask is None else ask(user)

    def post(self, request: HttpRequest, number: int) -> HttpResponseBase:
        """Run the action of the pressed button."""
        user = user_of(number)
        acts = {
            "role": self.change_role,
            "off": self.switch,
            "on": self.switch,
            "password": self.reset,
            "second-factor": self.reset_second_factor,
            "end": self.end_session,
            "revoke": self.revoke,
            "delete": self.delete_account,
        }
        pressed = next((name for name in acts if name in request.POST), None)
        if pressed is None:
            return redirect("accounts:user", number)
        return acts[pressed](request, user) or redirect("accounts:user", number)

    def change_role(self, request: HttpRequest, user: User) -> None:
        form = RolesForm(request.POST)
        if not form.is_valid():
            raise Unusable(_("There is no such role."))
        role, before = Role(form.cleaned_data["role"]), changes.roles_of(user)
        roles, expected = list(form.cleaned_data["roles"]), posted_version(request)
        try:
            check_posted(request, changes.version_of_roles(user))
            with audited(request, "user.role", target=user.get_username(), before=before) as entry:
                changes.set_roles(request.user, user, role, roles, expected)
                entry.after = changes.roles_of(user)
        except PreconditionFailed:
            text = _("Somebody else has changed the roles; the page shows the present ones.")
            messages.error(request, text)
            return
        messages.success(request, _("The roles are saved."))

    def switch(self, request: HttpRequest, user: User) -> None:
        active = "on" in request.POST
        action = "user.enable" if active else "user.disable"
        with audited(request, action, target=user.get_username()):
            changes.set_active(request.user, user, active)
        said = _("The account is enabled.") if active else _("The account is disabled.")
        messages.success(request, said)

    def reset(self, request: HttpRequest, user: User) -> HttpResponse:
        with audited(request, "user.password", target=user.get_username()):
            password = changes.reset_password(request.user, user)
        return shown_once(self, request, user, password)

    def reset_second_factor(self, request: HttpRequest, user: User) -> None:
        with audited(request, "user.second-factor.reset", target=user.get_username()):
            changes.reset_second_factor(request.user, user)
        messages.success(request, _("The second factor is off."))

    def delete_account(self, request: HttpRequest, user: User) -> HttpResponseBase:
        name = user.get_username()
        before = {**changes.roles_of(user), "is_active": user.is_active}
        with audited(request, "user.delete", target=name, before=before):
            changes.delete_user(request.user, user)
        messages.success(request, _("The account “%(name)s” is deleted.") % {"name": name})
        return redirect("accounts:users")

    def end_session(self, request: HttpRequest, user: User) -> None:
        number = request.POST["end"]
        chosen = sessions_of(user)
        if number != "all":
            chosen = chosen.filter(pk=int(number) if number.isdecimal() and len(number) < 19 else 0)
        with audited(request, "session.end", target=user.get_username()) as entry:
            check_not_above(request.user, user)
            count = end(chosen)
            entry.after = {"ended": count}
        messages.success(request, _("Sessions ended: %(count)d.") % {"count": count})

    def revoke(self, request: HttpRequest, user: User) -> None:
        token = changes.token_of(request.POST["revoke"], user)
        name = getattr(getattr(token, "facts", None), "name", "")
        target = f"{user.get_username()}/{name or token.token_key}"
        with audited(request, "token.revoke", target=target):
            check_not_above(request.user, user)
            token.delete()
        messages.success(request, _("The token is revoked."))


def shown_once(page: Page, request: HttpRequest, user: User, password: str) -> HttpResponse:
    """Show a new password once; the response is not cacheable."""
    page.template = "accounts/password_once.html"  # type: ignore[misc]
    response = page.show(
        title=user.get_username(),
        crumbs=[Crumb(_("Users"), reverse("accounts:users")), Crumb(user.get_username())],
        person=user,
        password=password,
    )
    response.headers["Cache-Control"] = "no-store"
    return response
