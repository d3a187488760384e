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
    """Removes what is no longer needed before its time."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def expired_queues(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_EXPIRED_CONSUMEQUEUE (306): queues whose messages are all gone from the log."""
        self._ctx.store.clean_expired_queues()
        return RemotingCommand.response()

    def unused_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_UNUSED_TOPIC (316): queues of topics that no longer exist."""
        for topic in self._ctx.store.topics_on_disk():
            # The op queue of transactions belongs to no topic of the table; the broker needs it.
            if self._ctx.topics.get(topic) is None and topic != TRANS_OP_HALF_TOPIC:
                log.info("removing the queues of %s, which is no topic any more", topic)
                self._ctx.store.delete_topic(topic)
        return RemotingCommand.response()

    def expired_log(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """DELETE_EXPIRED_COMMITLOG (329): old log files, without waiting for deleteWhen."""
        self._ctx.store.delete_expired_files()
        return RemotingCommand.response()
