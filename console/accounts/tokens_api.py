"""REST resources of the caller's own API tokens."""

from typing import Any

from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.accounts import changes
from console.accounts.changes import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX
from console.accounts.custom_roles import check_held
from console.accounts.models import TOKEN_NAME_CHARS_MAX
from console.accounts.roles_api import PermissionsListField
from console.api.idempotency import IdempotentWrites
from console.api.serializers import BodySerializer
from console.api.views import DeclaredParameters
from console.audit.recording import audited
from console.frame.access import Need, Role, needs
from console.frame.permissions import read_permissions
from console.gateway import NotAllowedNow


class TokenSerializer(serializers.Serializer[Any]):
    """An API token without its text."""

    key = serializers.CharField(help_text="Public part of the token: its name in addresses.")
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.values, help_text="Upper limit of the token.")
    permissions = serializers.ListField(
        child=serializers.CharField(),
        help_text="`resource:action[:names][@cluster]`; empty: everything that the role allows.",
    )
    created_ms = serializers.IntegerField()
    expires_ms = serializers.IntegerField(allow_null=True)
    last_used_ms = serializers.IntegerField(allow_null=True)
    last_used_from = serializers.CharField(allow_blank=True)


class TokenListSerializer(serializers.Serializer[Any]):
    items = TokenSerializer(many=True)


class NewTokenSerializer(TokenSerializer):
    """A new token with its text, which is shown once."""

    token = serializers.CharField(
        allow_null=True, help_text="Null in the repetition of a request with an Idempotency-Key."
    )


class TokenPostSerializer(BodySerializer):
    name = serializers.CharField(max_length=TOKEN_NAME_CHARS_MAX)
    role = serializers.ChoiceField(choices=Role.values)
    permissions = PermissionsListField(default=())
    days = serializers.IntegerField(
        min_value=1, max_value=TOKEN_DAYS_MAX, default=TOKEN_DAYS_DEFAULT
    )


@needs(Need.SIGNED_IN)
class TokenList(IdempotentWrites, DeclaredParameters):
    actions = {"post": "token.create"}
    secret_members = frozenset({"token"})

    @extend_schema(responses=TokenListSerializer)
    def get(self, request: Request) -> Response:
        """Unexpired API tokens of the caller, newest first."""
        found = changes.tokens_of(request.user)
        return Response({"items": [TokenSerializer(rights_of(each)).data for each in found]})

    @extend_schema(request=TokenPostSerializer, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        """Create an API token, whose text only this answer has.

        Neither rights nor lifetime of the new token exceed those of the token of the request.
        """
        form = TokenPostSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        role, permissions = Role(given["role"]), given["permissions"]
        user: Any = request.user
        target = f"{user.get_username()}/{given['name']}"
        with audited(request, "token.create", target=target) as entry:
            check_held(user, permissions or role.permissions)
            check_lifetime(request.auth, given["days"])
            facts, text = changes.issue_token(
                user, given["name"], role, given["days"], permissions=permissions
            )
            listed = [str(each) for each in permissions]
            entry.after = {"role": role, "days": given["days"], "permissions": listed}
        body = {**rights_of(facts.token), "token": text}
        headers = {"Cache-Control": "no-store"}
        return Response(NewTokenSerializer(body).data, status.HTTP_201_CREATED, headers=headers)


@needs(Need.SIGNED_IN)
class TokenOne(IdempotentWrites, DeclaredParameters):
    actions = {"delete": "token.revoke"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        """Revoke an own API token: the token of the request, or one without further rights."""
        user: Any = request.user
        token = changes.token_of(key, user)
        rights = rights_of(token)
        target = f"{user.get_username()}/{rights['name'] or token.token_key}"
        with audited(request, "token.revoke", target=target):
            if token != request.auth:
                own = read_permissions(rights["permissions"])
                check_held(user, own or Role(rights["role"]).permissions)
            token.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


def check_lifetime(own: Any, days: int) -> None:
    """Raise NotAllowedNow for a token that outlives the token of the request."""
    if not isinstance(own, AuthToken) or own.expiry is None:
        return
    rest = (own.expiry - timezone.now()).days
    if days > rest:
        text = _(
            "The token of the request is valid for {days} more whole days: choose at most these."
        )
        raise NotAllowedNow(format_lazy(text, days=max(0, rest)))


def rights_of(token: AuthToken) -> dict[str, Any]:
    """Return the members of `TokenSerializer`."""
    facts = getattr(token, "facts", None)
    used = facts.last_used_at if facts else None
    return {
        "key": token.token_key,
        "name": facts.name if facts else "",
        "role": facts.role if facts else token.user.profile.role,
        "permissions": facts.permissions if facts else [],
        "created_ms": int(token.created.timestamp() * 1000),
        "expires_ms": int(token.expiry.timestamp() * 1000) if token.expiry else None,
        "last_used_ms": None if used is None else int(used.timestamp() * 1000),
        "last_used_from": facts.last_used_from if facts else "",
    }
