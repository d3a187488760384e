"""The shell around the kernel's taker of heartbeats (kernel/heartbeats.py).

Clients repeat the heartbeat every 30 seconds, nearly always without a change. A heartbeat without
effect on the slow path (processors/clients.py) is kept with the connection. While the tables behind
heartbeats are unchanged, equal bytes have no effect either: each table counts the changes.
"""

from core_broker.fastpath.contracts import (
    KEPT_HEARTBEAT_BYTES_MAX,
    HeartbeatTaker,
    KeptHeartbeat,
)
from core_broker.fastpath.templates import success_template
from core_broker.kernel.fast_protocol import FastProtocol
from core_broker.kernel.heartbeats import CompiledHeartbeats
from core_broker.kernel.heartbeats import KeptHeartbeat as CompiledKeptHeartbeat
from core_broker.processors.clients import ClientProcessor, TableState
from core_broker.processors.context import BrokerContext
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.state.channels import ClientChannel


class FastHeartbeats:
    """Repeated heartbeats of a server: the taker, and a HeartbeatCache."""

    def __init__(self, ctx: BrokerContext, clients: ClientProcessor) -> None:
        self.taker: HeartbeatTaker = CompiledHeartbeats(self, success_template())
        self._ctx = ctx
        self._clients = clients

    def put(
        self,
        connection: Connection,
        request: RemotingCommand,
        client: ClientChannel,
        state: TableState | None,
    ) -> None:
        """Keep a handled heartbeat; without `state` (a table changed) drop the kept heartbeat."""
        protocol = connection.writer
        if not isinstance(protocol, FastProtocol):
            return
        if state is None or len(request.body) > KEPT_HEARTBEAT_BYTES_MAX:
            protocol.kept_heartbeat = None
        else:
            language = request.language.name.encode()
            protocol.kept_heartbeat = CompiledKeptHeartbeat(
                bytes(request.body), language, request.version, client, state
            )

    # Called by the taker

    def renew(self, heartbeat: KeptHeartbeat, waited_ms: float) -> bool:
        """Note that a client is alive; False when the slow path must handle the heartbeat."""
        config = self._ctx.config
        if waited_ms > config.wait_time_mills_in_heartbeat_queue or not config.kernel_enable:
            return False
        if heartbeat.state != self._clients.table_state():
            return False
        heartbeat.client.seen_ms = self._ctx.now_ms()
        return True
