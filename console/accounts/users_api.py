"""REST resources of accounts, for administrators: accounts, passwords, second factors, tokens."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.accounts import changes
from console.accounts.custom_roles import check_not_above
from console.accounts.forms import USERNAME_CHARS_MAX
from console.accounts.models import ExternalIdentity, SecondFactor
from console.accounts.tokens_api import TokenListSerializer, TokenSerializer, rights_of
from console.api.idempotency import IdempotentWrites
from console.api.paging import cut, list_parameters
from console.api.serializers import BodySerializer
from console.api.views import IF_MATCH, DeclaredParameters, expected_etag, tagged
from console.audit.recording import audited
from console.frame.access import Need, Role, needs
from console.frame.tables import Column, Columns, TableQuery
from console.gateway.changes import check_unchanged


class UserSerializer(serializers.Serializer[Any]):
    """An account of the console."""

    username = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.values, help_text="The built-in role.")
    roles = serializers.ListField(child=serializers.CharField(), help_text="Further roles.")
    is_active = serializers.BooleanField()
    is_external = serializers.BooleanField(help_text="Of a provider of sign-ins or a directory.")
    has_second_factor = serializers.BooleanField()
    tokens = serializers.IntegerField(help_text="Number of unexpired API tokens.")
    created_ms = serializers.IntegerField()
    last_sign_in_ms = serializers.IntegerField(allow_null=True)


class UserPageSerializer(serializers.Serializer[Any]):
    items = UserSerializer(many=True)
    total = serializers.IntegerField()
    next_cursor = serializers.CharField(allow_null=True)


class UserPostSerializer(BodySerializer):
    username = serializers.CharField(max_length=USERNAME_CHARS_MAX)
    role = serializers.ChoiceField(choices=Role.values, default=Role.VIEWER.value)


class UserPatchSerializer(BodySerializer):
    is_active = serializers.BooleanField(
        help_text="False ends the sessions, and denies the tokens."
    )


class GeneratedPasswordSerializer(serializers.Serializer[Any]):
    """A generated password, which is shown once."""

    username = serializers.CharField()
    password = serializers.CharField(
        allow_null=True, help_text="Null in the repetition of a request with an Idempotency-Key."
    )


@dataclass(frozen=True, slots=True)
class UserRow:
    """A row of the list."""

    name: str
    user: Any

    @property
    def body(self) -> dict[str, Any]:
        user, sign_in = self.user, self.user.last_login
        return {
            "username": self.name,
            "role": user.profile.role,
            "roles": sorted(each.name for each in user.profile.roles.all()),
            "is_active": user.is_active,
            "is_external": user.is_external,
            "has_second_factor": user.has_second_factor,
            "tokens": user.tokens,
            "created_ms": int(user.date_joined.timestamp() * 1000),
            "last_sign_in_ms": None if sign_in is None else int(sign_in.timestamp() * 1000),
        }


COLUMNS: Columns[UserRow] = Columns(
    Column("name", _("Name"), lambda row: row.name),
    Column("role", _("Role"), lambda row: row.user.profile.role),
    Column("last_sign_in", _("Last sign-in"), lambda row: row.body["last_sign_in_ms"]),
)


def rows(**chosen: Any) -> list[UserRow]:
    """The accounts, with all that a row shows, in one query for accounts and one for roles."""
    alive = Q(auth_token_set__expiry__gte=timezone.now())
    found = (
        User.objects.filter(**chosen)
        .select_related("profile")
        .prefetch_related("profile__roles")
        .annotate(
            tokens=Count("auth_token_set", filter=alive, distinct=True),
            is_external=Exists(ExternalIdentity.objects.filter(user=OuterRef("pk"))),
            has_second_factor=Exists(
                SecondFactor.objects.filter(user=OuterRef("pk"), is_confirmed=True)
            ),
        )
    )
    return [UserRow(each.get_username(), each) for each in found]


@needs(Need.ADMIN)
class UserList(IdempotentWrites, DeclaredParameters):
    actions = {"post": "user.create"}
    secret_members = frozenset({"password"})

    @extend_schema(parameters=list_parameters(COLUMNS), responses=UserPageSerializer)
    def get(self, request: Request) -> Response:
        """Accounts of the console."""
        params = request.query_params
        found = TableQuery.read(params, COLUMNS, default="name").matching(rows())
        part = cut(params, COLUMNS, found)
        items = [row.body for row in part.rows]
        return Response({"items": items, "total": part.total, "next_cursor": part.next_cursor})

    @extend_schema(request=UserPostSerializer, responses={201: GeneratedPasswordSerializer})
    def post(self, request: Request) -> Response:
        """Create an account with a generated password, which only this answer has."""
        form = UserPostSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        name, role = form.validated_data["username"], Role(form.validated_data["role"])
        with audited(request, "user.create", target=name) as entry:
            user, password = changes.create_user(request.user, name, role)
            entry.after = {"role": role}
        return secret(user, password, status.HTTP_201_CREATED)


@needs(Need.ADMIN)
class UserOne(IdempotentWrites, DeclaredParameters):
    actions = {"patch": "user.update", "delete": "user.delete"}

    @extend_schema(responses=UserSerializer)
    def get(self, request: Request, username: str) -> Response:
        """One account. `ETag` identifies its state and its roles."""
        user = changes.user_named(username)
        return tagged(rows(pk=user.pk)[0].body, changes.version_of_account(user))

    @extend_schema(parameters=[IF_MATCH], request=UserPatchSerializer, responses=UserSerializer)
    def patch(self, request: Request, username: str) -> Response:
        """Enable or disable an account; the last administrator stays."""
        form = UserPatchSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        user, active = changes.user_named(username), form.validated_data["is_active"]
        action, expected = "user.enable" if active else "user.disable", expected_etag(request)
        check_unchanged(expected, changes.version_of_account(user))
        with audited(request, action, target=user.get_username()):
            changes.set_active(request.user, user, active, expected)
        changed = changes.user_named(username)
        return tagged(rows(pk=user.pk)[0].body, changes.version_of_account(changed))

    @extend_schema(parameters=[IF_MATCH], responses={204: None})
    def delete(self, request: Request, username: str) -> Response:
        """Delete an account with its sessions, tokens, second factor and saved views.

        409 for the caller's own account and the last administrator. Audit rows keep the name.
        """
        user, expected = changes.user_named(username), expected_etag(request)
        check_unchanged(expected, changes.version_of_account(user))
        before = {**changes.roles_of(user), "is_active": user.is_active}
        with audited(request, "user.delete", target=user.get_username(), before=before):
            changes.delete_user(request.user, user, expected)
        return Response(status=status.HTTP_204_NO_CONTENT)


@needs(Need.ADMIN)
class UserSecondFactor(IdempotentWrites, DeclaredParameters):
    actions = {"delete": "user.second-factor.reset"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, username: str) -> Response:
        """Reset the second factor; the password alone is enough until the next enrolment."""
        user = changes.user_named(username)
        with audited(request, "user.second-factor.reset", target=user.get_username()):
            changes.reset_second_factor(request.user, user)
        return Response(status=status.HTTP_204_NO_CONTENT)


@needs(Need.ADMIN)
class UserPassword(IdempotentWrites, DeclaredParameters):
    actions = {"post": "user.password"}
    secret_members = frozenset({"password"})

    @extend_schema(request=None, responses=GeneratedPasswordSerializer)
    def post(self, request: Request, username: str) -> Response:
        """Generate a new password, which only this answer has; the sessions end."""
        user = changes.user_named(username)
        with audited(request, "user.password", target=user.get_username()):
            password = changes.reset_password(request.user, user)
        return secret(user, password)


@needs(Need.ADMIN)
class UserTokenList(DeclaredParameters):
    @extend_schema(responses=TokenListSerializer)
    def get(self, request: Request, username: str) -> Response:
        """Unexpired API tokens of an account, newest first."""
        found = changes.tokens_of(changes.user_named(username))
        return Response({"items": [TokenSerializer(rights_of(each)).data for each in found]})


@needs(Need.ADMIN)
class UserTokenOne(IdempotentWrites, DeclaredParameters):
    actions = {"delete": "token.revoke"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, username: str, key: str) -> Response:
        """Revoke an API token of an account."""
        user = changes.user_named(username)
        token = changes.token_of(key, user)
        name = rights_of(token)["name"] or token.token_key
        with audited(request, "token.revoke", target=f"{user.get_username()}/{name}"):
            check_not_above(request.user, user)
            token.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


def secret(user: User, password: str, code: int = status.HTTP_200_OK) -> Response:
    """Respond with a password; the response is not cacheable."""
    body = {"username": user.get_username(), "password": password}
    return Response(body, code, headers={"Cache-Control": "no-store"})
