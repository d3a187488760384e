"""Pages of users. `console.resources` has the pages that create, edit, delete, protect and undo."""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.areas.acl_users import listing
from console.areas.acl_users.resource import ACL_USER
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage
from console.frame.tables import TableQuery
from console.gateway import Refused
from console.gateway.acl_users.listing import unenforced_on, user_detail, user_rows
from console.gateway.processes import NoAccessControl, label
from console.resources.models import Kind
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
