"""Heartbeats that change nothing, straight from the read buffer: the shell around their kernel.

Clients send a heartbeat every 30 seconds and say the same nearly always. One is kept with its
connection when the plain path (clients.py) has handled it and nothing has changed by it. The same
once more changes nothing either while the tables it touches are as they were: each of them counts
its changes. See kernel/heartbeats.py.
"""

from typing import Any

from core_broker.fastpath.pulls import OPAQUE_MARK, cut
from core_broker.processors.clients import ClientProcessor, TableState
from core_broker.processors.context import BrokerContext
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.state.channels import ClientChannel

try:
    from core_broker.kernel.heartbeats import CompiledHeartbeats, KeptHeartbeat
except ImportError:
    KeptHeartbeat = CompiledHeartbeats = None

#: Longer heartbeats are not kept, so that connections cannot fill the memory with them.
KEPT_BYTES_MAX = 8 * 1024


class FastHeartbeats:
    """The heartbeats of one server that say nothing new."""

    def __init__(self, ctx: BrokerContext, clients: ClientProcessor) -> None:
        self.kernel: Any = CompiledHeartbeats(self, cut(RemotingCommand.response(), OPAQUE_MARK))
        self._ctx = ctx
        self._clients = clients
        clients.keeper = self.keep

    def keep(
        self,
        connection: Connection,
        request: RemotingCommand,
        client: ClientChannel,
        state: TableState | None,
    ) -> None:
        """Keep a heartbeat with its connection; without a state it has changed something."""
        line: Any = connection
        if state is None or len(request.body) > KEPT_BYTES_MAX:
            line.beat = None
        else:
            language = request.language.name.encode()
            line.beat = KeptHeartbeat(bytes(request.body), language, request.version, client, state)

    def renew(self, beat: "KeptHeartbeat", waited_ms: float) -> bool:
        """Note that a client was seen; False when its heartbeat needs a second look."""
        config = self._ctx.config
        if waited_ms > config.wait_time_mills_in_heartbeat_queue or not config.kernel_enable:
            return False
        if beat.state != self._clients.table_state():
            return False
        beat.client.seen_ms = self._ctx.now_ms()
        return True
