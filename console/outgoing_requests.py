"""One outgoing HTTP request: a deadline for the whole, a bounded answer, no redirects.

Shared by the provider of sign-ins and the receivers of alarms.
"""

import http.client
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import SplitResult


class OutgoingFailed(Exception):
    """The peer did not answer in time, or not with HTTP; the text is the reason."""


def answer_of(
    connection: http.client.HTTPConnection,
    method: str,
    parts: SplitResult,
    body: bytes | str | None,
    headers: Mapping[str, str],
    *,
    within_s: float,
    bytes_max: int,
) -> tuple[int, bytes]:
    """Send a request to the path of `parts`; return status and at most `bytes_max` bytes of the
    answer. Closes the connection. Raises OutgoingFailed.
    """
    # Time-outs of sockets are per read, and a close does not wake a read: the timer ends an answer
    # that trickles.
    timer = threading.Timer(within_s, _abort, (connection,))
    timer.start()
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(bytes_max)
    # AttributeError: http.client reads from a socket that the timer has ended.
    except (OSError, http.client.HTTPException, ValueError, AttributeError) as problem:
        raise OutgoingFailed(str(problem) or type(problem).__name__) from problem
    finally:
        timer.cancel()
        connection.close()


def _abort(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
