"""Pages for administrators: roles with their permissions, and who may do what."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts import custom_roles
from console.accounts.forms import PermissionsField
from console.accounts.models import DESCRIPTION_CHARS_MAX, ROLE_NAME_CHARS_MAX, CustomRole
from console.audit.recording import audited
from console.frame.access import Need, Role, needs
from console.frame.confirmations import ASK, Confirmation
from console.frame.forms import TablerForm
from console.frame.pages import Crumb, Page
from console.frame.permissions import PATTERN_CHARS_MAX, Action, Scope, Target
from console.frame.targets import resources
from console.frame.versions import (
    CHANGED_MEANWHILE,
    check_posted,
    posted_version,
    shown_version,
)
from console.gateway import GatewayError, PreconditionFailed


class CustomRoleForm(TablerForm):
    """A role; one permission per line."""

    field_order = ("name", "description", "permissions")

    name = forms.CharField(label=gettext_lazy("Name"), max_length=ROLE_NAME_CHARS_MAX)
    description = forms.CharField(
        label=gettext_lazy("Description"), max_length=DESCRIPTION_CHARS_MAX, required=False
    )
    permissions = PermissionsField(
        help_text=gettext_lazy("One permission per line: resource:action[:names][@cluster].")
    )

    def __init__(self, *args: Any, fixed_name: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if fixed_name:
            del self.fields["name"]


class WhoForm(TablerForm):
    """The question who may do something; an empty name or cluster means every one."""

    resource = forms.ChoiceField(label=gettext_lazy("Resource"))
    action = forms.ChoiceField(
        label=gettext_lazy("Action"),
        choices=[(each.value, each.value) for each in Action if each is not Action.ALL],
    )
    name = forms.CharField(label=gettext_lazy("Name"), max_length=PATTERN_CHARS_MAX, required=False)
    cluster = forms.ChoiceField(label=gettext_lazy("Cluster"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field, values in (("resource", resources()), ("cluster", settings.CONSOLE_CLUSTERS)):
            choices = self.fields[field]
            assert isinstance(choices, forms.ChoiceField)
            every = [("", _("every cluster"))] if field == "cluster" else []
            choices.choices = [*every, *((each, each) for each in values)]

    @property
    def target(self) -> Target:
        given = self.cleaned_data
        cluster, name = given["cluster"] or Scope.EVERY, given["name"] or Scope.EVERY
        return Target(given["resource"], cluster, name)


@needs(Need.ADMIN)
class RoleListPage(Page):
    """The roles, and the answer to “who may do this?”."""

    template = "accounts/role_list.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        form = WhoForm(request.GET if "resource" in request.GET else None)
        users_of = custom_roles.users_of_built_in()
        holders = None
        if form.is_bound and form.is_valid():
            action = Action(form.cleaned_data["action"])
            holders = custom_roles.who_may(action, form.target)
        return self.show(
            title=_("Roles"),
            crumbs=[Crumb(_("Users"), reverse("accounts:users")), Crumb(_("Roles"))],
            built_in=[(role, users_of[role]) for role in Role],
            custom=CustomRole.objects.prefetch_related("profiles").order_by("name"),
            form=form,
            holders=holders,
        )


@needs(Need.ADMIN)
class RoleCreatePage(Page):
    template = "accounts/role_edit.html"
    actions = {"post": "role.create"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.form(CustomRoleForm())

    def post(self, request: HttpRequest) -> HttpResponseBase:
        form = CustomRoleForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        given = form.cleaned_data
        try:
            with audited(request, "role.create", target=given["name"]) as entry:
                role = custom_roles.create_role(
                    request.user,
                    given["name"],
                    given["description"],
                    given["permissions"],
                )
                entry.after = role.state
        except GatewayError as refusal:
            form.add_error(None, f"{refusal.detail} {refusal.hint}")
            return self.form(form, status=refusal.status)
        messages.success(request, _("The role is saved."))
        return redirect("accounts:roles")

    def form(self, form: CustomRoleForm, status: int = 200) -> HttpResponse:
        return self.show(
            title=_("Create a role"),
            crumbs=[Crumb(_("Roles"), reverse("accounts:roles")), Crumb(_("Create a role"))],
            status=status,
            form=form,
            resources=resources(),
        )


@needs(Need.ADMIN)
class RolePage(Page):
    """One role: permissions, accounts, deletion."""

    template = "accounts/role_edit.html"
    actions = {"post": "role.update"}

    def get(self, request: HttpRequest, role: str) -> HttpResponse:
        found = custom_roles.role_named(role)
        initial = {"description": found.description, "permissions": "\n".join(found.permissions)}
        form = CustomRoleForm(initial=initial, fixed_name=True)
        return self.form(found, form, confirmation=self.confirmation(found))

    def confirmation(self, role: CustomRole) -> Confirmation | None:
        """Return the question of the address."""
        if self.request.GET.get(ASK) != "delete":
            return None
        names = [each.get_username() for each in _users_of(role)]
        users = _("Users with this role: %(users)s") % {"users": ", ".join(names)}
        losing = _("Deleting the role takes its permissions from these users.")
        return Confirmation(
            question=_("Delete the role “%(name)s”?") % {"name": role.name},
            button=_("Delete role"),
            name="delete",
            consequences=(users, losing) if names else (_("No user has this role."),),
        )

    def post(self, request: HttpRequest, role: str) -> HttpResponseBase:
        found = custom_roles.role_named(role)
        if "delete" in request.POST:
            with audited(request, "role.delete", target=role, before=found.state):
                custom_roles.delete_role(request.user, found)
            messages.success(request, _("The role is deleted."))
            return redirect("accounts:roles")
        form = CustomRoleForm(request.POST, fixed_name=True)
        if not form.is_valid():
            return self.form(found, form, status=422)
        given = form.cleaned_data
        try:
            check_posted(request, custom_roles.version(found))
            with audited(request, "role.update", target=role, before=found.state) as entry:
                changed = custom_roles.change_role(
                    request.user,
                    found,
                    given["description"],
                    given["permissions"],
                    posted_version(request),
                )
                entry.after = changed.state
        except PreconditionFailed:
            found = custom_roles.role_named(role)
            form.add_error(None, CHANGED_MEANWHILE)
            return self.form(found, form, status=409, version=custom_roles.version(found))
        except GatewayError as refusal:
            form.add_error(None, f"{refusal.detail} {refusal.hint}")
            return self.form(found, form, status=refusal.status)
        messages.success(request, _("The role is saved."))
        return redirect("accounts:role", role)

    def form(
        self, role: CustomRole, form: CustomRoleForm, status: int = 200, **more: Any
    ) -> HttpResponse:
        more.setdefault("version", shown_version(self.request, custom_roles.version(role)))
        return self.show(
            title=role.name,
            crumbs=[Crumb(_("Roles"), reverse("accounts:roles")), Crumb(role.name)],
            status=status,
            form=form,
            custom_role=role,
            users=_users_of(role),
            resources=resources(),
            **more,
        )


def _users_of(role: CustomRole) -> QuerySet[User]:
    return User.objects.filter(profile__roles=role).order_by("username")
