"""API tokens: `Authorization: Token …`. A token has a role and a time of last use."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed

from console.accounts.models import TokenFacts
from console.frame.access import Role

#: Minimum interval between two updates of a token's time of last use.
USE_NOTED_EVERY = timedelta(minutes=1)


class TokenAuthentication(KnoxAuthentication):
    """Knox authentication with the token's role: `console.frame.access.role_of` reads
    `user.token_role`.
    """

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        try:
            token.decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(_("Invalid token.")) from None
        user, found = super().authenticate_credentials(token)
        facts = TokenFacts.objects.filter(pk=found.pk).first()
        if facts is not None:
            user.token_role, user.token_name = Role(facts.role), facts.name
            now = timezone.now()
            if facts.last_used_at is None or now - facts.last_used_at > USE_NOTED_EVERY:
                TokenFacts.objects.filter(pk=found.pk).update(last_used_at=now)
        return user, found


class TokenScheme(KnoxTokenScheme):
    """OpenAPI security scheme of TokenAuthentication."""

    target_class = "console.accounts.authentication.TokenAuthentication"
    name = "token"
