"""The body of a batch request (320): messages of one topic, one after another.

    4  total size        4    flag
    4  magic, 0          4+n  body length, body
    4  body CRC, 0       2+n  properties length, properties

All integers are big-endian. Topic and queue are in the header of the request, whose properties the
broker adds to each message's own. Compatible with RocketMQ's MessageDecoder.encodeMessages.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct, error

from core_broker.errors import ProtocolError
from core_broker.message.model import Message
from core_broker.message.properties import decode_properties, encode_properties

_HEAD = Struct(">IIIiI")
_SHORT = Struct(">H")
_MESSAGE_BYTES_MIN = _HEAD.size + _SHORT.size


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
        size = _MESSAGE_BYTES_MIN + len(message.body) + len(properties)
        parts += (
            _HEAD.pack(size, 0, 0, message.flag, len(message.body)),
            message.body,
            _SHORT.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def decode_batch(body: bytes) -> list[BatchedMessage]:
    """Read the body of a batch request; raises ProtocolError when a length does not add up."""
    messages: list[BatchedMessage] = []
    at = 0
    try:
        while at < len(body):
            size, _, _, flag, body_bytes = _HEAD.unpack_from(body, at)
            body_end = at + _HEAD.size + body_bytes
            (properties_bytes,) = _SHORT.unpack_from(body, body_end)
            end = body_end + _SHORT.size + properties_bytes
            if end - at != size or end > len(body):
                raise ProtocolError(
                    f"message {len(messages)} of a batch claims {size} bytes, its parts take "
                    f"{end - at} of {len(body) - at}"
                )
            properties = decode_properties(body[body_end + _SHORT.size : end])
            messages.append(BatchedMessage(body[at + _HEAD.size : body_end], properties, flag))
            at = end
    except error as fault:
        raise ProtocolError(f"message {len(messages)} of a batch is cut off: {fault}") from None
    return messages
