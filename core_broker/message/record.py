"""The stored message: one record of the commit log, and of every answer that carries messages.

    4  total size              8       store timestamp, ms
    4  magic                   4|16+4  store host: address, port
    4  CRC-32 of body, 31 bit  4       reconsume times
    4  queue id                8       prepared transaction offset
    4  flag                    4+n     body length, body
    8  queue offset            1+n     topic length, topic (2+n with magic 2)
    8  physical offset         2+n     properties length, properties
    4  system flag
    8  born timestamp, ms
    4|16+4  born host: address, port

All integers are big-endian. Hosts have 16-byte addresses when the system flag says so. Magic 2 is
used for topics of more than 127 bytes only. The end of a log file is marked by the number of bytes
left and BLANK_MAGIC. Compatible with RocketMQ's CommitLog and MessageDecoder.
"""

from struct import Struct, error
from zlib import crc32

from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.hosts import address_text, packed_address
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import decode_properties, encode_properties

RECORD_MAGIC_V1 = 0xDAA320A7
RECORD_MAGIC_V2 = 0xDAA320AB
BLANK_MAGIC = 0xCBD43194

#: Total size and magic, as every record and every blank begins.
RECORD_HEAD = Struct(">II")
#: What must stay free at the end of a log file for the blank.
BLANK_BYTES = 8

MAGIC_AT = 4
BODY_CRC_AT = 8
QUEUE_ID_AT = 12
FLAG_AT = 16
QUEUE_OFFSET_AT = 20
PHYSICAL_OFFSET_AT = 28
SYS_FLAG_AT = 36
BORN_TIMESTAMP_AT = 40
BORN_HOST_AT = 48
#: With IPv4 hosts.
STORE_TIMESTAMP_AT = 56
STORE_HOST_AT = 64
RECONSUME_TIMES_AT = 72
BODY_LENGTH_AT = 84

#: A record without body, topic and properties, with IPv4 hosts.
RECORD_BYTES_MIN = 91
TOPIC_BYTES_V1_MAX = 127

CRC_MASK = 0x7FFFFFFF

_V4_HEAD = Struct(">IIIiiqqiq4siq4siiqI")
_START = Struct(">IIIiiqqiq")
_V4_HOST = Struct(">4si")
_V6_HOST = Struct(">16si")
_STORE_TIMESTAMP = Struct(">q")
_END = Struct(">iqI")
_SHORT = Struct(">H")
_BYTE = tuple(bytes((value,)) for value in range(256))
_V6_EXTRA = 12
_V6_HOSTS = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6


def body_crc(body: bytes | memoryview) -> int:
    """The checksum of a body as it is stored: CRC-32 without its sign bit."""
    return crc32(body) & CRC_MASK


def record_size(body_bytes: int, topic_bytes: int, properties_bytes: int, sys_flag: int = 0) -> int:
    """The total size of a record; the host bits of the system flag count."""
    size = RECORD_BYTES_MIN + body_bytes + topic_bytes + properties_bytes
    if topic_bytes > TOPIC_BYTES_V1_MAX:
        size += 1
    if sys_flag & sysflag.BORN_HOST_V6:
        size += _V6_EXTRA
    if sys_flag & sysflag.STORE_HOST_V6:
        size += _V6_EXTRA
    return size


def host_flags(inner: MessageInner) -> int:
    """The system flag of a message with the bits that its hosts demand."""
    flag = inner.sys_flag & ~_V6_HOSTS
    if ":" in inner.born_host[0]:
        flag |= sysflag.BORN_HOST_V6
    if ":" in inner.store_host[0]:
        flag |= sysflag.STORE_HOST_V6
    return flag


def encode_record(
    inner: MessageInner, *, queue_offset: int, physical_offset: int, store_timestamp: int
) -> bytes:
    """The bytes to append. The caller has checked the sizes; this asserts what fits the fields."""
    topic = inner.topic.encode()
    properties = encode_properties(inner.properties)
    body = inner.body
    born, born_port = inner.born_host
    store, store_port = inner.store_host
    if ":" in born or ":" in store or len(topic) > TOPIC_BYTES_V1_MAX:
        place = (queue_offset, physical_offset, store_timestamp)
        return _encode_wide(inner, topic, properties, place)
    # Nearly every message comes this way, so it makes as few objects as it can.
    body_bytes, topic_bytes, properties_bytes = len(body), len(topic), len(properties)
    head = _V4_HEAD.pack(
        RECORD_BYTES_MIN + body_bytes + topic_bytes + properties_bytes,
        RECORD_MAGIC_V1,
        crc32(body) & CRC_MASK,
        inner.queue_id,
        inner.flag,
        queue_offset,
        physical_offset,
        inner.sys_flag & ~_V6_HOSTS,
        inner.born_timestamp,
        packed_address(born),
        born_port,
        store_timestamp,
        packed_address(store),
        store_port,
        inner.reconsume_times,
        inner.prepared_transaction_offset,
        body_bytes,
    )
    topic_length, properties_length = _BYTE[topic_bytes], _SHORT.pack(properties_bytes)
    return b"".join((head, body, topic_length, topic, properties_length, properties))


def _encode_wide(
    inner: MessageInner, topic: bytes, properties: bytes, place: tuple[int, int, int]
) -> bytes:
    """Any record, also with IPv6 hosts or a long topic; `place` is queue offset, position, time."""
    queue_offset, physical_offset, store_timestamp = place
    body = inner.body
    flags = host_flags(inner)
    is_long = len(topic) > TOPIC_BYTES_V1_MAX
    start = _START.pack(
        record_size(len(body), len(topic), len(properties), flags),
        RECORD_MAGIC_V2 if is_long else RECORD_MAGIC_V1,
        crc32(body) & CRC_MASK,
        inner.queue_id,
        inner.flag,
        queue_offset,
        physical_offset,
        flags,
        inner.born_timestamp,
    )
    born, born_port = inner.born_host
    store, store_port = inner.store_host
    parts = (
        start,
        _host_layout(flags & sysflag.BORN_HOST_V6).pack(packed_address(born), born_port),
        _STORE_TIMESTAMP.pack(store_timestamp),
        _host_layout(flags & sysflag.STORE_HOST_V6).pack(packed_address(store), store_port),
        _END.pack(inner.reconsume_times, inner.prepared_transaction_offset, len(body)),
        body,
        _SHORT.pack(len(topic)) if is_long else _BYTE[len(topic)],
        topic,
        _SHORT.pack(len(properties)),
        properties,
    )
    return b"".join(parts)


def decode_record(
    buffer: bytes | bytearray | memoryview, offset: int = 0, *, check_crc: bool = False
) -> MessageExt:
    """Read the record at `offset`; raises ProtocolError when there is none."""
    try:
        return _decode(memoryview(buffer), offset, check_crc)
    except (error, UnicodeDecodeError, IndexError) as fault:
        raise ProtocolError(f"broken record at {offset}: {fault}") from None


def decode_records(buffer: bytes | bytearray | memoryview) -> list[MessageExt]:
    """Read records that follow one another to the end of `buffer`, as answers carry them."""
    view = memoryview(buffer)
    messages: list[MessageExt] = []
    offset = 0
    while offset < len(view):
        message = decode_record(view, offset)
        messages.append(message)
        offset += message.store_size
    return messages


def _decode(view: memoryview, offset: int, check_crc: bool) -> MessageExt:
    start = _START.unpack_from(view, offset)
    size, magic, crc, queue_id, flag, queue_offset, physical, sys_flag, born_at = start
    if magic not in {RECORD_MAGIC_V1, RECORD_MAGIC_V2}:
        raise ProtocolError(f"no record at {offset}: magic {magic:#010x}")
    if size < RECORD_BYTES_MIN or offset + size > len(view):
        raise ProtocolError(f"a record of {size} bytes at {offset} does not fit")
    record = view[offset : offset + size]
    born_host, at = _read_host(record, _START.size, sys_flag & sysflag.BORN_HOST_V6)
    (store_timestamp,) = _STORE_TIMESTAMP.unpack_from(record, at)
    at += _STORE_TIMESTAMP.size
    store_host, at = _read_host(record, at, sys_flag & sysflag.STORE_HOST_V6)
    reconsume_times, prepared, body_bytes = _END.unpack_from(record, at)
    body, at = _read_bytes(record, at + _END.size, body_bytes)
    if magic == RECORD_MAGIC_V2:
        (topic_bytes,) = _SHORT.unpack_from(record, at)
        topic, at = _read_bytes(record, at + _SHORT.size, topic_bytes)
    else:
        topic, at = _read_bytes(record, at + 1, record[at])
    (properties_bytes,) = _SHORT.unpack_from(record, at)
    properties, at = _read_bytes(record, at + _SHORT.size, properties_bytes)
    if at != size:
        raise ProtocolError(f"a record of {size} bytes at {offset} has only {at} in use")
    if check_crc and crc != body_crc(body):
        raise ProtocolError(f"the body of the record at {offset} does not match its checksum")
    return MessageExt(
        topic=topic.decode(),
        body=body,
        properties=decode_properties(properties),
        queue_id=queue_id,
        queue_offset=queue_offset,
        offset_physical=physical,
        store_size=size,
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp=born_at,
        born_host=born_host,
        store_timestamp=store_timestamp,
        store_host=store_host,
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared,
        body_crc=crc,
    )


def _read_bytes(record: memoryview, at: int, count: int) -> tuple[bytes, int]:
    end = at + count
    if end > len(record):
        raise ProtocolError(f"a part of {count} bytes runs past its record")
    return bytes(record[at:end]), end


def _read_host(record: memoryview, at: int, is_v6: int) -> tuple[tuple[str, int], int]:
    layout = _host_layout(is_v6)
    address, port = layout.unpack_from(record, at)
    return (address_text(address), port), at + layout.size


def _host_layout(is_v6: int) -> Struct:
    return _V6_HOST if is_v6 else _V4_HOST
