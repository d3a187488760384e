"""Checks of an ID token: OpenID Connect Core 1.0, section 3.1.3.7.

joserfc verifies the signature against the keys of the provider. Only asymmetric algorithms count:
`none` and HMAC with the client's secret are refused whatever the token's header says.
"""

import base64
import hashlib
from hmac import compare_digest
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from console.accounts.external import ProviderFailed

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
)
#: Accepted difference of the clocks of provider and console, seconds.
SKEW_S: Final = 60
#: Maximum age of a token, seconds: a token is used at once.
AGE_S_MAX: Final = 600
TOKEN_CHARS_MAX: Final = 64 * 1024


class BadToken(ProviderFailed):
    """The ID token is not for this sign-in."""

    status = 403

    def __init__(self, reason: Any) -> None:
        super().__init__(format_lazy(_("The provider's ID token is refused: {r}"), r=reason))


class UnknownKey(BadToken):
    """No known key verifies the token; the provider may have new keys."""


def claims_of(
    token: str,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    now_s: float,
    access_token: str = "",
) -> dict[str, Any]:
    """Return the claims of a token that is meant for this sign-in. Raises BadToken."""
    if len(token) > TOKEN_CHARS_MAX:
        raise BadToken(_("it is too long"))
    try:
        decoded = jwt.decode(token, keys, algorithms=list(ALGORITHMS))
    except (JoseError, ValueError, TypeError, KeyError) as problem:
        raise UnknownKey(str(problem) or type(problem).__name__) from problem
    claims = decoded.claims
    audiences = claims.get("aud")
    audiences = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(audiences, list) or client_id not in audiences:
        raise BadToken(_("its audience is not CONSOLE_OIDC_CLIENT_ID"))
    if len(audiences) > 1 and claims.get("azp") is None:
        raise BadToken(_("it has several audiences and no authorized party (azp)"))
    if claims.get("azp", client_id) != client_id:
        raise BadToken(_("its authorized party (azp) is not CONSOLE_OIDC_CLIENT_ID"))
    if claims.get("iss") != issuer:
        raise BadToken(_("its issuer is not CONSOLE_OIDC_ISSUER"))
    _check_times(claims, now_s)
    if not compare_digest(str(claims.get("nonce") or "").encode(), nonce.encode()):
        raise BadToken(_("its nonce is of another sign-in"))
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise BadToken(_("it has no subject (sub)"))
    expected = claims.get("at_hash")
    if expected is not None and expected != _half_hash(decoded.header["alg"], access_token):
        raise BadToken(_("its access token is another one (at_hash)"))
    return dict(claims)


def _check_times(claims: dict[str, Any], now_s: float) -> None:
    times: dict[str, float | None] = {}
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not is_number:
            raise BadToken(format_lazy(_("its time “{name}” is no number"), name=name))
        times[name] = value
    expires, issued, begins = times["exp"], times["iat"], times["nbf"]
    if expires is None or issued is None:
        raise BadToken(_("it lacks its times (exp, iat)"))
    if expires + SKEW_S <= now_s or issued + AGE_S_MAX + SKEW_S <= now_s:
        raise BadToken(_("it has expired; compare the clocks of provider and console"))
    if issued - SKEW_S > now_s or (begins is not None and begins - SKEW_S > now_s):
        raise BadToken(_("it is not valid yet; compare the clocks of provider and console"))


def _half_hash(algorithm: str, access_token: str) -> str:
    digest = hashlib.new(f"sha{algorithm[2:]}", access_token.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")
