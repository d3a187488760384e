"""Pages of users. `console.resources.pages` has the pages that edit, delete, protect and undo."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.areas.acl_users import listing
from console.areas.acl_users.forms import PasswordForm
from console.areas.acl_users.resource import ACL_USER
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.frame.outcomes import tell_outcomes
from console.frame.pages import ClusterPage, Crumb
from console.frame.tables import TableQuery
from console.gateway import Refused
from console.gateway.acl_users.changes import new_password, set_password
from console.gateway.acl_users.listing import label, unenforced_on, user_detail, user_rows
from console.gateway.acl_users.refusals import NoAccessControl
from console.gateway.changes import BrokerOutcome
from console.resources.models import Kind
from console.resources.pages import CreatePage
from console.resources.protection import is_protected


@needs(Need.ADMIN)
class AclUserListPage(ClusterPage):
    """List of users; an explanation for a cluster without access control or permission."""

    template = "acl_users/list.html"
    part = "acl_users/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        title = _("Access control")
        query = TableQuery.read(request.GET, listing.COLUMNS, default="name")
        try:
            answer = self.cluster.ask(user_rows)
        except NoAccessControl as trouble:
            return self.show(title=title, trouble=trouble)
        except Refused as refusal:
            return self.show(title=title, trouble=refusal, refused=True, status=refusal.status)
        page = query.page(query.matching(answer.value))
        return self.show(
            title=title,
            answer=answer,
            failures=answer.failures,
            page=page,
            unenforced_on=self.cluster.ask(unenforced_on).value,
        )


@needs(Need.ADMIN)
class AclUserPage(ClusterPage):
    """A user with the entries of the list, by broker process."""

    template = "acl_users/detail.html"

    def get(self, request: HttpRequest, cluster: str, acl_user: str) -> HttpResponse:
        answer = self.cluster.ask(user_detail, acl_user)
        configs = answer.value.configs
        return self.show(
            title=acl_user,
            crumbs=ACL_USER.crumbs(cluster, acl_user),
            answer=answer,
            failures=answer.failures,
            user_name=acl_user,
            row=answer.value.row,
            configs=[(label(ref), ref, config) for ref, config in configs],
            rules=answer.value.rules,
            first=configs[0][1],
            protected=is_protected(cluster, Kind.ACL_USER, acl_user),
        )


class AclUserCreatePage(CreatePage):
    """Creates a user. A generated password is shown only in the response to the form."""

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> HttpResponse:
        if self.request.POST.get("password"):
            return super().created(name, settings, outcomes)
        tell_outcomes(self.request, outcomes, str(self.resource.texts.created) % name)
        return show_password(self, name, settings.password)


@needs(Need.ADMIN)
class PasswordPage(ClusterPage):
    """Sets a new password; a generated one is shown only in the response to the form."""

    template = "acl_users/password.html"
    actions = {"post": "acl_user.password"}

    def get(self, request: HttpRequest, cluster: str, acl_user: str) -> HttpResponse:
        self.cluster.ask(user_detail, acl_user)  # 404 for a user that does not exist
        return self.form(PasswordForm())

    def post(self, request: HttpRequest, cluster: str, acl_user: str) -> HttpResponse:
        form = PasswordForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        given = form.cleaned_data["password"]
        password = given or new_password()
        with audited(request, "acl_user.password", cluster=cluster, target=acl_user) as entry:
            outcomes = self.cluster.do(set_password, acl_user, password)
            entry.outcomes(outcomes)
        tell_outcomes(request, outcomes, _("The password of “%s” is changed.") % acl_user)
        return show_password(self, acl_user, None if given else password)

    def form(self, form: PasswordForm, status: int = 200) -> HttpResponse:
        name = self.kwargs["acl_user"]
        return self.show(
            title=_("New password"),
            crumbs=[*ACL_USER.crumbs(self.cluster.name, name), Crumb(_("New password"))],
            status=status,
            form=form,
            back=ACL_USER.url(self.cluster.name, name),
        )


def show_password(page: ClusterPage, name: str, password: str | None) -> HttpResponse:
    """The page after a change of a password, with the generated password."""
    cluster = page.cluster.name
    page.template = "acl_users/password_shown.html"  # type: ignore[misc]
    response = page.show(
        title=name,
        crumbs=ACL_USER.crumbs(cluster, name),
        name=name,
        password=password,
        url=ACL_USER.url(cluster, name),
    )
    response.headers["Cache-Control"] = "no-store"
    return response
