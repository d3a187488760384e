"""One POST to a receiver: checked address, no redirects, one deadline, a bounded answer.

The host name is resolved once; every address must be allowed, and the connection goes to the
checked address. So neither a redirect nor a second DNS answer leads to another host, such as the
metadata service of a cloud.
"""

import http.client
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from console.outgoing_requests import OutgoingFailed, answer_of
from console.services.alarms.results import Result
from console.services.alarms.sending.formats import Post

#: Time for one request with its answer, seconds.
REQUEST_S_MAX: Final = 10.0
#: Maximum part of an answer that is read, bytes.
ANSWER_BYTES_MAX: Final = 4_096
USER_AGENT: Final = "gantry-console"
#: Statuses below 500 that a later attempt may change.
TEMPORARY: Final = frozenset({408, 425, 429})
#: Metadata services with public-looking addresses: Alibaba Cloud.
METADATA: Final = (ip_network("100.100.100.200/32"),)
#: IPv6 networks with an IPv4 address in the last 32 bits: NAT64, and IPv4-compatible addresses.
EMBEDDING: Final = tuple(map(ip_network, ("64:ff9b::/96", "::/96")))
#: NAT64 of local networks (RFC 8215): the place of the IPv4 address depends on the gateway.
LOCAL_NAT64: Final = ip_network("64:ff9b:1::/48")


class SendFailed(Exception):
    """The receiver did not accept the notice; `is_final`: further attempts are of no use."""

    def __init__(self, code: str, *, is_final: bool = False, **values: object) -> None:
        self.result = Result(code, {name: str(value) for name, value in values.items()})
        super().__init__(self.result.english)
        self.is_final = is_final


def post(request: Post, allowed: Sequence[str]) -> tuple[int, bytes]:
    """Send a request and return status and first bytes of the answer, for statuses 200 to 299.

    `allowed` lists networks of private addresses that are permitted. Raises SendFailed.
    """
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = checked_address(host, port, allowed)
    connection = _connection(parts.scheme, host, port, address)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": USER_AGENT,
        **request.headers,
    }
    bounds: Any = {"within_s": REQUEST_S_MAX, "bytes_max": ANSWER_BYTES_MAX}
    try:
        status, body = answer_of(connection, "POST", parts, request.body, headers, **bounds)
    except OutgoingFailed as failure:
        raise SendFailed("silent", host=f"{host}:{port}", reason=failure) from failure
    if 200 <= status < 300:
        return status, body
    if 300 <= status < 400:
        raise SendFailed("redirect", status=status, is_final=True)
    text = body[:200].decode(errors="replace").strip()
    is_final = 400 <= status < 500 and status not in TEMPORARY
    code = "refused" if text else "status"
    raise SendFailed(code, status=status, text=text, is_final=is_final)


def checked_address(host: str, port: int, allowed: Sequence[str]) -> str:
    """Resolve a host name and return an address. Raises SendFailed for an address that is neither
    public nor allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SendFailed("unresolved", host=host, reason=error) from error
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if not is_allowed(address, allowed):
            raise SendFailed("private", host=host, address=address, is_final=True)
    return addresses[0]


def is_allowed(address: str, allowed: Sequence[str]) -> bool:
    """Return whether notices may go to an address."""
    found = _reached(ip_address(address.partition("%")[0]))
    if any(found in ip_network(network, strict=False) for network in allowed):
        return True
    if found in LOCAL_NAT64 or any(found in network for network in METADATA):
        return False
    return found.is_global and not found.is_multicast


def _reached(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside a mapped, compatible, 6to4, Teredo or NAT64 address: a gateway
    sends the packets there."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour
    if address.teredo is not None:
        inside = address.teredo[1]
    if any(address in network for network in EMBEDDING) and int(address) > 1:  # not ::1
        inside = IPv4Address(int(address) & 0xFFFF_FFFF)
    return inside or address


def _connection(scheme: str, host: str, port: int, address: str) -> http.client.HTTPConnection:
    """Return a connection to the checked address, with the host's name in TLS and headers."""
    if scheme == "https":
        secure = http.client.HTTPSConnection(
            host, port, timeout=REQUEST_S_MAX, context=ssl.create_default_context()
        )
        secure._create_connection = _to(address)  # type: ignore[attr-defined]
        return secure
    plain = http.client.HTTPConnection(host, port, timeout=REQUEST_S_MAX)
    plain._create_connection = _to(address)  # type: ignore[attr-defined]
    return plain


def _to(address: str) -> Any:
    """Return a function like socket.create_connection that ignores the host's name."""

    def connect(target: tuple[str, int], timeout: float, source: Any = None) -> socket.socket:
        return socket.create_connection((address, target[1]), timeout, source)

    return connect
