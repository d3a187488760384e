"""The interface between a server and the compiled fast path in front of its connections.

    1. compiled fast path    a separate asyncio protocol, or reads of its own; leaves other requests
                             to stage 2
    2. slow path             connection.py: splits frames, decodes commands, calls the dispatch

Stage 1 is optional. core_broker/fastpath implements the stage, core_broker/broker/assembly.py gives
the stage to the server. Both stages share the ConnectionState of the connection.
"""

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core_broker.remoting.endpoint import Endpoint


class FrontStage(Protocol):
    """A fast path with its own socket reads, in front of a Connection."""

    def accept(self, endpoint: "Endpoint") -> asyncio.BaseProtocol | None:
        """Create a connection and return its asyncio protocol; None while disabled.

        Bytes left by the stage go to the connection.
        """
