"""The provider of CONSOLE_OIDC_ISSUER: discovery, keys, authorization URL, exchange of the code."""

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from console.accounts.external import GROUPS_OF_PERSON_MAX, Person, ProviderFailed, SignInRefused
from console.accounts.oidc import http
from console.accounts.oidc.tokens import UnknownKey, claims_of
from console.identity_settings import OidcSettings

#: Time for which metadata and keys are used, seconds.
FRESH_S: Final = 3_600.0
#: Minimum time between two requests for keys, seconds: a token with an unknown key asks for them.
KEYS_AGAIN_S: Final = 30.0
#: Time for which a failure counts for others too, seconds.
FAILED_S: Final = 10.0
#: Time that others wait for the request of one, seconds.
WAIT_S_MAX: Final = 2.0
#: Maximum number of sign-ins that wait for the provider: each keeps a thread of the console.
WAITING_MAX: Final = 8
RANDOM_BYTES: Final = 32
ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The secrets of one sign-in, between start and callback."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> "Attempt":
        return cls(*(secrets.token_urlsafe(RANDOM_BYTES) for _number in range(3)))


@dataclass(slots=True)
class _Known:
    metadata: dict[str, Any]
    keys: KeySet
    read_s: float
    keys_s: float


_known: dict[str, _Known] = {}
_failed: dict[str, tuple[float, ProviderFailed]] = {}
#: Held during requests for metadata and keys: one at a time.
_lock = threading.Lock()
_places = threading.BoundedSemaphore(WAITING_MAX)


class ProviderBusy(ProviderFailed):
    """WAITING_MAX sign-ins wait for the provider."""

    retry_after_s = 10

    def __init__(self) -> None:
        text = _("{count} sign-ins wait for the provider, which is slow; no more are begun.")
        super().__init__(
            format_lazy(text, count=WAITING_MAX),
            hint=_(
                "Try again in some seconds. Local accounts sign in with name and password. "
                "Setting: CONSOLE_OIDC_ISSUER."
            ),
        )


def authorization_url(oidc: OidcSettings, attempt: Attempt, redirect_uri: str) -> str:
    """Return the address at which the person signs in."""
    digest = hashlib.sha256(attempt.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": oidc.client_id,
        "redirect_uri": redirect_uri,
        "scope": oidc.scopes,
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    known = _fresh(oidc)
    if known is None:
        with _place():
            known = _provider(oidc)
    endpoint = str(known.metadata["authorization_endpoint"])
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def person_of(oidc: OidcSettings, attempt: Attempt, code: str, redirect_uri: str) -> Person:
    """Exchange the code; return who has signed in. Raises ProviderFailed, SignInRefused."""
    with _place():
        return _person_of(oidc, attempt, code, redirect_uri)


def _person_of(oidc: OidcSettings, attempt: Attempt, code: str, redirect_uri: str) -> Person:
    known = _provider(oidc)
    answer = _exchanged(oidc, known.metadata, attempt, code, redirect_uri)
    token, access_token = answer.get("id_token"), str(answer.get("access_token") or "")
    if not isinstance(token, str):
        raise ProviderFailed(
            _("The provider returned no ID token; CONSOLE_OIDC_SCOPES has openid?")
        )
    facts: dict[str, Any] = {
        "issuer": oidc.issuer,
        "client_id": oidc.client_id,
        "nonce": attempt.nonce,
        "access_token": access_token,
        "now_s": time.time(),
    }
    try:
        claims = claims_of(token, known.keys, **facts)
    except UnknownKey:
        claims = claims_of(token, _renewed_keys(oidc), **facts)
    return _person(oidc, _with_user_info(oidc, known.metadata, claims, access_token))


def forget() -> None:
    """Forget metadata and keys."""
    with _lock:
        _known.clear()
        _failed.clear()


@contextmanager
def _place() -> Iterator[None]:
    """A place among the sign-ins that wait. Raises ProviderBusy at once when all are taken."""
    if not _places.acquire(blocking=False):
        raise ProviderBusy
    try:
        yield
    finally:
        _places.release()


def _exchanged(
    oidc: OidcSettings, metadata: dict[str, Any], attempt: Attempt, code: str, redirect_uri: str
) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": attempt.verifier,
    }
    headers: dict[str, str] = {}
    methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if oidc.client_secret and "client_secret_basic" in methods:
        pair = f"{quote_plus(oidc.client_id)}:{quote_plus(oidc.client_secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = oidc.client_id
        form |= {"client_secret": oidc.client_secret} if oidc.client_secret else {}
    return http.post(str(metadata["token_endpoint"]), oidc.ca_file, form, headers)


def _with_user_info(
    oidc: OidcSettings, metadata: dict[str, Any], claims: dict[str, Any], access_token: str
) -> dict[str, Any]:
    """Add the claims of the user info endpoint where the ID token lacks name or groups."""
    url = metadata.get("userinfo_endpoint")
    has_all = all(_claim(claims, each) for each in (oidc.username_claim, oidc.groups_claim))
    if has_all or not url or not access_token:
        return claims
    found = http.get(str(url), oidc.ca_file, access_token)
    if found.get("sub") != claims["sub"]:
        raise ProviderFailed(_("The provider's user info is about another person."))
    return {**found, **claims}


def _person(oidc: OidcSettings, claims: dict[str, Any]) -> Person:
    username = _claim(claims, oidc.username_claim)
    if not isinstance(username, str) or not username.strip():
        raise SignInRefused(
            format_lazy(_("The provider sent no claim “{claim}”."), claim=oidc.username_claim),
            hint=_("The setting CONSOLE_OIDC_USERNAME_CLAIM names the claim."),
        )
    groups = _claim(claims, oidc.groups_claim)
    groups = [groups] if isinstance(groups, str) else groups
    listed = groups if isinstance(groups, list) else []
    return Person(
        oidc.issuer,
        str(claims["sub"]),
        username.strip(),
        frozenset(each for each in listed[:GROUPS_OF_PERSON_MAX] if isinstance(each, str)),
        str(claims.get("email") or ""),
    )


def _claim(claims: dict[str, Any], path: str) -> Any:
    """Return a claim by name, else by a path such as `realm_access.roles`."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _provider(oidc: OidcSettings) -> _Known:
    if known := _fresh(oidc):
        return known
    with _one_at_a_time():
        if known := _fresh(oidc):
            return known
        try:
            metadata = _metadata(oidc)
            keys = _keys(oidc, metadata)
        except ProviderFailed as failure:
            _failed[oidc.issuer] = time.monotonic(), failure
            raise
        at_s = time.monotonic()
        known = _known[oidc.issuer] = _Known(metadata, keys, at_s, at_s)
        return known


def _fresh(oidc: OidcSettings) -> _Known | None:
    """Return what is known; None: ask. Raises ProviderFailed soon after a failure."""
    failed_s, failure = _failed.get(oidc.issuer, (0.0, None))
    if failure is not None and time.monotonic() - failed_s < FAILED_S:
        raise ProviderFailed(failure.detail, hint=failure.hint)
    known = _known.get(oidc.issuer)
    is_fresh = known is not None and time.monotonic() - known.read_s <= FRESH_S
    return known if is_fresh else None


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Raises ProviderFailed when another request takes long: anybody can begin a sign-in, and a
    slow provider must not keep all threads of the console."""
    if not _lock.acquire(timeout=WAIT_S_MAX):
        raise ProviderFailed(
            _("The sign-in provider is slow."),
            hint=_("Local accounts sign in with name and password. Setting: CONSOLE_OIDC_ISSUER."),
        )
    try:
        yield
    finally:
        _lock.release()


def _renewed_keys(oidc: OidcSettings) -> KeySet:
    known = _provider(oidc)
    with _one_at_a_time():
        if time.monotonic() - known.keys_s >= KEYS_AGAIN_S:
            known.keys_s = time.monotonic()
            known.keys = _keys(oidc, known.metadata)
        return known.keys


def _metadata(oidc: OidcSettings) -> dict[str, Any]:
    url = f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
    found = http.get(url, oidc.ca_file)
    if found.get("issuer") != oidc.issuer:
        raise ProviderFailed(
            format_lazy(
                _("The provider calls itself {name}."), name=str(found.get("issuer"))[:200]
            ),
            hint=_("CONSOLE_OIDC_ISSUER must be exactly this name."),
        )
    wrong = [name for name in ENDPOINTS if not http.is_safe_url(str(found.get(name) or ""))]
    if wrong:
        names = ", ".join(wrong)
        raise ProviderFailed(
            format_lazy(_("The provider's metadata lack https addresses: {names}"), names=names)
        )
    return found


def _keys(oidc: OidcSettings, metadata: dict[str, Any]) -> KeySet:
    found = http.get(str(metadata["jwks_uri"]), oidc.ca_file)
    usable = [
        each
        for each in found.get("keys") or ()
        if isinstance(each, dict)
        and each.get("kty") in ("RSA", "EC")
        and each.get("use", "sig") == "sig"
    ]
    try:
        return KeySet.import_key_set({"keys": usable})
    except (JoseError, ValueError, TypeError, KeyError) as problem:
        text = format_lazy(_("The provider's keys cannot be read: {reason}"), reason=str(problem))
        raise ProviderFailed(text) from problem
