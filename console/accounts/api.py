"""REST resource of the caller: account, rights and token."""

from typing import Any

from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.accounts.models import TokenFacts
from console.api.views import DeclaredParameters
from console.frame.access import Need, Role, held_by, needs


class TokenFactsSerializer(serializers.Serializer[Any]):
    """The API token of the request."""

    name = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.values, help_text="Upper limit of the token.")
    permissions = serializers.ListField(
        child=serializers.CharField(),
        help_text="`resource:action[:names][@cluster]`; empty: everything that the role allows.",
    )
    expires_ms = serializers.IntegerField(allow_null=True)


class WhoAmISerializer(serializers.Serializer[Any]):
    """The caller. A request needs both the rights of the roles and those of the token."""

    username = serializers.CharField()
    roles = serializers.ListField(child=serializers.CharField())
    permissions = serializers.ListField(
        child=serializers.CharField(), help_text="Rights of the roles."
    )
    token = TokenFactsSerializer(allow_null=True, help_text="Null for a session of a browser.")


@needs(Need.SIGNED_IN)
class WhoAmI(DeclaredParameters):
    @extend_schema(responses=WhoAmISerializer)
    def get(self, request: Request) -> Response:
        """The account of the request with roles, permissions and the token's expiry."""
        held = held_by(request.user)
        body = {
            "username": request.user.get_username(),
            "roles": list(dict.fromkeys(each.role for each in held)),
            "permissions": [str(each.permission) for each in held],
            "token": _token(request.auth) if isinstance(request.auth, AuthToken) else None,
        }
        return Response(WhoAmISerializer(body).data)


def _token(token: AuthToken) -> dict[str, Any]:
    facts = TokenFacts.objects.filter(pk=token.pk).first()
    return {
        "name": facts.name if facts else "",
        "role": facts.role if facts else token.user.profile.role,
        "permissions": facts.permissions if facts else [],
        "expires_ms": int(token.expiry.timestamp() * 1000) if token.expiry else None,
    }
