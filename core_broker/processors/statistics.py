"""Broker statistics: code 315.

Compatible with RocketMQ's AdminBrokerProcessor.viewBrokerStatsData.
"""

from core_broker.errors import RequestRefused
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import encode_body
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import ViewBrokerStatsDataRequestHeader


class StatisticsProcessor:
    """Answers the counters of `state.statistics`."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def view(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """VIEW_BROKER_STATS_DATA (315)."""
        header = request.header(ViewBrokerStatsDataRequestHeader)
        data = self._ctx.statistics.view(header.stats_name, header.stats_key)
        if data is None:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"The stats <{header.stats_name}> <{header.stats_key}> not exist",
            )
        return RemotingCommand.response(body=encode_body(data))
