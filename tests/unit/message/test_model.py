"""The message API of applications."""

import zlib

import pytest

from core_broker.errors import ClientError, ProtocolError
from core_broker.message import sysflag
from core_broker.message.compression import compress
from core_broker.message.model import Message, MessageExt, MessageInner
from core_broker.message.record import decode_record, encode_record


def stored(body: bytes, sys_flag: int, properties: dict[str, str] | None = None) -> MessageExt:
    message = MessageInner("T", 0, body, properties or {}, sys_flag=sys_flag)
    return decode_record(
        encode_record(message, queue_offset=0, physical_offset=0, store_timestamp=0)
    )


def test_tags_keys_and_delay_are_properties() -> None:
    message = Message(
        "T", b"x", tags="A", keys=["k1", "k2"], delay_level=3, properties={"own": "1"}
    )
    assert message.properties == {
        "own": "1",
        "KEYS": "k1 k2",
        "TAGS": "A",
        "DELAY": "3",
        "WAIT": "true",
    }
    assert message.tags == "A"
    assert message.keys == ["k1", "k2"]
    assert repr(message).startswith("Message(topic='T', body=1 bytes, {'own': '1'")


def test_defaults() -> None:
    message = Message("T", b"", keys="k1 k2", wait_store_ok=False)
    assert message.properties == {"KEYS": "k1 k2", "WAIT": "false"}
    assert message.tags is None


def test_properties_are_copied() -> None:
    mine = {"own": "1"}
    Message("T", b"", properties=mine)
    assert mine == {"own": "1"}


def test_a_property_of_the_application_has_a_name_of_its_own() -> None:
    message = Message("T", b"hi")
    message.put_user_property("colour", "red")
    assert message.properties["colour"] == "red"
    for name, value in (("KEYS", "k"), ("UNIQ_KEY", "u"), ("", "v"), ("a", " "), (" ", "v")):
        with pytest.raises(ClientError):
            message.put_user_property(name, value)
    assert message.keys == []


def test_msg_id_is_the_unique_key_when_there_is_one() -> None:
    assert stored(b"", 0, {"UNIQ_KEY": "7F01"}).msg_id == "7F01"
    assert stored(b"", 0).msg_id == stored(b"", 0).offset_msg_id


def test_a_plain_body_stays() -> None:
    assert stored(b"\x01\x02", 0).decompressed_body() == b"\x01\x02"


@pytest.mark.parametrize(
    "kind", [0, sysflag.COMPRESSION_ZLIB, sysflag.COMPRESSION_LZ4, sysflag.COMPRESSION_ZSTD]
)
def test_a_compressed_body_unpacks(kind: int) -> None:
    body = b"x" * 6000
    message = stored(compress(body, kind), kind | sysflag.COMPRESSED)
    assert message.body != body
    assert message.decompressed_body() == body


def test_a_broken_compressed_body() -> None:
    with pytest.raises(ProtocolError, match="does not unpack"):
        stored(b"not zlib", sysflag.COMPRESSED).decompressed_body()


def test_a_body_of_an_old_java_client_unpacks() -> None:
    assert stored(zlib.compress(b"old"), sysflag.COMPRESSED).decompressed_body() == b"old"
