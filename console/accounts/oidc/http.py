"""Requests to the provider: JSON answers, no redirects, bounded in time and size."""

import http.client
import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.accounts.external import ProviderFailed
from console.identity_settings import LOOPBACK_HOSTS
from console.outgoing_requests import OutgoingFailed, answer_of

#: Time of a request with its answer, seconds.
REQUEST_S_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 1024 * 1024
ERROR_CHARS_MAX: Final = 200


def get(url: str, ca_file: str, token: str = "") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return _answer("GET", url, ca_file, None, headers)


def post(
    url: str, ca_file: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> dict[str, Any]:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return _answer("POST", url, ca_file, urlencode(form), {**kind, **headers})


def is_safe_url(url: str) -> bool:
    """True for https, and for http to this machine."""
    parts = urlsplit(url)
    is_own = parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    return bool(parts.hostname) and (parts.scheme == "https" or is_own)


def _answer(
    method: str, url: str, ca_file: str, body: str | None, headers: Mapping[str, str]
) -> dict[str, Any]:
    """Return a JSON object. Raises ProviderFailed."""
    if not is_safe_url(url):
        raise ProviderFailed(format_lazy(_("{url} is no https address."), url=url[:200]))
    parts = urlsplit(url)
    try:
        connection = _connection(parts.scheme, parts.hostname or "", parts.port, ca_file)
    except (OSError, ValueError) as problem:
        raise _failed(url, problem) from problem
    bounds: Any = {"within_s": REQUEST_S_MAX, "bytes_max": ANSWER_BYTES_MAX + 1}
    accepted = {"Accept": "application/json", **headers}
    try:
        status, data = answer_of(connection, method, parts, body, accepted, **bounds)
    except OutgoingFailed as problem:
        raise _failed(url, problem) from problem
    decoded: Any = None
    with suppress(ValueError, RecursionError):
        decoded = json.loads(data) if len(data) <= ANSWER_BYTES_MAX else None
    if status != http.client.OK or not isinstance(decoded, dict):
        said = decoded if isinstance(decoded, dict) else {}
        reason = str(said.get("error_description") or said.get("error") or "no JSON object")
        raise _failed(url, f"status {status}: {reason}")
    return decoded


def _failed(url: str, problem: object) -> ProviderFailed:
    text = str(problem) or type(problem).__name__
    return ProviderFailed(
        format_lazy(
            _("The sign-in provider failed: {url}: {reason}"),
            url=url.partition("?")[0],
            reason=text[:ERROR_CHARS_MAX],
        ),
        hint=_("Local accounts sign in with name and password. Setting: CONSOLE_OIDC_ISSUER."),
    )


def _connection(
    scheme: str, host: str, port: int | None, ca_file: str
) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=REQUEST_S_MAX)
    context = ssl.create_default_context(cafile=ca_file or None)
    return http.client.HTTPSConnection(host, port, timeout=REQUEST_S_MAX, context=context)
