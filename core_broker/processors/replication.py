"""Replication as administrators see it: codes 907, 908 and 1007.

Compatible with RocketMQ 5.3.3's AdminBrokerProcessor.
"""

from core_broker.errors import RequestRefused
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import HARuntimeInfo, encode_body
from core_broker.remoting.bodies.replicas import EpochEntryCache, EpochEntryInfo
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.controller import ResetMasterFlushOffsetHeader


class ReplicationProcessor:
    """Reads the state of replication; changes only a number for display."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        #: The flushed offset of the master as an administrator gave it last. Nothing depends on it.
        self._master_flush_offset = 0

    def ha_status(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_HA_STATUS (907): the slaves of a master, or the progress of a slave."""
        replicas = self._ctx.replicas
        if replicas is None:
            body = HARuntimeInfo(master_commit_log_max_offset=self._ctx.store.max_offset_physical)
        else:
            body = replicas.status()
        if self._ctx.ha_client_info is not None:
            body.master = False
            body.ha_client_runtime_info = self._ctx.ha_client_info()
            body.ha_client_runtime_info.master_flush_offset = self._master_flush_offset
        return RemotingCommand.response(body=encode_body(body))

    def reset_flush_offset(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """RESET_MASTER_FLUSH_OFFSET (908): set the number of 907; a master ignores the request."""
        header = request.header(ResetMasterFlushOffsetHeader)
        if self._ctx.is_slave:
            self._master_flush_offset = header.master_flush_offset
        return RemotingCommand.response()

    def epochs(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_EPOCH_CACHE (1007): which master wrote which range of the log."""
        config = self._ctx.config
        if not config.enable_controller_mode:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
        entries = [
            EpochEntryInfo(
                epoch=entry.epoch, start_offset=entry.start_offset, end_offset=entry.end_offset
            )
            for entry in self._ctx.store.epochs.cache.entries()
        ]
        return RemotingCommand.response(
            body=encode_body(
                EpochEntryCache(
                    cluster_name=config.broker_cluster_name,
                    broker_name=config.broker_name,
                    broker_id=config.broker_id,
                    epoch_list=entries,
                    max_offset=self._ctx.store.max_offset_physical,
                )
            )
        )
