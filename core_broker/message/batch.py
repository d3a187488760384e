"""The body of a batch request (320): consecutive messages of a topic.

    4  total size        4    flag
    4  magic, 0          4+n  body length, body
    4  body CRC, 0       2+n  properties length, properties

All integers are big-endian. Topic and queue are in the header of the request; the broker adds the
properties of the header to each message. Compatible with RocketMQ's MessageDecoder.encodeMessages.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import error

from core_broker.errors import ProtocolError
from core_broker.limits import BATCH_KEYS_MAX, BATCH_MESSAGES_MAX, BATCH_PROPERTIES_MAX
from core_broker.message.layout import INT, SHORT, Layout
from core_broker.message.model import Message
from core_broker.message.properties import (
    PROPERTY_KEYS,
    PROPERTY_SEPARATOR,
    decode_properties,
    encode_properties,
)

#: The fields before the body of each message.
BATCHED_HEAD = Layout(
    ("size", "I"), ("magic", "I"), ("body_crc", "I"), ("flag", "i"), ("body_bytes", "I")
)
#: Size of a message without body and properties, bytes.
BATCHED_BYTES_MIN = BATCHED_HEAD.size + SHORT.size

_HEAD = BATCHED_HEAD.struct
_SEPARATOR = PROPERTY_SEPARATOR.encode()


class BatchLimitExceeded(ProtocolError):
    """A batch has too many messages, properties or keys."""


@dataclass(slots=True)
class BatchedMessage:
    """One message of a batch."""

    body: bytes
    properties: dict[str, str]
    flag: int = 0


def encode_batch(messages: Iterable[Message]) -> bytes:
    """The body of a batch request."""
    parts: list[bytes] = []
    for message in messages:
        properties = encode_properties(message.properties)
        size = BATCHED_BYTES_MIN + len(message.body) + len(properties)
        parts += (
            _HEAD.pack(size, 0, 0, message.flag, len(message.body)),
            message.body,
            SHORT.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def decode_batch(body: bytes) -> list[BatchedMessage]:
    """Decode the body of a batch request.

    Raises ProtocolError for inconsistent lengths, BatchLimitExceeded for too many messages (before
    the first message is decoded), properties or keys (at the first message above the limit).
    """
    _check_message_count(body)
    messages: list[BatchedMessage] = []
    at = property_count = key_count = 0
    try:
        while at < len(body):
            size, _, _, flag, body_bytes = _HEAD.unpack_from(body, at)
            body_end = at + _HEAD.size + body_bytes
            (properties_bytes,) = SHORT.unpack_from(body, body_end)
            end = body_end + SHORT.size + properties_bytes
            if end - at != size or end > len(body):
                raise ProtocolError(
                    f"message {len(messages)} of a batch claims {size} bytes, its parts take "
                    f"{end - at} of {len(body) - at}"
                )
            properties = decode_properties(body[body_end + SHORT.size : end])
            property_count += 1 + body.count(_SEPARATOR, body_end, end)
            key_count += properties.get(PROPERTY_KEYS, "").count(" ")
            _check_counts(property_count, key_count)
            messages.append(BatchedMessage(body[at + _HEAD.size : body_end], properties, flag))
            at = end
    except error as fault:
        raise ProtocolError(f"message {len(messages)} of a batch is cut off: {fault}") from None
    return messages


def _check_message_count(body: bytes) -> None:
    """Count messages by their claimed sizes up to the limit; `decode_batch` checks the sizes."""
    at = count = 0
    while at <= len(body) - BATCHED_BYTES_MIN:
        count += 1
        if count > BATCH_MESSAGES_MAX:
            raise _too_many(BATCH_MESSAGES_MAX, "messages")
        (size,) = INT.unpack_from(body, at)
        at += max(size, BATCHED_BYTES_MIN)


def _check_counts(properties: int, keys: int) -> None:
    if properties > BATCH_PROPERTIES_MAX:
        raise _too_many(BATCH_PROPERTIES_MAX, "properties")
    if keys > BATCH_KEYS_MAX:
        raise _too_many(BATCH_KEYS_MAX, "keys")


def _too_many(limit: int, what: str) -> BatchLimitExceeded:
    return BatchLimitExceeded(f"a batch has more than {limit} {what}; send smaller batches")
