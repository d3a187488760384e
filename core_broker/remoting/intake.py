"""The intake of received bytes: interfaces between a server and the fast paths.

    1. compiled fast path    a separate asyncio protocol, or reads of its own; leaves other requests
                             to stage 2
    2. fast path in Python   a stage of the connection; leaves other requests to stage 3
    3. slow path             connection.py: splits frames, decodes commands, calls the dispatch

Stages 1 and 2 are optional. core_broker/fastpath implements them, core_broker/broker/assembly.py
builds the pipeline. All stages share the ConnectionState of the connection.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from core_broker.remoting.connection import Connection
    from core_broker.remoting.endpoint import Endpoint


class IntakeStage(Protocol):
    """A fast path behind the connections' reads; one object serves all connections."""

    def take(self, connection: "Connection", data: memoryview) -> int:
        """Handle requests from the beginning of `data`; returns the number of handled bytes.

        Only whole requests are handled. Returns 0 when the first request is for the slow path.
        """

    def slow_path_begins(self) -> None:
        """Drop cached facts about the broker, because the slow path may change the broker."""


class FrontStage(Protocol):
    """A fast path with its own socket reads, in front of a Connection."""

    def accept(
        self, endpoint: "Endpoint", python: IntakeStage | None
    ) -> asyncio.BaseProtocol | None:
        """Create a connection and return its asyncio protocol; None while disabled.

        Bytes left by the stage go to the connection, and there to `python` first.
        """


class Intake(NamedTuple):
    """The fast paths of a server, in the order of use."""

    compiled: FrontStage | None = None
    python: IntakeStage | None = None
