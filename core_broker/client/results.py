"""Results of sending and pulling, and the statuses of listeners."""

from dataclasses import dataclass
from enum import StrEnum

from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue


class SendStatus(StrEnum):
    """With all four statuses the broker stored the message; the durability differs."""

    SEND_OK = "SEND_OK"
    #: The flush to disk timed out: a power cut now may lose the message.
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    #: The replication timed out: losing the master now may lose the message.
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    #: The master has no connected replica.
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


@dataclass(frozen=True, slots=True)
class SendResult:
    status: SendStatus
    #: Unique key set by the client; for a batch, all unique keys joined by commas.
    msg_id: str
    #: Offset message id: broker address and commit-log offset; "" when absent from the answer.
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    region_id: str = "DefaultRegion"
    #: False when tracing is disabled by the broker.
    trace_on: bool = True


class PullStatus(StrEnum):
    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    #: The requested offset is outside of the queue; ``next_offset`` is inside.
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(frozen=True, slots=True)
class RawPull:
    """A pull result with an undecoded body: concatenated stored records."""

    status: PullStatus
    body: bytes
    next_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int = 0


@dataclass(frozen=True, slots=True)
class PullResult:
    status: PullStatus
    messages: list[MessageExt]
    next_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int = 0


class ConsumeStatus(StrEnum):
    """Status returned by a concurrent listener for all messages of the call."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


@dataclass(frozen=True, slots=True)
class ReconsumeLater:
    """RECONSUME_LATER with a delay chosen by the listener."""

    #: Delay level of the broker. With 0 the broker chooses by the number of retries; with -1 the
    #: message moves to the dead-letter queue immediately.
    delay_level: int = 0


class ConsumeOrderlyStatus(StrEnum):
    """Status returned by an orderly listener."""

    SUCCESS = "SUCCESS"
    #: Not consumed: the queue pauses, then the messages are delivered again.
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@dataclass(frozen=True, slots=True)
class SuspendQueue:
    """SUSPEND_CURRENT_QUEUE_A_MOMENT with a pause chosen by the listener, 10 ms to 30 s."""

    milliseconds: int
