"""Cleaning on demand: codes 306, 316 and 329.

Compatible with RocketMQ's AdminBrokerProcessor.
"""

import logging

from core_broker.message.topics import TRANS_OP_HALF_TOPIC
from core_broker.processors.context import BrokerContext
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

log = logging.getLogger(__name__)


class CleaningProcessor:
    """Removes expired files and unused queues ahead of the schedule."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def expired_queues(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_EXPIRED_CONSUMEQUEUE (306): queue files without messages in the commit log."""
        self._ctx.store.clean_expired_queues()
        return RemotingCommand.response()

    def unused_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_UNUSED_TOPIC (316): queues of deleted topics."""
        for topic in self._ctx.store.topics_on_disk():
            # The op topic of transactions is not in the topic table, but its queue is needed.
            if self._ctx.topics.get(topic) is None and topic != TRANS_OP_HALF_TOPIC:
                log.info("removing the queues of the deleted topic %s", topic)
                self._ctx.store.delete_topic(topic)
        return RemotingCommand.response()

    def expired_log(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """DELETE_EXPIRED_COMMITLOG (329): expired log files, at once instead of at deleteWhen."""
        self._ctx.store.delete_expired_files()
        return RemotingCommand.response()
