"""REST resources of roles: list, create, change, delete, assign, and who may do what."""

from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.accounts import changes, custom_roles
from console.accounts.models import DESCRIPTION_CHARS_MAX, ROLE_NAME_CHARS_MAX, CustomRole
from console.accounts.role_pages import WhoForm
from console.api.bare_lists import PARAMETERS, Row, answer, page_or_array
from console.api.idempotency import IdempotentWrites
from console.api.serializers import BodySerializer
from console.api.views import IF_MATCH, DeclaredParameters, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Held, Need, Role, held_by, needs
from console.frame.permissions import (
    PERMISSIONS_MAX,
    Action,
    Permission,
    UnusablePermission,
    read_permissions,
)
from console.frame.targets import resources
from console.gateway.changes import check_unchanged


class PermissionsListField(serializers.ListField):
    """Texts of permissions; the value is a tuple of `Permission`."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("child", serializers.CharField(max_length=600))
        super().__init__(max_length=PERMISSIONS_MAX, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return read_permissions(super().to_internal_value(data), resources())
        except UnusablePermission as fault:
            raise ValidationError(str(fault)) from fault


class RoleSerializer(serializers.Serializer[Any]):
    """A role. The built-in roles cannot be changed."""

    name = serializers.CharField()
    description = serializers.CharField()
    built_in = serializers.BooleanField()
    permissions = serializers.ListField(
        child=serializers.CharField(help_text="`resource:action[:names][@cluster]`")
    )


class RolePutSerializer(BodySerializer):
    description = serializers.CharField(
        max_length=DESCRIPTION_CHARS_MAX, required=False, allow_blank=True, default=""
    )
    permissions = PermissionsListField()


class RolePostSerializer(RolePutSerializer):
    name = serializers.CharField(max_length=ROLE_NAME_CHARS_MAX)


class HeldSerializer(serializers.Serializer[Any]):
    """A permission of an account, and the role that gives the permission."""

    role = serializers.CharField()
    permission = serializers.CharField()


class HolderSerializer(HeldSerializer):
    username = serializers.CharField()


class UserRolesSerializer(serializers.Serializer[Any]):
    """The rights of an account."""

    username = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.values, help_text="The built-in role.")
    roles = serializers.ListField(child=serializers.CharField(), help_text="Further roles.")
    permissions = HeldSerializer(many=True)


class UserRolesPutSerializer(BodySerializer):
    role = serializers.ChoiceField(choices=Role.values)
    roles = serializers.ListField(
        child=serializers.CharField(max_length=ROLE_NAME_CHARS_MAX),
        max_length=custom_roles.ROLES_PER_USER_MAX,
    )


@needs(Need.ADMIN)
class RoleList(IdempotentWrites, DeclaredParameters):
    actions = {"post": "role.create"}

    @extend_schema(parameters=PARAMETERS, responses=page_or_array(RoleSerializer))
    def get(self, request: Request) -> Response:
        """The built-in roles and the roles of this console."""
        built_in = [
            role_body(each.value, each.meaning, each.permissions, built_in=True) for each in Role
        ]
        custom = [custom_body(each) for each in CustomRole.objects.order_by("name")]
        return answer(request, [Row(each["name"], each) for each in (*built_in, *custom)])

    @extend_schema(request=RolePostSerializer, responses={201: RoleSerializer})
    def post(self, request: Request) -> Response:
        """Create a role with permissions that the caller holds."""
        form = RolePostSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        with audited(request, "role.create", target=given["name"]) as entry:
            role = custom_roles.create_role(
                request.user, given["name"], given["description"], given["permissions"]
            )
            entry.after = role.state
        return tagged(custom_body(role), custom_roles.version(role), status.HTTP_201_CREATED)


@needs(Need.ADMIN)
class RoleOne(IdempotentWrites, DeclaredParameters):
    actions = {"put": "role.update", "delete": "role.delete"}

    @extend_schema(responses=RoleSerializer)
    def get(self, request: Request, role: str) -> Response:
        """One role of this console."""
        found = custom_roles.role_named(role)
        return tagged(custom_body(found), custom_roles.version(found))

    @extend_schema(parameters=[IF_MATCH], request=RolePutSerializer, responses=RoleSerializer)
    def put(self, request: Request, role: str) -> Response:
        """Replace description and permissions; the accounts with the role get the new rights."""
        form = RolePutSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        found, given = custom_roles.role_named(role), form.validated_data
        expected = expected_etag(request)
        check_unchanged(expected, custom_roles.version(found))
        with audited(request, "role.update", target=role, before=found.state) as entry:
            changed = custom_roles.change_role(
                request.user, found, given["description"], given["permissions"], expected
            )
            entry.after = changed.state
        return tagged(custom_body(changed), custom_roles.version(changed))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, role: str) -> Response:
        """Delete a role; the accounts lose its permissions."""
        found, expected = custom_roles.role_named(role), expected_etag(request)
        check_unchanged(expected, custom_roles.version(found))
        with audited(request, "role.delete", target=role, before=found.state):
            custom_roles.delete_role(request.user, found, expected)
        return Response(status=204)


@needs(Need.ADMIN)
class UserRoles(IdempotentWrites, DeclaredParameters):
    actions = {"put": "user.role"}

    @extend_schema(responses=UserRolesSerializer)
    def get(self, request: Request, username: str) -> Response:
        """Roles and effective permissions of an account, each with its reason."""
        user = changes.user_named(username)
        return tagged(user_body(user), changes.version_of_roles(user))

    @extend_schema(
        parameters=[IF_MATCH], request=UserRolesPutSerializer, responses=UserRolesSerializer
    )
    def put(self, request: Request, username: str) -> Response:
        """Give an account exactly these roles, whose permissions the caller holds."""
        form = UserRolesPutSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        user, given = changes.user_named(username), form.validated_data
        roles = [custom_roles.role_named(name) for name in given["roles"]]
        expected = expected_etag(request)
        check_unchanged(expected, changes.version_of_roles(user))
        with audited(request, "user.role", target=username, before=changes.roles_of(user)) as entry:
            changes.set_roles(request.user, user, Role(given["role"]), roles, expected)
            entry.after = changes.roles_of(user)
        return tagged(user_body(user), changes.version_of_roles(user))


@needs(Need.ADMIN)
class WhoMay(DeclaredParameters):
    @extend_schema(
        parameters=[
            OpenApiParameter("resource", required=True, enum=list(resources())),
            OpenApiParameter("action", required=True, enum=["read", "write", "admin", "unmasked"]),
            OpenApiParameter("name", description="A name; absent: every name."),
            OpenApiParameter("cluster", description="A cluster; absent: every cluster."),
            *PARAMETERS,
        ],
        responses=page_or_array(HolderSerializer),
    )
    def get(self, request: Request) -> Response:
        """The enabled accounts that may do something, with role and permission as the reason."""
        form = WhoForm(request.query_params)
        if not form.is_valid():
            raise ValidationError(
                {name: [str(each) for each in texts] for name, texts in form.errors.items()}
            )
        holders = custom_roles.who_may(Action(form.cleaned_data["action"]), form.target)
        rows = [
            Row(each.username, {"username": each.username, **held_body(each.held)})
            for each in holders
        ]
        return answer(request, rows)


def role_body(
    name: str, description: str, permissions: tuple[Permission, ...], *, built_in: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "built_in": built_in,
        "permissions": [str(each) for each in permissions],
    }


def custom_body(role: CustomRole) -> dict[str, Any]:
    return role_body(role.name, role.description, role.parsed, built_in=False)


def held_body(held: Held) -> dict[str, str]:
    return {"role": held.role, "permission": str(held.permission)}


def user_body(user: User) -> dict[str, Any]:
    return {
        "username": user.get_username(),
        **changes.roles_of(user),
        "permissions": [held_body(each) for each in held_by(user)],
    }
