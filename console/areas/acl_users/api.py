"""REST resources of the area `acl_users`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.flags import DRY_RUN, dry_run_body, read_flag
from console.api.paging import list_parameters
from console.api.views import ClusterResource, told_with
from console.areas.acl_users import listing, serializers
from console.areas.acl_users.resource import ACL_USER
from console.audit.masking import HIDDEN
from console.audit.recording import audited
from console.frame.access import Need, needs
from console.gateway.acl_users.changes import new_password, set_password
from console.gateway.acl_users.listing import (
    label,
    unenforced_on,
    user_detail,
    user_rows,
    user_settings,
)
from console.gateway.changes import BrokerOutcome, FieldChange, etag_of
from console.resources.api import ResourceList, ResourceOne

PASSWORD = frozenset({"password"})


@needs(Need.ADMIN)
class AclUserList(ResourceList):
    resource = ACL_USER
    created_serializer = serializers.NewPasswordSerializer
    secret_members = PASSWORD

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

    def created(self, name: str, settings: Any, outcomes: Sequence[BrokerOutcome]) -> Response:
        response = super().created(name, settings, outcomes)
        given: Any = self.request.data
        is_given = bool(given.get("password"))
        return with_password(response, None if is_given else settings.password)


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


@needs(Need.ADMIN)
class AclUserPassword(ClusterResource):
    actions = {"post": "acl_user.password"}
    secret_members = PASSWORD

    @extend_schema(
        parameters=[DRY_RUN],
        request=serializers.PasswordBodySerializer,
        responses={
            200: serializers.NewPasswordSerializer,
            207: serializers.NewPasswordSerializer,
        },
    )
    def post(self, request: Request, cluster: str, acl_user: str) -> Response:
        """Set a new password on all brokers; the old one is refused at once.

        Without `password`, the console generates one and returns it in this response only.
        """
        form = serializers.PasswordBodySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data.get("password")
        password = given or new_password()
        if read_flag(request, "dry_run"):
            checked = self.cluster.do(set_password, acl_user, password, dry_run=True)
            lines = [FieldChange(each.broker, "password", HIDDEN, HIDDEN) for each in checked]
            return Response(dry_run_body(acl_user, lines))
        with audited(request, "acl_user.password", cluster=cluster, target=acl_user) as entry:
            outcomes = self.cluster.do(set_password, acl_user, password)
            entry.outcomes(outcomes)
        return with_password(self.changed(acl_user, outcomes), None if given else password)


def with_password(response: Response, password: str | None) -> Response:
    """Add a generated password to a response that no cache may store."""
    response.data["password"] = password
    response["Cache-Control"] = "no-store"
    return response
