"""Send requests and their answers (codes 310, 320 and 325). Pure.

Compatible with RocketMQ's SendMessageRequestHeaderV2, MessageBatch and
MQClientAPIImpl.processSendResponse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from core_broker.client.answers import refusal
from core_broker.client.results import SendResult, SendStatus
from core_broker.errors import ClientError
from core_broker.limits import BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX, PROPERTIES_BYTES_MAX
from core_broker.message import sysflag
from core_broker.message.batch import BATCHED_BYTES_MIN, encode_batch
from core_broker.message.compression import COMPRESS_LEVEL, compress
from core_broker.message.model import Message
from core_broker.message.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_MESSAGE_TYPE,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_SEPARATOR,
    PROPERTY_UNIQ_KEY,
    PROPERTY_WAIT_STORE_MSG_OK,
    properties_text,
)
from core_broker.message.topics import (
    AUTO_CREATE_TOPIC,
    RETRY_PREFIX,
    SEND_FORBIDDEN_TOPICS,
    validate_topic,
)
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import SendMessageRequestHeaderV2, SendMessageResponseHeader

DEFAULT_TOPIC_QUEUE_NUMS: Final = 4
COMPRESS_OVER_BYTES: Final = 4096

REPLY_TYPE: Final = "reply"


class CompressionType(IntEnum):
    """Compression of large bodies; the values are bits of the system flag."""

    ZLIB = sysflag.COMPRESSION_ZLIB
    LZ4 = sysflag.COMPRESSION_LZ4
    ZSTD = sysflag.COMPRESSION_ZSTD


_SEPARATORS: Final = frozenset({NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR})
#: Bytes of a batch entry besides body and properties: fixed fields, and the added unique key.
_BATCH_OVERHEAD_BYTES: Final = BATCHED_BYTES_MIN + 48

_STATUSES: Final[dict[int, SendStatus]] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The queue-independent part of a send request: built once, used for all attempts."""

    topic: str
    body: bytes
    properties: str
    #: The application's messages; several in a batch.
    messages: Sequence[Message]
    #: The unique keys, in the order of ``messages``.
    msg_ids: Sequence[str]
    flag: int = 0
    sys_flag: int = 0
    is_batch: bool = False
    #: True for a reply; the broker pushes replies to the requester.
    is_reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None

    @property
    def msg_id(self) -> str:
        return ",".join(self.msg_ids)

    def request(
        self,
        queue: MessageQueue,
        *,
        group: str,
        now_ms: int,
        default_topic: str = AUTO_CREATE_TOPIC,
        default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS,
    ) -> RemotingCommand:
        header = SendMessageRequestHeaderV2(
            producer_group=group,
            topic=self.topic,
            default_topic=default_topic,
            default_topic_queue_nums=default_topic_queue_nums,
            queue_id=queue.queue_id,
            sys_flag=self.sys_flag,
            born_timestamp=now_ms,
            flag=self.flag,
            properties=self.properties,
            reconsume_times=self.reconsume_times,
            unit_mode=False,
            max_reconsume_times=self.max_reconsume_times,
            batch=self.is_batch,
            broker_name=queue.broker_name or None,
        )
        return RemotingCommand.request(self._code, header, self.body)

    @property
    def _code(self) -> RequestCode:
        if self.is_batch:
            return RequestCode.SEND_BATCH_MESSAGE
        return RequestCode.SEND_REPLY_MESSAGE_V2 if self.is_reply else RequestCode.SEND_MESSAGE_V2


def check_message(
    message: Message, bytes_max: int = MESSAGE_BYTES_MAX, *, may_be_empty: bool = False
) -> None:
    """Raise ClientError for an illegal topic, or a body of an illegal size.

    RocketMQ's clients refuse an empty body, but brokers store messages without a body: callers
    resending stored messages set ``may_be_empty``.
    """
    validate_topic(message.topic)
    if message.topic in SEND_FORBIDDEN_TOPICS:
        raise ClientError(f"Sending messages to topic {message.topic} is forbidden.")
    if not message.body and not may_be_empty:
        raise ClientError("The message body is empty.")
    if len(message.body) > bytes_max:
        raise ClientError(
            f"The message body of {len(message.body)} bytes is larger than {bytes_max} bytes."
        )


def prepare(
    message: Message,
    uniq_key: str,
    compress_over: int = COMPRESS_OVER_BYTES,
    compress_type: CompressionType = CompressionType.ZLIB,
    compress_level: int = COMPRESS_LEVEL,
) -> Outgoing:
    """Add a missing unique key to a message, and compress a large body."""
    properties = {PROPERTY_UNIQ_KEY: uniq_key, **message.properties}
    reconsume_times, max_reconsume_times = 0, None
    if message.topic.startswith(RETRY_PREFIX):
        # A message sent back by a client has the retry counts in the header, not in the properties.
        reconsume_times = _count(properties.pop(PROPERTY_RECONSUME_TIME, "")) or 0
        max_reconsume_times = _count(properties.pop(PROPERTY_MAX_RECONSUME_TIMES, ""))
    body, sys_flag = message.body, 0
    if len(body) >= compress_over:
        body = compress(body, compress_type, compress_level)
        sys_flag = sysflag.COMPRESSED | compress_type
    return Outgoing(
        message.topic,
        body,
        _checked_properties(properties),
        messages=(message,),
        msg_ids=(properties[PROPERTY_UNIQ_KEY],),
        flag=message.flag,
        sys_flag=sys_flag,
        is_reply=properties.get(PROPERTY_MESSAGE_TYPE) == REPLY_TYPE,
        reconsume_times=reconsume_times,
        max_reconsume_times=max_reconsume_times,
    )


def prepare_batch(
    messages: Sequence[Message], uniq_keys: Sequence[str], bytes_max: int = MESSAGE_BYTES_MAX
) -> Outgoing:
    """Build one request for several messages of one topic; raises ClientError for different topics
    or different values of wait_store_ok."""
    if not messages:
        raise ClientError("The batch is empty.")
    first = messages[0]
    waits = {message.properties.get(PROPERTY_WAIT_STORE_MSG_OK) for message in messages}
    if any(message.topic != first.topic for message in messages) or len(waits) > 1:
        raise ClientError("Messages of a batch must have equal topics and equal wait_store_ok.")
    if first.topic.startswith(RETRY_PREFIX):
        raise ClientError("Messages of a retry topic cannot be sent as a batch.")
    keyed = []
    for message, uniq_key in zip(messages, uniq_keys, strict=True):
        if PROPERTY_DELAY_TIME_LEVEL in message.properties:
            raise ClientError("Delayed messages cannot be sent as a batch.")
        check_message(message, bytes_max)
        copy = Message(message.topic, message.body, flag=message.flag)
        copy.properties = {PROPERTY_UNIQ_KEY: uniq_key, **message.properties}
        _checked_properties(copy.properties)
        keyed.append(copy)
    body = encode_batch(keyed)
    if len(body) > bytes_max:
        raise ClientError(f"The batch of {len(body)} bytes is larger than {bytes_max} bytes.")
    wait = properties_text({PROPERTY_WAIT_STORE_MSG_OK: waits.pop() or "true"})
    msg_ids = tuple(message.properties[PROPERTY_UNIQ_KEY] for message in keyed)
    return Outgoing(first.topic, body, wait, messages, msg_ids, is_batch=True)


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def split_batch(
    messages: Sequence[Message], bytes_max: int = MESSAGE_BYTES_MAX
) -> list[list[Message]]:
    """Split messages, in order, into batches of at most ``bytes_max`` bytes.

    A batch has at most BATCH_MESSAGES_MAX messages. A message larger than ``bytes_max`` gets a
    separate batch; `prepare_batch` refuses the batch.
    """
    batches: list[list[Message]] = []
    free_bytes = 0
    for message in messages:
        text = properties_text(message.properties).encode("utf-8", "replace")
        size = len(message.body) + len(text) + _BATCH_OVERHEAD_BYTES
        if size > free_bytes or not batches or len(batches[-1]) == BATCH_MESSAGES_MAX:
            batches.append([])
            free_bytes = bytes_max
        batches[-1].append(message)
        free_bytes -= size
    return batches


def _checked_properties(properties: dict[str, str]) -> str:
    for name, value in properties.items():
        if not name or not _SEPARATORS.isdisjoint(name + value):
            raise ClientError(
                f"The property {name!r} is unnamed or contains a separator, character 1 or 2."
            )
    text = properties_text(properties)
    size = len(text.encode("utf-8", "replace"))
    if size > PROPERTIES_BYTES_MAX:
        raise ClientError(
            f"The properties of {size} bytes are larger than {PROPERTIES_BYTES_MAX} bytes."
        )
    return text


def read_send_answer(
    answer: RemotingCommand, addr: str, outgoing: Outgoing, queue: MessageQueue
) -> SendResult:
    """Read the result of a send; raises RequestRefused when the broker did not store it."""
    status = _STATUSES.get(answer.code)
    if status is None:
        raise refusal(answer, addr)
    header = answer.header(SendMessageResponseHeader)
    return SendResult(
        status=status,
        msg_id=outgoing.msg_id,
        offset_msg_id=header.msg_id,
        queue=MessageQueue(
            topic=queue.topic, broker_name=queue.broker_name, queue_id=header.queue_id
        ),
        queue_offset=header.queue_offset,
        region_id=header.region_id or "DefaultRegion",
        trace_on=header.trace_on is not False,
    )
