"""Headers of sending: codes 10, 310, 320, 323 to 326, 36, 37, 39.

Compatible with the RocketMQ classes of the same names. Code 310 carries the fields of code 10 under
one-letter names to save bytes; attributes have the long names in both.
"""

import msgspec

from core_broker.remoting.ext_fields import Boolean, Header, Int, Long


class SendMessageRequestHeader(Header, gc=False):
    """Request of SEND_MESSAGE (10) and SEND_REPLY_MESSAGE (324)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str = ""
    reconsume_times: Int = 0
    unit_mode: Boolean = False
    max_reconsume_times: Int | None = None
    batch: Boolean = False
    #: Name of the target broker.
    broker_name: str | None = msgspec.field(default=None, name="bname")

    def to_v1(self) -> "SendMessageRequestHeader":
        """The header in the form of SEND_MESSAGE (10), from either form."""
        return self


class SendMessageRequestHeaderV2(SendMessageRequestHeader, gc=False):
    """Request of SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE_V2 (325)."""

    producer_group: str = msgspec.field(name="a")
    topic: str = msgspec.field(name="b")
    default_topic: str = msgspec.field(name="c")
    default_topic_queue_nums: Int = msgspec.field(name="d")
    queue_id: Int = msgspec.field(name="e")
    sys_flag: Int = msgspec.field(name="f")
    born_timestamp: Long = msgspec.field(name="g")
    flag: Int = msgspec.field(name="h")
    properties: str = msgspec.field(default="", name="i")
    reconsume_times: Int = msgspec.field(default=0, name="j")
    unit_mode: Boolean = msgspec.field(default=False, name="k")
    max_reconsume_times: Int | None = msgspec.field(default=None, name="l")
    batch: Boolean = msgspec.field(default=False, name="m")
    broker_name: str | None = msgspec.field(default=None, name="n")


class SendMessageResponseHeader(Header, gc=False):
    """Answer to every kind of send. `msg_id` is the offset id; of a batch, ids joined by commas."""

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    region_id: str | None = msgspec.field(default=None, name="MSG_REGION")
    trace_on: Boolean | None = msgspec.field(default=None, name="TRACE_ON")


class ConsumerSendMsgBackRequestHeader(Header):
    """Request of CONSUMER_SEND_MSG_BACK (36). Delay level 0: broker's choice; -1: dead letter."""

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: Boolean = False
    max_reconsume_times: Int | None = None


class EndTransactionRequestHeader(Header):
    """Request of END_TRANSACTION (37); `commit_or_rollback` holds transaction bits of a sysflag."""

    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    msg_id: str
    topic: str | None = None
    from_transaction_check: Boolean = False
    transaction_id: str | None = None
    broker_name: str | None = msgspec.field(default=None, name="bname")


class CheckTransactionStateRequestHeader(Header):
    """Request of CHECK_TRANSACTION_STATE (39), broker to producer, one-way."""

    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None


class ResumeCheckHalfMessageRequestHeader(Header):
    """Request of RESUME_CHECK_HALF_MESSAGE (323); `msg_id` is an offset id."""

    msg_id: str | None = None
    topic: str | None = None


class ReplyMessageRequestHeader(Header):
    """Request of PUSH_REPLY_MESSAGE_TO_CLIENT (326), broker to the producer that asked."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    born_host: str
    store_host: str
    store_timestamp: Long
    properties: str = ""
    reconsume_times: Int = 0
    unit_mode: Boolean = False
