"""Pages of accounts. `console.resources` has the pages that create, edit, delete and undo."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.areas.acl_accounts import listing
from console.areas.acl_accounts.resource import ACL_ACCOUNT, WHITE_LIST
from console.frame.access import Need, needs
from console.frame.pages import ClusterPage
from console.frame.tables import TableQuery
from console.gateway import Refused
from console.gateway.acl_accounts.listing import account_detail, account_rows, check_on
from console.gateway.acl_accounts.processes import acl_processes
from console.gateway.acl_accounts.white_list import FIELD, white_lists
from console.gateway.processes import NoAccessControl, label
from console.resources import history
from console.resources.models import Kind
from console.resources.protection import is_protected


@needs(Need.ADMIN)
class AclAccountListPage(ClusterPage):
    """Accounts, white list and the state of each broker; an explanation without ACL 1.0."""

    template = "acl_accounts/list.html"
    part = "acl_accounts/list_rows.html"

    def get(self, request: HttpRequest, cluster: str) -> HttpResponse:
        title = _("Access control")
        try:
            answer = self.cluster.ask(acl_processes)
        except Refused as refusal:
            return self.show(title=title, trouble=refusal, refused=True, status=refusal.status)
        processes = [(label(ref), ref, answer.value[ref]) for ref in sorted(answer.value)]
        common: dict[str, Any] = {
            "answer": answer,
            "failures": answer.failures,
            "processes": processes,
        }
        try:
            check_on(answer.value)
        except NoAccessControl as trouble:
            return self.show(title=title, trouble=trouble, **common)
        query = TableQuery.read(request.GET, listing.COLUMNS, default="name")
        rows = query.matching(self.cluster.ask(account_rows).value)
        return self.show(title=title, page=query.page(rows), **common, **self.white_list())

    def white_list(self) -> dict[str, Any]:
        lists = self.cluster.ask(white_lists).value
        return {
            "white_lists": [(label(ref), ref, config) for ref, config in lists],
            "white_list_differs": len({config.patterns for _ref, config in lists}) > 1,
            "past": history.recent(self.cluster.name, Kind.ACL_WHITE_LIST, FIELD),
            "undo": f"{WHITE_LIST.namespace}:undo",
        }


@needs(Need.ADMIN)
class AclAccountPage(ClusterPage):
    """An account by broker process."""

    template = "acl_accounts/detail.html"

    def get(self, request: HttpRequest, cluster: str, acl_account: str) -> HttpResponse:
        answer = self.cluster.ask(account_detail, acl_account)
        configs = answer.value.configs
        return self.show(
            title=acl_account,
            crumbs=ACL_ACCOUNT.crumbs(cluster, acl_account),
            answer=answer,
            failures=answer.failures,
            account_name=acl_account,
            row=answer.value.row,
            configs=[(label(ref), ref, config) for ref, config in configs],
            fields=answer.value.fields,
            first=configs[0][1],
            protected=is_protected(cluster, Kind.ACL_ACCOUNT, acl_account),
        )
