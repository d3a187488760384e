"""End of transactions: codes 37 and 323.

    producer        37 commit      store the message under its real topic, and an op message
                    37 rollback    store an op message
                    37 unknown     no effect; the broker sends another check later
    administrator   323            turn a discarded message into a half message again

Message and op message are staged in one event-loop iteration, the message first: at worst a crash
between the two writes delivers the message twice. Compatible with RocketMQ's
EndTransactionProcessor and AdminBrokerProcessor.
"""

import logging

from core_broker.errors import ClientError, ProtocolError, RequestRefused
from core_broker.message import sysflag
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import PROPERTY_DELAY_TIME_LEVEL, PROPERTY_PRODUCER_GROUP
from core_broker.message.record import decode_record
from core_broker.message.topics import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from core_broker.processors.context import BrokerContext
from core_broker.processors.delays import delay, requested_level
from core_broker.processors.failed_messages import ensure_system_topic
from core_broker.processors.put_answers import put_refusal
from core_broker.processors.turn import Turn
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    EndTransactionRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
)
from core_broker.state.half_messages import (
    committed,
    op_message,
    real_queue,
    resumed,
)
from core_broker.store import PutResult, PutStatus

log = logging.getLogger(__name__)

_ENDINGS = frozenset({sysflag.TRANSACTION_COMMIT, sysflag.TRANSACTION_ROLLBACK})


class TransactionProcessor:
    """Ends transactions on request of their producers."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._ctx = ctx
        self._turn = turn

    def end(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """END_TRANSACTION (37). Clients send the request one-way, so refusals are also logged."""
        ctx = self._ctx
        header = request.header(EndTransactionRequestHeader)
        if ctx.is_slave:
            raise RequestRefused(ResponseCode.SLAVE_NOT_AVAILABLE, "")
        if header.commit_or_rollback not in _ENDINGS:
            log.info("%s reports transaction %s as unknown", connection.peer, header.msg_id)
            return RemotingCommand.response()
        try:
            half = self._find(header)
            ctx.check_stored(connection, request, _real_topic(half))
            if header.commit_or_rollback == sysflag.TRANSACTION_COMMIT:
                self._commit(half)
            self._settle(half)
        except RequestRefused as refusal:
            log.warning("%s cannot end a transaction: %s", connection.peer, refusal.remark)
            raise
        return self._turn.confirm(connection, request, RemotingCommand.response())

    def _find(self, header: EndTransactionRequestHeader) -> MessageExt:
        """The half message of the request; raises RequestRefused when group or offset differ."""
        half = self._read(header.commit_log_offset)
        # A record of another topic would settle an unrelated half message with the same offset.
        if half is None or half.topic != TRANS_HALF_TOPIC:
            raise _refused("Find prepared transaction message failed")
        if half.properties.get(PROPERTY_PRODUCER_GROUP) != header.producer_group:
            raise _refused("The producer group wrong")
        if half.queue_offset != header.tran_state_table_offset:
            raise _refused("The transaction state table offset wrong")
        return half

    def _commit(self, half: MessageExt) -> None:
        queue = real_queue(half)
        if queue is None:
            raise _refused("the half message has no valid REAL_TOPIC and REAL_QID")
        inner = committed(half, *queue)
        if PROPERTY_DELAY_TIME_LEVEL in inner.properties:
            level = requested_level(inner)
            if level > 0:
                delay(inner, level, self._ctx.delay_levels)
        self._put(inner)

    def _settle(self, half: MessageExt) -> None:
        self._put(op_message(half, self._ctx.host, self._ctx.now_ms()))

    def resume(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """RESUME_CHECK_HALF_MESSAGE (323)."""
        msg_id = request.header(ResumeCheckHalfMessageRequestHeader).msg_id or ""
        try:
            offset = parse_offset_msg_id(msg_id)[2]
        except ClientError as error:
            raise _refused(str(error)) from None
        message = self._read(offset)
        if (
            message is None
            or message.topic != TRANS_CHECK_MAX_TIME_TOPIC
            or real_queue(message) is None
        ):
            raise _refused("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
        self._ctx.check_stored(connection, request, _real_topic(message))
        ensure_system_topic(self._ctx, TRANS_HALF_TOPIC)
        self._put(resumed(message))
        return self._turn.confirm(connection, request, RemotingCommand.response())

    def _read(self, offset_physical: int) -> MessageExt | None:
        record = self._ctx.store.read_at(offset_physical)
        try:
            return decode_record(record) if record is not None else None
        except ProtocolError as error:
            log.warning("the record at offset %d is unreadable: %s", offset_physical, error)
            return None

    def _put(self, inner: MessageInner) -> PutResult:
        ctx = self._ctx
        result = ctx.store.put(inner)
        if result.status is not PutStatus.PUT_OK:
            raise put_refusal(ctx.config, result.status)
        ctx.statistics.put(inner.topic, inner.queue_id, result.size)
        return result


def _real_topic(half: MessageExt) -> str:
    """The topic of the producer, or of the half message itself when its queue is invalid."""
    queue = real_queue(half)
    return queue[0] if queue is not None else half.topic


def _refused(remark: str) -> RequestRefused:
    return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
