"""The paths that received bytes try before the slow path: contracts between server and fast paths.

    1. compiled fast path    its own asyncio protocol, which leaves what it cannot take to 2.
    2. fast path in Python   a stage of the connection, which leaves what it cannot take to 3.
    3. slow path             connection.py: splits frames, decodes commands, calls the dispatch

Stages 1 and 2 are optional; core_broker/fastpath has them, core_broker/broker/assembly.py puts them
together. All stages share the ConnectionState of the connection.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from core_broker.remoting.connection import Connection
    from core_broker.remoting.endpoint import Endpoint


class IntakeStage(Protocol):
    """A fast path that shares the connections' read; one object serves all connections."""

    def take(self, connection: "Connection", data: memoryview) -> int:
        """Handle requests from the beginning of `data` on; returns the number of bytes they had.

        A request is taken whole or not at all. 0 when the first request is for the slow path.
        """

    def slow_path_begins(self) -> None:
        """Forget what was found out about the broker: the slow path may change anything."""


class FrontStage(Protocol):
    """A fast path that reads from the socket itself, in front of a Connection."""

    def accept(
        self, endpoint: "Endpoint", python: IntakeStage | None
    ) -> asyncio.BaseProtocol | None:
        """Make a connection and the protocol that asyncio calls for it; None while disabled.

        Bytes that this stage leaves go to the connection, which tries `python` next.
        """


class Intake(NamedTuple):
    """The fast paths of a server, in the order in which connections try them."""

    compiled: FrontStage | None = None
    python: IntakeStage | None = None
