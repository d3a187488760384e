"""The codec of stored messages: records of the commit log and of responses with messages.

The layout is in record_layout.py. Compatible with RocketMQ's CommitLog and MessageDecoder.
"""

from struct import error
from zlib import crc32

from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.hosts import address_text, packed_address
from core_broker.message.layout import SHORT
from core_broker.message.model import MessageExt, MessageInner
from core_broker.message.properties import decode_properties, encode_properties
from core_broker.message.record_layout import (
    CRC_MASK,
    HEAD,
    HEADS,
    RECORD_BYTES_MIN,
    RECORD_MAGIC_V1,
    RECORD_MAGIC_V2,
    RECORD_MAGICS,
    TOPIC_BYTES_V1_MAX,
    V6_HOSTS,
    record_size,
)

_HEADS = {hosts: head.struct for hosts, head in HEADS.items()}
_pack_v4_head = HEAD.struct.pack
_START = HEAD.select("store_size", "magic", "sys_flag")
_BYTE = tuple(bytes((value,)) for value in range(256))


def body_crc(body: bytes | memoryview) -> int:
    """The stored checksum of a body: CRC-32 without the sign bit."""
    return crc32(body) & CRC_MASK


def host_flags(inner: MessageInner) -> int:
    """The system flag of a message, with the bits for IPv6 hosts."""
    flag = inner.sys_flag & ~V6_HOSTS
    if ":" in inner.born_host[0]:
        flag |= sysflag.BORN_HOST_V6
    if ":" in inner.store_host[0]:
        flag |= sysflag.STORE_HOST_V6
    return flag


def encode_record(
    inner: MessageInner, *, queue_offset: int, physical_offset: int, store_timestamp: int
) -> bytes:
    """Encode a record of checked size; raises struct.error beyond the range of a field."""
    topic = inner.topic.encode()
    properties = encode_properties(inner.properties)
    body = inner.body
    born, born_port = inner.born_host
    store, store_port = inner.store_host
    if ":" in born or ":" in store or len(topic) > TOPIC_BYTES_V1_MAX:
        place = (queue_offset, physical_offset, store_timestamp)
        return _encode_wide(inner, topic, properties, place)
    # The common case: as few objects as possible.
    body_bytes, topic_bytes, properties_bytes = len(body), len(topic), len(properties)
    head = _pack_v4_head(
        RECORD_BYTES_MIN + body_bytes + topic_bytes + properties_bytes,
        RECORD_MAGIC_V1,
        crc32(body) & CRC_MASK,
        inner.queue_id,
        inner.flag,
        queue_offset,
        physical_offset,
        inner.sys_flag & ~V6_HOSTS,
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
    topic_length, properties_length = _BYTE[topic_bytes], SHORT.pack(properties_bytes)
    return b"".join((head, body, topic_length, topic, properties_length, properties))


def _encode_wide(
    inner: MessageInner, topic: bytes, properties: bytes, place: tuple[int, int, int]
) -> bytes:
    """Encode any record; `place` is queue offset, physical offset and store time."""
    queue_offset, physical_offset, store_timestamp = place
    body = inner.body
    flags = host_flags(inner)
    is_long = len(topic) > TOPIC_BYTES_V1_MAX
    born, born_port = inner.born_host
    store, store_port = inner.store_host
    head = _HEADS[flags & V6_HOSTS].pack(
        record_size(len(body), len(topic), len(properties), flags),
        RECORD_MAGIC_V2 if is_long else RECORD_MAGIC_V1,
        crc32(body) & CRC_MASK,
        inner.queue_id,
        inner.flag,
        queue_offset,
        physical_offset,
        flags,
        inner.born_timestamp,
        packed_address(born),
        born_port,
        store_timestamp,
        packed_address(store),
        store_port,
        inner.reconsume_times,
        inner.prepared_transaction_offset,
        len(body),
    )
    parts = (
        head,
        body,
        SHORT.pack(len(topic)) if is_long else _BYTE[len(topic)],
        topic,
        SHORT.pack(len(properties)),
        properties,
    )
    return b"".join(parts)


def decode_record(
    buffer: bytes | bytearray | memoryview, offset: int = 0, *, check_crc: bool = False
) -> MessageExt:
    """Decode the record at `offset`; raises ProtocolError without a valid record."""
    try:
        return _decode(memoryview(buffer), offset, check_crc)
    except (error, UnicodeDecodeError, IndexError) as fault:
        raise ProtocolError(f"broken record at {offset}: {fault}") from None


def decode_records(buffer: bytes | bytearray | memoryview) -> list[MessageExt]:
    """Decode consecutive records up to the end of `buffer`, as in responses."""
    view = memoryview(buffer)
    messages: list[MessageExt] = []
    offset = 0
    while offset < len(view):
        message = decode_record(view, offset)
        messages.append(message)
        offset += message.store_size
    return messages


def _decode(view: memoryview, offset: int, check_crc: bool) -> MessageExt:
    size, magic, sys_flag = _START.unpack_from(view, offset)
    if magic not in RECORD_MAGICS:
        raise ProtocolError(f"no record at {offset}: magic {magic:#010x}")
    if size < RECORD_BYTES_MIN or offset + size > len(view):
        raise ProtocolError(f"a record of {size} bytes at {offset} does not fit")
    record = view[offset : offset + size]
    head = _HEADS[sys_flag & V6_HOSTS]
    _, _, crc, queue_id, flag, queue_offset, physical, _, born_at, *rest = head.unpack_from(record)
    born, born_port, store_timestamp, store, store_port, reconsume_times, prepared, length = rest
    body, at = _read_bytes(record, head.size, length)
    if magic == RECORD_MAGIC_V2:
        (topic_bytes,) = SHORT.unpack_from(record, at)
        topic, at = _read_bytes(record, at + SHORT.size, topic_bytes)
    else:
        topic, at = _read_bytes(record, at + 1, record[at])
    (properties_bytes,) = SHORT.unpack_from(record, at)
    properties, at = _read_bytes(record, at + SHORT.size, properties_bytes)
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
        born_host=(address_text(born), born_port),
        store_timestamp=store_timestamp,
        store_host=(address_text(store), store_port),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared,
        body_crc=crc,
    )


def _read_bytes(record: memoryview, at: int, count: int) -> tuple[bytes, int]:
    end = at + count
    if end > len(record):
        raise ProtocolError(f"a part of {count} bytes runs past its record")
    return bytes(record[at:end]), end
