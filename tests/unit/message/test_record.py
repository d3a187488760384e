"""The stored record: known sizes, layouts, and refusals."""

from struct import pack_into

import pytest

from core_broker.errors import ProtocolError
from core_broker.message import record, sysflag
from core_broker.message import record_layout as layout
from core_broker.message.model import MessageInner
from core_broker.message.properties import encode_properties
from core_broker.message.record import decode_record, decode_records, encode_record
from core_broker.message.record_layout import RECORD_MAGIC_V1, RECORD_MAGIC_V2, record_size


def inner(**changes: object) -> MessageInner:
    message = MessageInner(
        topic="TopicTest",
        queue_id=3,
        body=b"Hello RocketMQ",
        properties={"KEYS": "k1", "TAGS": "A"},
        born_timestamp=1_700_000_000_000,
        born_host=("192.0.2.7", 50123),
        store_host=("127.0.0.1", 10911),
        reconsume_times=2,
        prepared_transaction_offset=99,
    )
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def encoded(message: MessageInner) -> bytes:
    return encode_record(
        message, queue_offset=12, physical_offset=3456, store_timestamp=1_700_000_000_005
    )


def test_known_length_and_checksum() -> None:
    # 5.x writes a separator behind the last property: 129 bytes instead of 128.
    assert record_size(14, 9, 15) == 129
    data = encoded(inner())
    assert len(data) == 128
    assert record.body_crc(b"Hello RocketMQ") == 1774740973
    assert int.from_bytes(data[8:12], "big") == 1774740973


def test_fields_stand_where_their_names_say() -> None:
    data = encoded(inner(flag=7, sys_flag=8))

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "big")

    assert number(0, 4) == len(data)
    assert number(layout.MAGIC_AT, 4) == RECORD_MAGIC_V1
    assert number(layout.QUEUE_ID_AT, 4) == 3
    assert number(layout.FLAG_AT, 4) == 7
    assert number(layout.QUEUE_OFFSET_AT, 8) == 12
    assert number(layout.PHYSICAL_OFFSET_AT, 8) == 3456
    assert number(layout.SYS_FLAG_AT, 4) == 8
    assert number(layout.BORN_TIMESTAMP_AT, 8) == 1_700_000_000_000
    assert data[layout.BORN_HOST_AT :][:8] == b"\xc0\x00\x02\x07\x00\x00\xc3\xcb"
    assert number(layout.STORE_TIMESTAMP_AT, 8) == 1_700_000_000_005
    assert data[layout.STORE_HOST_AT :][:8] == b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
    assert number(layout.RECONSUME_TIMES_AT, 4) == 2
    assert number(layout.BODY_LENGTH_AT, 4) == 14
    assert data[layout.BODY_LENGTH_AT + 4 :].startswith(b"Hello RocketMQ\x09TopicTest\x00\x0eKEYS")


def test_comes_back() -> None:
    stored = decode_record(encoded(inner()), check_crc=True)
    assert stored.topic == "TopicTest"
    assert stored.tags == "A"
    assert stored.keys == ["k1"]
    assert stored.prepared_transaction_offset == 99
    assert stored.offset_msg_id == "7F00000100002A9F0000000000000D80"
    assert stored.msg_id == stored.offset_msg_id


@pytest.mark.parametrize(
    ("born", "store", "bits"),
    [
        ("192.0.2.7", "127.0.0.1", 0),
        ("fd00::7", "127.0.0.1", sysflag.BORN_HOST_V6),
        ("192.0.2.7", "::1", sysflag.STORE_HOST_V6),
        ("fd00::7", "::1", sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6),
    ],
)
def test_the_hosts_decide_their_bits(born: str, store: str, bits: int) -> None:
    wrong = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6 | sysflag.COMPRESSED
    data = encoded(inner(born_host=(born, 1), store_host=(store, 2), sys_flag=wrong))
    stored = decode_record(data)
    assert stored.sys_flag == sysflag.COMPRESSED | bits
    assert stored.born_host == (born, 1)
    assert stored.store_host == (store, 2)


def test_a_long_topic_takes_the_second_layout() -> None:
    for size, magic in ((127, RECORD_MAGIC_V1), (128, RECORD_MAGIC_V2), (255, RECORD_MAGIC_V2)):
        data = encoded(inner(topic="t" * size))
        assert int.from_bytes(data[4:8], "big") == magic
        assert decode_record(data).topic == "t" * size


def test_several_in_a_row_and_at_an_offset() -> None:
    data = encoded(inner()) + encoded(inner(body=b"second"))
    first, second = decode_records(data)
    assert second.body == b"second"
    assert decode_record(data, first.store_size).body == b"second"
    assert decode_records(b"") == []


@pytest.mark.parametrize("size", range(128))
def test_cut_off(size: int) -> None:
    with pytest.raises(ProtocolError):
        decode_record(encoded(inner())[:size])


@pytest.mark.parametrize(
    ("form", "at", "value"),
    [
        (">I", 0, 0),
        (">I", 0, 90),
        (">I", 0, 127),
        (">I", 0, 2**32 - 1),
        (">I", layout.MAGIC_AT, layout.BLANK_MAGIC),
        (">I", layout.MAGIC_AT, 0),
        (">I", layout.MAGIC_AT, RECORD_MAGIC_V2),
        (">I", layout.BODY_LENGTH_AT, 2**32 - 1),
        (">I", layout.BODY_LENGTH_AT, 13),
        (">I", layout.SYS_FLAG_AT, sysflag.BORN_HOST_V6),
        (">B", layout.BODY_LENGTH_AT + 4 + 14, 255),
        (">H", layout.BODY_LENGTH_AT + 4 + 14 + 10, 65535),
    ],
)
def test_lengths_that_do_not_add_up(form: str, at: int, value: int) -> None:
    data = bytearray(encoded(inner()))
    pack_into(form, data, at, value)
    with pytest.raises(ProtocolError):
        decode_record(data)


def test_a_changed_body_is_seen_when_asked_for() -> None:
    data = bytearray(encoded(inner()))
    data[layout.BODY_LENGTH_AT + 4] ^= 1
    assert decode_record(data).body != b"Hello RocketMQ"
    with pytest.raises(ProtocolError, match="checksum"):
        decode_record(data, check_crc=True)


def test_properties_up_to_the_limit() -> None:
    data = encoded(inner(properties={"p": "v" * 32765}))
    assert decode_record(data).properties == {"p": "v" * 32765}


def test_the_usual_way_writes_what_the_wide_one_writes() -> None:
    message = inner(properties={"KEYS": "k", "TAGS": "A"})
    properties = encode_properties(message.properties)
    wide = record._encode_wide(message, message.topic.encode(), properties, (7, 4096, 99))
    usual = encode_record(message, queue_offset=7, physical_offset=4096, store_timestamp=99)
    assert usual == wide
