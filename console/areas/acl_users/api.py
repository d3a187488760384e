"""REST resources of the area `acl_users`."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import list_parameters
from console.api.views import told_with
from console.areas.acl_users import listing, serializers
from console.areas.acl_users.resource import ACL_USER
from console.frame.access import Need, needs
from console.gateway.acl_users.listing import (
    unenforced_on,
    user_detail,
    user_rows,
    user_settings,
)
from console.gateway.changes import etag_of
from console.gateway.processes import label
from console.resources.api import ResourceOne
from console.resources.secrets import SecretResourceList


@needs(Need.ADMIN)
class AclUserList(SecretResourceList):
    resource = ACL_USER

    @extend_schema(
        parameters=list_parameters(listing.COLUMNS), responses=serializers.AclUserPageSerializer
    )
    def get(self, request: Request, cluster: str) -> Response:
        """Users of the cluster (ACL 2.0) with type, status and number of entries.

        409 with the type `no-access-control` when the brokers have no users.
        """
        answer = self.cluster.ask(user_rows)
        page = self.listed(request, serializers.AclUserRowSerializer, listing.COLUMNS, answer)
        page.data["unenforced_on"] = self.cluster.ask(unenforced_on).value
        return page


@needs(Need.ADMIN)
class AclUserOne(ResourceOne):
    resource = ACL_USER
    delete_description = (
        "Delete the user and the user's access control list on all brokers. The password is lost: "
        "a new user of the same name gets a new one.\n\n"
        "409 for a protected user, and for the user that signs the console's requests."
    )

    @extend_schema(responses=serializers.AclUserSerializer)
    def get(self, request: Request, cluster: str, acl_user: str) -> Response:
        """A user: type, status and entries on every broker process. Passwords are not returned."""
        detail = self.cluster.ask(user_detail, acl_user)
        settings = self.cluster.ask(user_settings, acl_user)
        configs = [
            {"broker": label(ref), "addr": ref.addr, **_config(config)}
            for ref, config in detail.value.configs
        ]
        body = {
            "name": acl_user,
            "missing_on": detail.value.row.missing_on,
            "drift": detail.value.row.drift,
            "configs": configs,
            **told_with(detail),
        }
        return Response(body, headers={"ETag": f'"{etag_of(settings.value)}"'})


def _config(config: Any) -> dict[str, Any]:
    body = asdict(config)
    del body["username"]
    return body
