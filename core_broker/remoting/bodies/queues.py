"""Locks, offsets and assignments of single queues.

Compatible with the RocketMQ classes of the same names. Tables by queue have object keys.
"""

from msgspec import Struct, field

from core_broker.remoting.bodies.enum_names import EnumName, MessageModel, name_ordinals
from core_broker.remoting.bodies.route import MessageQueue

#: MessageRequestMode of a queue whose messages are pulled.
REQUEST_MODE_PULL = "PULL"


class LockBatchRequestBody(Struct, rename="camel", kw_only=True):
    """Request of LOCK_BATCH_MQ (41)."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = []


class LockBatchResponseBody(Struct, rename="camel", kw_only=True):
    """Answer to LOCK_BATCH_MQ: the granted queues."""

    lock_ok_mq_set: list[MessageQueue] = field(default_factory=list, name="lockOKMQSet")


class UnlockBatchRequestBody(Struct, rename="camel", kw_only=True):
    """Request of UNLOCK_BATCH_MQ (42)."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = []


class ResetOffsetBody(Struct, rename="camel", kw_only=True):
    """New offsets of a group: answer to 222, request of 220."""

    offset_table: dict[MessageQueue, int] = {}


class MessageQueueForC(Struct, rename="camel", kw_only=True):
    """A queue with its offset, for C++ clients."""

    topic: str
    broker_name: str
    queue_id: int
    offset: int


class ResetOffsetBodyForC(Struct, rename="camel", kw_only=True):
    """ResetOffsetBody in the form for C++ clients."""

    offset_table: list[MessageQueueForC] = []


class QueryCorrectionOffsetBody(Struct, rename="camel", kw_only=True):
    """Answer to 308: correction offsets, by queue id."""

    correction_offsets: dict[int, int] = {}


class GetConsumerStatusBody(Struct, rename="camel", kw_only=True):
    """Answer to 221 (offset by queue) and 223 (offset by client id and queue)."""

    message_queue_table: dict[MessageQueue, int] = {}
    consumer_table: dict[str, dict[MessageQueue, int]] = {}


class QueryAssignmentRequestBody(Struct, rename="camel", kw_only=True):
    """Request of QUERY_ASSIGNMENT (400): a consumer's own queues of a topic."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str
    message_model: EnumName = MessageModel.CLUSTERING.value

    def __post_init__(self) -> None:
        name_ordinals(self, message_model=MessageModel)


class MessageQueueAssignment(Struct, rename="camel", kw_only=True):
    """A queue for the consumer, and the mode of its requests for messages."""

    message_queue: MessageQueue
    mode: str = REQUEST_MODE_PULL


class QueryAssignmentResponseBody(Struct, rename="camel", kw_only=True):
    """Answer to 400. None: the assignment is unknown, and the consumer keeps its queues."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None
