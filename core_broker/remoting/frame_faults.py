"""The log lines about malformed frames: rate-limited, and with the protocol of the first bytes.

A port scanner or a probe of the wrong protocol may open many connections per second. The counters
of the endpoint count every malformed frame; the log has only the first ones of each minute.
"""

import logging
import time
from collections.abc import Callable

#: Maximum number of log lines about malformed frames per minute, of all peers of an endpoint.
LINES_PER_MINUTE_MAX = 10

_MINUTE_S = 60.0
#: First bytes of HTTP requests, of the preface of HTTP/2 and of HTTP answers.
_HTTP_STARTS = frozenset(
    [
        b"GET ",
        b"HEAD",
        b"POST",
        b"PUT ",
        b"DELE",
        b"CONN",
        b"OPTI",
        b"TRAC",
        b"PATC",
        b"PRI ",
        b"HTTP",
    ]
)
#: First two bytes of a TLS record with a handshake, and the later byte for a ClientHello.
_TLS_HANDSHAKE = b"\x16\x03"
_CLIENT_HELLO_AT = 5
_CLIENT_HELLO = 1

log = logging.getLogger(__name__)


def foreign_protocol(head: bytes) -> str:
    """Return the protocol that the first eight bytes of a frame belong to, "" when unknown."""
    if head[:4] in _HTTP_STARTS:
        return "HTTP"
    if head.startswith(_TLS_HANDSHAKE) and head[_CLIENT_HELLO_AT] == _CLIENT_HELLO:
        return "a TLS ClientHello"
    return ""


class FrameFaultLog:
    """Writes the log lines about malformed frames of one endpoint. Event loop only."""

    def __init__(
        self,
        name: str,
        clock_s: Callable[[], float] = time.monotonic,
        faults: str = "of malformed frames",
    ) -> None:
        self._name = name
        self._faults = faults
        self._clock_s = clock_s
        self._minute_end_s = 0.0
        self._lines = 0
        self._suppressed = 0

    def write(self, peer: str, fault: Exception) -> None:
        """Log the fault that closes the connection to a peer, or count the fault."""
        self.end_minute()
        if self._lines == LINES_PER_MINUTE_MAX:
            self._suppressed += 1
            return
        if not self._lines:
            self._minute_end_s = self._clock_s() + _MINUTE_S
        self._lines += 1
        log.warning("%s: closing %s: %s", self._name, peer, fault)

    def end_minute(self) -> None:
        """Log the number of suppressed lines, if the minute is over."""
        if not self._lines or self._clock_s() < self._minute_end_s:
            return
        if self._suppressed:
            log.warning(
                "%s: closed %d more connections because %s; the log has at most %d such lines"
                " per minute",
                self._name,
                self._suppressed,
                self._faults,
                LINES_PER_MINUTE_MAX,
            )
        self._lines = self._suppressed = 0
