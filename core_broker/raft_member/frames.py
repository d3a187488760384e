"""Frames between the members of a Raft group.

    frame   := magic "GRT1", crc32 (4), length (4), payload    the CRC covers length and payload
    hello   := JSON object of `Hello`                          first frame of either side
    message := MessagePack array of Raft messages              all later frames, in one direction

All numbers are big-endian. Each member connects to each other member and sends its own messages on
that connection; the accepting side answers the hello with its own and nothing else. Either side
closes the connection when the other hello names another cluster, member or version.
"""

import asyncio
import struct
import zlib

import msgspec

from core_broker.errors import ProtocolError
from core_broker.raft.messages import AnyMessage, Message, decode_messages, encode_messages

_HEADER = struct.Struct(">4sII")
_MAGIC = b"GRT1"
#: Bytes before those that the CRC covers: magic and CRC.
_COVERED_AT = 8
#: Version of frames and messages.
VERSION = 1
#: Payload of a hello, bytes.
HELLO_BYTES_MAX = 2048
#: Payload of a frame with messages, bytes: above a message of `MESSAGE_BYTES_MAX` or with one entry
#: of `PROPOSAL_BYTES_MAX`, in MessagePack.
FRAME_BYTES_MAX = 4 * 1024 * 1024
#: Characters of the name of a cluster.
CLUSTER_ID_CHARS_MAX = 128
#: Messages of one frame.
FRAME_MESSAGES_MAX = 1_000
#: Highest term, index, size and round of a message.
_NUMBER_MAX = (1 << 62) - 1


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who sends, and whom the sender believes to reach."""

    cluster_id: str
    source: int
    target: int
    version: int = VERSION

    def check(self, own: "Hello") -> None:
        """Raise ProtocolError unless this is the hello of the member that `own` is meant for."""
        if self.version != own.version:
            raise ProtocolError(f"the peer speaks version {self.version}, expected {own.version}")
        if self.cluster_id != own.cluster_id:
            raise ProtocolError(
                f"the peer belongs to cluster {self.cluster_id[:CLUSTER_ID_CHARS_MAX]!r}, this"
                f" member to {own.cluster_id!r}"
            )
        if (self.source, self.target) != (own.target, own.source):
            raise ProtocolError(
                f"the peer is member {self.source} and looks for member {self.target}; expected"
                f" member {own.target} that looks for member {own.source}"
            )


def encode_frame(payload: bytes) -> bytes:
    """Return a frame."""
    head = _HEADER.pack(_MAGIC, 0, len(payload))
    crc = zlib.crc32(payload, zlib.crc32(head[_COVERED_AT:]))
    return _HEADER.pack(_MAGIC, crc, len(payload)) + payload


def encode_hello(hello: Hello) -> bytes:
    """Return the frame of a hello."""
    return encode_frame(msgspec.json.encode(hello))


def encode_message(message: Message) -> bytes:
    """Return the frame of one message. Raises ValueError for one above `FRAME_BYTES_MAX`."""
    payload = encode_messages([message])
    if len(payload) > FRAME_BYTES_MAX:
        raise ValueError(f"a Raft message of {len(payload)} bytes exceeds {FRAME_BYTES_MAX}")
    return encode_frame(payload)


async def read_frame(reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    """Return the payload of the next frame.

    Raises ProtocolError for bytes that are no frame of at most `bytes_max`, and IncompleteReadError
    at the end of the connection. Memory is used for received bytes only.
    """
    head = await reader.readexactly(_HEADER.size)
    magic, crc, length = _HEADER.unpack(head)
    if magic != _MAGIC:
        raise ProtocolError(f"a frame begins with {magic!r}, expected {_MAGIC!r}")
    if length > bytes_max:
        raise ProtocolError(f"a frame of {length} bytes, expected at most {bytes_max}")
    payload = await reader.readexactly(length)
    if zlib.crc32(payload, zlib.crc32(head[_COVERED_AT:])) != crc:
        raise ProtocolError("the checksum of a frame is wrong")
    return payload


async def read_hello(reader: asyncio.StreamReader) -> Hello:
    """Read the first frame; raises as `read_frame`."""
    payload = await read_frame(reader, HELLO_BYTES_MAX)
    try:
        return msgspec.json.decode(payload, type=Hello)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"the first frame is no hello: {error}") from None


def decode_payload(payload: bytes, source: int, target: int) -> list[AnyMessage]:
    """Return the messages of a frame; raises ProtocolError unless they are from and for these."""
    try:
        messages = decode_messages(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"a frame has no Raft messages: {error}") from None
    if len(messages) > FRAME_MESSAGES_MAX:
        raise ProtocolError(f"a frame of {len(messages)} messages; at most {FRAME_MESSAGES_MAX}")
    for message in messages:
        if (message.source, message.target) != (source, target):
            raise ProtocolError(
                f"a message from {message.source} to {message.target} on the connection from"
                f" {source} to {target}"
            )
        _check_numbers(message)
    return messages


def _check_numbers(struct: msgspec.Struct) -> None:
    """Raise ProtocolError for a number that no correct member sends."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, int):
            if not 0 <= value <= _NUMBER_MAX:
                raise ProtocolError(f"a message with {name} {value}")
        elif isinstance(value, msgspec.Struct):
            _check_numbers(value)
        elif name == "entries":
            for entry in value:
                _check_numbers(entry)
