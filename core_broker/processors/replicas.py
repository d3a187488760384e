"""Requests between the brokers of a set and from controllers: codes 906 and 1008.

Compatible with RocketMQ 5.3.3's AdminBrokerProcessor.
"""

from core_broker.processors.context import BrokerContext, Handler
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.controller import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
)


class ReplicasProcessor:
    """Answers about the replication of this broker, and takes notices of controllers."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            Code.EXCHANGE_BROKER_HA_INFO: self.ha_info,
            Code.NOTIFY_BROKER_ROLE_CHANGED: self.role_changed,
        }

    def ha_info(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """906: a master tells where slaves replicate from.

        The notice of an address by a master is accepted without an effect: slaves here ask.
        """
        ctx = self._ctx
        if request.header(ExchangeHAInfoRequestHeader).master_ha_address or ctx.replicas is None:
            return RemotingCommand.response()
        return RemotingCommand.response(
            header=ExchangeHAInfoResponseHeader(
                master_ha_address=ctx.ha_addr,
                master_flush_offset=ctx.store.max_offset_physical,
                master_address=ctx.addr,
            )
        )

    def role_changed(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """1008: the controllers have elected a master, or changed the sync-state set.

        The content is not read: the notice leads to a question to the controllers.
        """
        if self._ctx.role_notice is not None:
            self._ctx.role_notice()
        return RemotingCommand.response()
