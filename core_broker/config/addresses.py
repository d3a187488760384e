"""Addresses in settings: the machine's own address, and the syntax of name server addresses."""

import re
import socket
from functools import cache

from core_broker.limits import PORT_MAX

_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:;,\[\]]+):\d{1,5}")


@cache
def local_address() -> str:
    """Return this machine's outbound address, or loopback when there is no network.

    Connecting a datagram socket sends no packet; Linux only chooses the source address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def is_address_list(text: str) -> bool:
    """Return whether the text is `host:port` addresses separated by ";"."""
    parts = [part.strip() for part in text.strip(";").split(";")]
    return all(
        _HOST_AND_PORT.fullmatch(part) and 0 < int(part.rpartition(":")[2]) <= PORT_MAX
        for part in parts
    )
