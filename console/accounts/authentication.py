"""API tokens: `Authorization: Bearer …` or `Token …`. A token has a role, optionally a list of
permissions, and the time and address of its last use.
"""

from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.accounts.models import TokenFacts
from console.frame.access import Role
from console.frame.own_disks import refusals
from console.frame.permissions import read_permissions

#: Minimum interval between two updates of a token's last use.
USE_NOTED_EVERY = timedelta(minutes=1)
SCHEMES = (b"bearer", b"token")
SOURCE_CHARS_MAX = 64


class TokenAuthentication(KnoxAuthentication):
    """Knox authentication with the token's rights: `console.frame.access` reads `user.token_role`
    and `user.token_permissions`.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, *credentials = get_authorization_header(request).split() or [b""]
        if scheme.lower() not in SCHEMES:
            return None
        if len(credentials) != 1:
            raise AuthenticationFailed(_("Expected “Authorization: Bearer TOKEN”."))
        user, token = self.authenticate_credentials(credentials[0])
        facts = TokenFacts.objects.filter(pk=token.pk).first()
        if facts is not None:
            user.token_role, user.token_name = Role(facts.role), facts.name
            if facts.permissions:
                user.token_permissions = read_permissions(facts.permissions)
            note_use(facts, str(request.META.get("REMOTE_ADDR") or "")[:SOURCE_CHARS_MAX])
        return user, token

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        try:
            token.decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(_("Invalid token.")) from None
        found: tuple[Any, Any] = super().authenticate_credentials(token)
        return found


def note_use(facts: TokenFacts, source: str) -> None:
    """Save time and address; the same address is saved once in USE_NOTED_EVERY.

    On a full disk nothing is saved: reads by token go on.
    """
    now, last = timezone.now(), facts.last_used_at
    if last is None or now - last > USE_NOTED_EVERY or source != facts.last_used_from:
        used = {"last_used_at": now, "last_used_from": source}
        try:
            TokenFacts.objects.filter(pk=facts.pk).update(**used)
        except DatabaseError as trouble:
            if not refusals.note(trouble):
                raise


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call,misc,unused-ignore]
    """OpenAPI security scheme of TokenAuthentication."""

    target_class = "console.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Any:
        return build_bearer_security_scheme_object(
            header_name="Authorization",
            token_prefix="Bearer",  # noqa: S106 -- a scheme
        )
