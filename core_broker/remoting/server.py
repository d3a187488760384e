"""The remoting server of broker and name server."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from core_broker.remoting.connection import Connection
from core_broker.remoting.descriptors import connections_possible
from core_broker.remoting.endpoint import Dispatch, Endpoint, Limits
from core_broker.remoting.intake import FrontStage
from core_broker.remoting.iteration import IterationEnd, Step
from core_broker.remoting.ports import Ports
from core_broker.remoting.tls_listener import Admission
from core_broker.remoting.tls_server import ServerTls

_DRAIN_CHECK_S = 0.02


class RemotingServer(Endpoint):
    """Accepts connections on any number of ports, and dispatches requests.

    `intake` takes requests first; `dispatch` is the slow path for the rest. `dispatch` runs on the
    event loop to completion, and returns the answer, or None for a later answer through
    `connection.answer`. An exception becomes the answer: RequestRefused with the error's code,
    other errors with SYSTEM_ERROR. `refusal` returns why a peer with an address may not connect,
    or "". `on_stopped` runs after the last connection is closed. With
    `tls` all ports accept connections with TLS, and without TLS unless the mode is enforcing.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        name: str,
        limits: Limits | None = None,
        intake: FrontStage | None = None,
        iteration_end: IterationEnd | None = None,
        on_close: Callable[[Connection], None] | None = None,
        on_resume: Callable[[Connection], None] | None = None,
        on_stopped: Step | None = None,
        tls: ServerTls | None = None,
        refusal: Callable[[str], str] = lambda host: "",
    ) -> None:
        limits = limits or Limits()
        super().__init__(
            dispatch,
            name=name,
            limits=replace(
                limits, connections_max=min(limits.connections_max, connections_possible())
            ),
            iteration_end=iteration_end or IterationEnd(),
            on_close=on_close,
            on_resume=on_resume,
        )
        self._intake = intake
        self._on_stopped = on_stopped
        self._refusal = refusal
        #: The TLS settings of all ports; None for ports without TLS.
        self.tls = None if tls is None or tls.mode == "disabled" else tls
        self._ports = Ports(
            self.accept, self.tls, self.limits, self.counters, Admission(self._free, refusal)
        )

    async def listen(self, host: str, port: int) -> int:
        """Listen on a further port, 0 for any free port; returns the actual port."""
        self.watchdog.start()
        return await self._ports.listen(host, port)

    def opened(self, connection: Connection) -> bool:
        """Add a new connection; returns False above the limit, and for a refused address."""
        if reason := self._refusal(connection.peer_host):
            self.counters.refused += 1
            self._frame_faults.write(connection.peer, ConnectionError(reason))
            return False
        return super().opened(connection)

    def _free(self) -> int:
        return self.limits.connections_max - len(self.connections)

    def accept(self) -> asyncio.BaseProtocol:
        """Create a connection; returns the asyncio protocol: the fast path or the connection."""
        first = None if self._intake is None else self._intake.accept(self)
        return first or Connection(self)

    async def close(self, drain_timeout_s: float = 0.0) -> None:
        """Stop listening, wait until every request is answered or the timeout is over, close."""
        self._ports.close()
        await self._drain(drain_timeout_s)
        await self._close_all("the server is shutting down")
        self.watchdog.stop()
        if self._on_stopped is not None:
            self._on_stopped()

    async def _drain(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        # asyncio has no event for drained transports, so the server polls them.
        while loop.time() < deadline and not self._is_drained():  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_CHECK_S)

    def _is_drained(self) -> bool:
        return all(connection.is_drained for connection in self.connections)
