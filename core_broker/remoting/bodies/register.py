"""The body of a broker's registration (103), plain or compressed.

The plain body is a JSON object. The compressed body is a zlib stream of:

    4+n  DataVersion as JSON
    4    topic count, then per topic
         4+n  topicName readQueueNums writeQueueNums perm topicFilterType, with blanks between;
              5.x brokers add a blank and the attributes as JSON
    4+n  filter servers, a JSON array
    …    5.x brokers add queue mappings; Gantry ignores the mappings

All integers are big-endian. The compressed form has neither topicSysFlag nor order. Compatible with
RocketMQ's RegisterBrokerBody.
"""

import zlib
from collections.abc import Sequence
from struct import Struct as Layout

from msgspec import Struct, field

from core_broker.errors import ProtocolError
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.bodies.codec import decode_body, decode_request, encode_body
from core_broker.remoting.bodies.tables import (
    DataVersion,
    TopicConfig,
    TopicConfigSerializeWrapper,
)

#: Maximum objects of a registration: a topic is one object, or two with attributes.
REGISTERED_OBJECTS_MAX = 300_000
#: Maximum topics of a compressed registration: their texts are parsed by Python.
COMPRESSED_TOPICS_MAX = 20_000

_COMPRESS_LEVEL = 9
_LENGTH = Layout(">i")
_TOPIC_WORDS = 5


class RegisterBrokerBody(Struct, rename="camel", kw_only=True):
    """The topics of a broker."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper = field(
        default_factory=TopicConfigSerializeWrapper
    )
    filter_server_list: list[str] = []


class _WrapperSummary(Struct, rename="camel", kw_only=True):
    data_version: DataVersion | None = None


class RegistrationSummary(Struct, rename="camel", kw_only=True):
    """A plain registration without its topics, whose decoding costs most of the time."""

    topic_config_serialize_wrapper: _WrapperSummary = field(default_factory=_WrapperSummary)
    filter_server_list: list[str] = []

    @property
    def version(self) -> DataVersion | None:
        """The version of the topics; None in the form of the oldest brokers."""
        return self.topic_config_serialize_wrapper.data_version


def encode_register_body(body: RegisterBrokerBody, *, compressed: bool) -> bytes:
    """Write a registration in either form."""
    if not compressed:
        return encode_body(body)
    wrapper = body.topic_config_serialize_wrapper
    topics = [_topic_text(topic).encode() for topic in wrapper.topic_config_table.values()]
    parts = [_sized(encode_body(wrapper.data_version)), _LENGTH.pack(len(topics))]
    parts += map(_sized, topics)
    parts.append(_sized(encode_body(body.filter_server_list)))
    return zlib.compress(b"".join(parts), _COMPRESS_LEVEL)


def register_body_of(wrapper: Sequence[bytes]) -> bytes:
    """Write a plain registration around an encoded TopicConfigSerializeWrapper in parts."""
    head = b'{"filterServerList":[],"topicConfigSerializeWrapper":'
    return b"".join([head, *wrapper, b"}"])


def decode_register_body(data: bytes, *, compressed: bool) -> RegisterBrokerBody:
    """Read a registration; no bytes are a registration without topics."""
    if not data:
        return RegisterBrokerBody()
    if not compressed:
        return decode_request(RegisterBrokerBody, data, FRAME_BYTES_MAX, REGISTERED_OBJECTS_MAX)
    reader = _Reader(_decompress(data))
    version = decode_body(DataVersion, reader.sized())
    count = reader.count()
    if count > COMPRESSED_TOPICS_MAX:
        raise ProtocolError(
            f"a compressed registration of {count} topics, {COMPRESSED_TOPICS_MAX} are possible; "
            "set compressedRegister=false"
        )
    topics = [_topic(reader.sized()) for _ in range(count)]
    servers = decode_body(list[str], reader.sized())
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigSerializeWrapper(
            topic_config_table={topic.topic_name: topic for topic in topics}, data_version=version
        ),
        filter_server_list=servers,
    )


def _decompress(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(data, FRAME_BYTES_MAX + 1)
    except zlib.error as fault:
        raise ProtocolError(f"a compressed registration does not unpack: {fault}") from None
    if len(plain) > FRAME_BYTES_MAX:
        raise ProtocolError(f"a registration unpacks to more than {FRAME_BYTES_MAX} bytes")
    return plain


class _Reader:
    """Reads length-prefixed parts of the decompressed body."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def count(self) -> int:
        end = self._at + _LENGTH.size
        if end > len(self._data):
            raise ProtocolError("a registration ends too early")
        (count,) = _LENGTH.unpack_from(self._data, self._at)
        # Every counted entry takes at least a byte.
        if not 0 <= count <= len(self._data) - end:
            raise ProtocolError(f"a registration claims {count} entries or bytes")
        self._at = end
        return int(count)

    def sized(self) -> bytes:
        count = self.count()
        self._at += count
        return self._data[self._at - count : self._at]


def _sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _topic_text(topic: TopicConfig) -> str:
    return (
        f"{topic.topic_name} {topic.read_queue_nums} {topic.write_queue_nums} {topic.perm} "
        f"{topic.topic_filter_type}"
    )


def _topic(data: bytes) -> TopicConfig:
    words = data.decode("utf-8", "replace").split(" ", _TOPIC_WORDS)
    if len(words) < _TOPIC_WORDS:
        raise ProtocolError(f"a registered topic has {len(words)} words instead of {_TOPIC_WORDS}")
    try:
        read, write, perm = map(int, words[1:4])
    except ValueError as fault:
        raise ProtocolError(f"a registered topic has a bad number: {fault}") from None
    attributes = words[_TOPIC_WORDS].encode() if len(words) > _TOPIC_WORDS else b""
    return TopicConfig(
        topic_name=words[0],
        read_queue_nums=read,
        write_queue_nums=write,
        perm=perm,
        topic_filter_type=words[4],
        attributes=decode_body(dict[str, str], attributes) if attributes.strip() else None,
    )
