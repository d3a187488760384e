"""Queue locks for orderly consumers: codes 41 and 42.

Compatible with RocketMQ's AdminBrokerProcessor.lockBatchMQ and unlockBatchMQ.
"""

from typing import TypeVar

from core_broker.errors import RequestRefused
from core_broker.processors.admission import NAME_CHARS_MAX, check_topic_name
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

B = TypeVar("B", LockBatchRequestBody, UnlockBatchRequestBody)

#: Maximum queues in one request. Clients with more queues send several requests.
QUEUES_PER_REQUEST_MAX = 10_000


class LockProcessor:
    """Grants and releases locks."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def lock(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """LOCK_BATCH_MQ (41): answers the granted queues."""
        body = _body(LockBatchRequestBody, request)
        _check_names(body)
        granted = self._ctx.locks.lock(
            body.consumer_group, body.client_id, body.mq_set, self._ctx.now_ms()
        )
        return RemotingCommand.response(
            body=encode_body(LockBatchResponseBody(lock_ok_mq_set=granted))
        )

    def unlock(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """UNLOCK_BATCH_MQ (42)."""
        body = _body(UnlockBatchRequestBody, request)
        self._ctx.locks.unlock(body.consumer_group, body.client_id, body.mq_set)
        return RemotingCommand.response()


def _body(kind: type[B], request: RemotingCommand) -> B:
    """The body of a request; raises RequestRefused when it would block the event loop."""
    body = decode_request(kind, request.body)
    if len(body.mq_set) > QUEUES_PER_REQUEST_MAX:
        raise _too_much("queues", len(body.mq_set), QUEUES_PER_REQUEST_MAX)
    return body


def _too_much(what: str, count: int, limit: int) -> RequestRefused:
    return RequestRefused(
        ResponseCode.SYSTEM_ERROR, f"a lock request with {count} {what}; {limit} are possible"
    )


def _check_names(body: LockBatchRequestBody) -> None:
    """Raise RequestRefused for names that are too long for the table of locks."""
    for name in {body.consumer_group, *(queue.topic for queue in body.mq_set)}:
        check_topic_name(name)
    others = {body.client_id, *(queue.broker_name for queue in body.mq_set)}
    if max(map(len, others)) > NAME_CHARS_MAX:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR, f"a name has more than {NAME_CHARS_MAX} characters"
        )
