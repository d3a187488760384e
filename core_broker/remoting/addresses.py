"""Socket addresses of a connection, in text form and in record form."""

import socket

_MAPPED_V4 = "::ffff:"
_RECORD_PORT_BYTES = 4


def host_port(address: tuple[str, int, int, int] | tuple[str, int] | None) -> tuple[str, int]:
    """Return host and port of a socket's address; an IPv4-mapped IPv6 address becomes IPv4."""
    if not address:
        return "", 0
    return address[0].removeprefix(_MAPPED_V4), address[1]


def record_address(host: str, port: int) -> bytes:
    """Return an address in record form, 8 bytes; empty for IPv6 and for an unknown host."""
    if not host or ":" in host:
        return b""
    return socket.inet_pton(socket.AF_INET, host) + port.to_bytes(_RECORD_PORT_BYTES, "big")
