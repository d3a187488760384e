"""Who may read /metrics and /varz: programs on this machine, or holders of a token.

The pages name topics, groups, addresses and folders. /livez and /readyz stay open for probes.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

#: Minimum and maximum length of a token, bytes.
TOKEN_BYTES_MIN, TOKEN_BYTES_MAX = 16, 1024
#: Headers that proxies add: the client behind the proxy may be on another machine.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


class UnusableToken(ValueError):
    """The token file cannot be used; the text names the cause."""


@dataclass(frozen=True, slots=True)
class MetricsAccess:
    """The rule of one process. With a token, every reader sends the token, also on this machine: a
    proxy on this machine may forward requests of others. `setting` names the token's file setting.
    """

    setting: str
    token: bytes = b""

    def why_denied(self, peer: str, own: str, headers: Mapping[str, str]) -> str:
        """Return "" for an allowed reader, else cause and remedy.

        `peer` and `own` are the addresses of both ends of the connection. The names of `headers`
        are in lower case, the values decoded as Latin-1.
        """
        if self.token:
            scheme, _, sent = headers.get("authorization", "").partition(" ")
            # HTTP servers decode headers as Latin-1.
            is_known = hmac.compare_digest(sent.strip().encode("latin-1", "replace"), self.token)
            if scheme.lower() == "bearer" and is_known:
                return ""
            return f"Send “Authorization: Bearer …” with the token in the file of {self.setting}."
        is_forwarded = any(name in headers for name in PROXY_HEADERS)
        if is_same_machine(peer, own) and not is_forwarded and names_address(headers):
            return ""
        return (
            "Without a token, only programs on this machine read this page, at 127.0.0.1. Set "
            f"{self.setting} to a file with a token, and send “Authorization: Bearer TOKEN”."
        )


def read_token(file: str) -> bytes:
    """Return the token in a file, b"" for no file; raises UnusableToken."""
    if not file:
        return b""
    try:
        with Path(file).expanduser().open("rb") as opened:
            token = opened.read(TOKEN_BYTES_MAX + 2).strip()
    except OSError as problem:
        raise UnusableToken(f"a readable file ({problem.strerror})") from None
    if not TOKEN_BYTES_MIN <= len(token) <= TOKEN_BYTES_MAX:
        raise UnusableToken(
            f"a file with a token of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes, not {len(token)}"
        )
    return token


def is_same_machine(peer: str, own: str) -> bool:
    """Return True for a loopback address, and for a connection from an address to itself."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback) or peer == own


def names_address(headers: Mapping[str, str]) -> bool:
    """Return True when the Host header is localhost, an IP address or absent.

    A web page can resolve its own host name to 127.0.0.1 (DNS rebinding) and read the answer in the
    operator's browser; such requests carry the name of the page's host.
    """
    host = headers.get("host", "")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name in {"", "localhost"}:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
