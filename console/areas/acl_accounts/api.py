"""REST resources of the area `acl_accounts`."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import list_parameters
from console.api.views import ClusterResource, told_with
from console.areas.acl_accounts import listing, serializers
from console.areas.acl_accounts.resource import ACL_ACCOUNT, WHITE_LIST
from console.frame.access import Need, needs
from console.gateway.acl_accounts.listing import (
    account_detail,
    account_rows,
    account_settings,
    check_on,
)
from console.gateway.acl_accounts.processes import acl_processes
from console.gateway.acl_accounts.white_list import white_list_settings, white_lists
from console.gateway.changes import etag_of
from console.gateway.processes import label
from console.resources.api import EditableOne, ResourceOne
from console.resources.secrets import SecretResourceList


@needs(Need.ADMIN)
class AclAccountList(SecretResourceList):
    resource = ACL_ACCOUNT

    @extend_schema(
        parameters=list_parameters(listing.COLUMNS),
        responses=serializers.AclAccountPageSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Accounts of plain_acl.yml (ACL 1.0), without secret keys.

        409 with the type `no-access-control` when no broker lists accounts; `/acl-states` has the
        state of each broker.
        """
        check_on(self.cluster.ask(acl_processes).value)
        answer = self.cluster.ask(account_rows)
        return self.listed(request, serializers.AclAccountRowSerializer, listing.COLUMNS, answer)


@needs(Need.ADMIN)
class AclAccountOne(ResourceOne):
    resource = ACL_ACCOUNT
    delete_description = (
        "Delete the account on all brokers. The secret key is lost: a new account of the same name "
        "gets a new one.\n\n"
        "409 for a protected account, and for the account that signs the console's requests."
    )

    @extend_schema(responses=serializers.AclAccountSerializer)
    def get(self, request: Request, cluster: str, acl_account: str) -> Response:
        """An account on every broker process. Secret keys are not returned."""
        detail = self.cluster.ask(account_detail, acl_account)
        settings = self.cluster.ask(account_settings, acl_account)
        configs = []
        for ref, config in detail.value.configs:
            fields = asdict(config)
            del fields["access_key"]
            configs.append({"broker": label(ref), "addr": ref.addr, **fields})
        body = {
            "name": acl_account,
            "missing_on": detail.value.row.missing_on,
            "drift": detail.value.row.drift,
            "configs": configs,
            **told_with(detail),
        }
        return Response(body, headers={"ETag": f'"{etag_of(settings.value)}"'})


@needs(Need.ADMIN)
class AclWhiteList(EditableOne):
    resource = WHITE_LIST

    @extend_schema(responses=serializers.WhiteListSerializer)
    def get(self, request: Request, cluster: str, **_names: str) -> Response:
        """The global white list of every broker process (globalWhiteRemoteAddresses)."""
        answer = self.cluster.ask(white_lists)
        settings = self.cluster.ask(white_list_settings)
        configs: list[dict[str, Any]] = [
            {
                "broker": label(ref),
                "addr": ref.addr,
                "patterns": config.patterns,
                "others": [{"path": path, "patterns": each} for path, each in config.others],
            }
            for ref, config in answer.value
        ]
        drift = len({config.patterns for _ref, config in answer.value}) > 1
        body = {"drift": drift, "configs": configs, **told_with(answer)}
        return Response(body, headers={"ETag": f'"{etag_of(settings.value)}"'})


@needs(Need.ADMIN)
class AclStates(ClusterResource):
    @extend_schema(responses=serializers.AclStatesSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        """ACL 1.0 on every broker process: state, and the versions of the files."""
        answer = self.cluster.ask(acl_processes)
        items = []
        for ref, process in sorted(answer.value.items()):
            files = [
                {"path": file.path, "counter": file.counter, "changed_ms": file.changed_ms}
                for file in process.files
            ]
            items.append(
                {
                    "broker": label(ref),
                    "addr": ref.addr,
                    "state": process.state,
                    "accounts": len(process.accounts) if process.state == "on" else None,
                    "files": files,
                    "problem": process.problem,
                }
            )
        return Response({"items": items, **told_with(answer)})
