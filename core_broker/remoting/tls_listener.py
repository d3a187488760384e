"""Listening with TLS: a port for connections with and without TLS, told apart by the first byte.

A ClientHello begins with 0x16, a RocketMQ frame with the highest byte of its length, 0 or 1. The
first byte is looked at, not taken (MSG_PEEK); the event loop then opens the connection with or
without TLS. A connection without TLS has no further costs.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext, SSLError

from core_broker.remoting.addresses import host_port
from core_broker.remoting.endpoint import Counters, Limits
from core_broker.remoting.frame_faults import FrameFaultLog
from core_broker.remoting.tls_server import ServerTls

HANDSHAKE_RECORD = b"\x16"

#: Connections accepted per call of the event loop.
_ACCEPTS = 128
#: Pause after a failed accept(), such as one without a free descriptor, s.
_ACCEPT_RETRY_S = 1.0
_SWEEP_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Admission:
    """Which connections are accepted before anything is known of them but their address."""

    #: The number of further connections.
    free: Callable[[], int]
    #: Why a peer with this address may not connect, or "".
    refusal: Callable[[str], str] = lambda host: ""
    #: When there are too many connections: close the oldest one that is silent or in a handshake,
    #: so that such peers lock nobody out; else the new connection.
    displaces_silent: bool = False


class TlsListener:
    """A listening socket and the connections before their first byte or in a handshake.

    `accept` makes the protocol of a connection. Connections without a first byte are closed after
    the idle time. Handshakes have a timeout and a maximum number; above the number, the oldest
    handshake is closed: peers that begin a handshake and fall silent cannot lock out other peers.
    Event loop only.
    """

    def __init__(
        self,
        sock: socket.socket,
        tls: ServerTls,
        accept: Callable[[], asyncio.BaseProtocol],
        admission: Admission,
        limits: Limits,
        counters: Counters,
    ) -> None:
        self._socket = sock
        self._tls = tls
        self._make_protocol = accept
        self._admission = admission
        self._limits = limits
        self._counters = counters
        self._faults = FrameFaultLog(tls.name, faults="of TLS")
        self._loop = asyncio.get_running_loop()
        #: Connections without a first byte, with their deadlines, oldest first.
        self._silent: dict[socket.socket, float] = {}
        self._opening: set[asyncio.Task[None]] = set()
        #: Handshakes, oldest first.
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)
        sock.setblocking(False)
        self._listen()

    @property
    def port(self) -> int:
        """The port of the socket."""
        return int(self._socket.getsockname()[1])

    @property
    def waiting(self) -> int:
        """Connections that are accepted and not open yet."""
        return len(self._silent) + len(self._opening) + len(self._handshakes)

    def close(self) -> None:
        """Stop listening, and close the connections that are not open yet."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._sweeper.cancel()
        if self._retry is not None:
            self._retry.cancel()
        for sock in list(self._silent):
            self._drop(sock)
        for task in (*self._opening, *self._handshakes):
            task.cancel()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS):
            try:
                sock, _peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("%s: cannot accept connections: %s", self._tls.name, error)  # noqa: TRY400
                self._loop.remove_reader(self._socket)
                self._retry = self._loop.call_later(_ACCEPT_RETRY_S, self._listen)
                return
            sock.setblocking(False)
            if not self._has_room(sock):
                self._counters.refused += 1
                sock.close()
                continue
            self._silent[sock] = self._loop.time() + self._limits.idle_close_s
            if not self._decide(sock):
                self._loop.add_reader(sock, self._readable, sock)

    def _has_room(self, sock: socket.socket) -> bool:
        """Whether the connection may stay; closes another one for it if necessary."""
        try:
            host, _ = host_port(sock.getpeername())
        except OSError:
            return False
        if reason := self._admission.refusal(host):
            self._faults.write(host, ConnectionError(reason))
            return False
        if self.waiting < self._admission.free():
            return True
        return self._admission.displaces_silent and self._displace()

    def _displace(self) -> bool:
        """Close the oldest connection without a first byte, else the oldest handshake."""
        if self._silent:
            self._drop(next(iter(self._silent)))
        elif self._handshakes:
            self._end_oldest_handshake()
        else:
            return False
        return True

    def _end_oldest_handshake(self) -> None:
        oldest = next(iter(self._handshakes))
        del self._handshakes[oldest]
        oldest.cancel()
        self._counters.tls_displaced += 1

    def _readable(self, sock: socket.socket) -> None:
        self._loop.remove_reader(sock)
        if not self._decide(sock):
            self._loop.add_reader(sock, self._readable, sock)

    def _decide(self, sock: socket.socket) -> bool:
        """Open or close a connection by its first byte; returns False without a first byte."""
        try:
            first = sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            first = b""
        del self._silent[sock]
        if not first:
            sock.close()
        elif first == HANDSHAKE_RECORD:
            self._begin_handshake(sock)
        elif self._tls.mode == "enforcing":
            self._counters.plain_refused += 1
            self._refuse(sock, "the peer does not speak TLS, and tls.server.mode is enforcing")
        else:
            task = self._loop.create_task(self._open(sock))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        return True

    def _begin_handshake(self, sock: socket.socket) -> None:
        if len(self._handshakes) >= self._limits.handshakes_max:
            self._end_oldest_handshake()
        task = self._loop.create_task(self._handshake(sock))
        self._handshakes[task] = None
        task.add_done_callback(lambda done: self._handshake_ended(done, sock))

    def _handshake_ended(self, task: asyncio.Task[None], sock: socket.socket) -> None:
        self._handshakes.pop(task, None)
        if task.cancelled():
            sock.close()  # a task that is cancelled before its first step closes nothing

    async def _open(self, sock: socket.socket, context: SSLContext | None = None) -> None:
        """Give a connection to the event loop, which owns the socket from here on."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                sock,
                ssl=context,
                ssl_handshake_timeout=self._limits.handshake_timeout_s if context else None,
            )
        except OSError:
            sock.close()
            if context is not None:
                raise

    async def _handshake(self, sock: socket.socket) -> None:
        peer = _peer_of(sock)
        try:
            context = await self._tls.context()
            if context is None:
                self._counters.tls_unavailable += 1
                self._refuse(sock, "there is no TLS certificate; see tls.server.certPath")
                return
            await self._open(sock, context)
        except OSError as error:
            self._counters.tls_failed += 1
            reason = error.reason if isinstance(error, SSLError) else str(error)
            fault = f"the TLS handshake failed: {reason or type(error).__name__}"
            self._faults.write(peer, ConnectionError(fault))
        else:
            self._counters.tls_opened += 1

    def _refuse(self, sock: socket.socket, reason: str) -> None:
        self._faults.write(_peer_of(sock), ConnectionError(reason))
        sock.close()

    def _drop(self, sock: socket.socket) -> None:
        del self._silent[sock]
        self._loop.remove_reader(sock)
        sock.close()

    def _sweep(self) -> None:
        now = self._loop.time()
        while self._silent:
            sock, deadline = next(iter(self._silent.items()))
            if deadline > now:
                break
            self._counters.silent += 1
            self._drop(sock)
        self._faults.end_minute()
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)


async def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host, as asyncio's create_server does."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, addr in dict.fromkeys((each[0], each[4]) for each in found):
            sockets.append(socket.create_server(addr, family=family, backlog=backlog))
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _peer_of(sock: socket.socket) -> str:
    try:
        host, port = host_port(sock.getpeername())
    except OSError:
        return "a peer that is gone"
    return f"{host}:{port}"
