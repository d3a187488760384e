"""What the client gives back: outcomes of sending, pulling and consuming."""

from dataclasses import dataclass
from enum import StrEnum

from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue


class SendStatus(StrEnum):
    """All four mean that the broker stored the message; they differ in what survives a crash."""

    SEND_OK = "SEND_OK"
    #: The broker's disk did not confirm in time: a power cut now may lose the message.
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    #: The replica did not confirm in time: losing the master now may lose the message.
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    #: There is no replica to confirm.
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


@dataclass(frozen=True, slots=True)
class SendResult:
    status: SendStatus
    #: The unique key the client gave the message; for a batch, all of them joined by commas.
    msg_id: str
    #: Where the broker put it; "" when the broker did not say.
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    region_id: str = "DefaultRegion"
    #: False when the broker asks clients not to trace.
    trace_on: bool = True


class PullStatus(StrEnum):
    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    #: The offset asked for is outside of the queue; ``next_offset`` is inside.
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(frozen=True, slots=True)
class RawPull:
    """A pull whose body was not decoded: stored records one after the other."""

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
    """What a listener answers for all messages it was given."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


@dataclass(frozen=True, slots=True)
class ReconsumeLater:
    """RECONSUME_LATER with a delay of the listener's choice."""

    #: A delay level of the broker; 0 lets the broker choose by the number of tries, and -1 makes a
    #: dead letter of the message at once.
    delay_level: int = 0


class ConsumeOrderlyStatus(StrEnum):
    """What a listener answers that consumes in order."""

    SUCCESS = "SUCCESS"
    #: Not consumed: the queue pauses, then the same messages come again.
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@dataclass(frozen=True, slots=True)
class SuspendQueue:
    """SUSPEND_CURRENT_QUEUE_A_MOMENT with a pause of the listener's choice, 10 ms to 30 s."""

    milliseconds: int
