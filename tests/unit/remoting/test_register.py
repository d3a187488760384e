"""The body of a registration, plain and compressed."""

import zlib
from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.bodies import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
    decode_register_body,
    encode_register_body,
)
from core_broker.remoting.bodies.register import COMPRESSED_TOPICS_MAX


def sized(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


VERSION = sized(b'{"counter":3,"timestamp":1795251271076}')
TOPICS = sized(b"T1 2 3 6 SINGLE_TAG") + sized(b'T2 1 1 2 MULTI_TAG {"+queue.type":"BatchCQ"}')
PLAIN = VERSION + pack(">i", 2) + TOPICS + sized(b"[]")


def test_written_by_a_java_broker_of_4_9_and_of_5() -> None:
    mappings = pack(">i", 0)
    for data in (PLAIN, PLAIN + mappings):
        body = decode_register_body(zlib.compress(data), compressed=True)
        wrapper = body.topic_config_serialize_wrapper
        assert wrapper.data_version == DataVersion(1795251271076, 3)
        assert wrapper.topic_config_table == {
            "T1": TopicConfig(topic_name="T1", read_queue_nums=2, write_queue_nums=3, perm=6),
            "T2": TopicConfig(
                topic_name="T2",
                read_queue_nums=1,
                write_queue_nums=1,
                perm=2,
                topic_filter_type="MULTI_TAG",
                attributes={"+queue.type": "BatchCQ"},
            ),
        }


def test_a_blank_behind_the_last_word() -> None:
    data = VERSION + pack(">i", 1) + sized(b"T1 2 3 6 SINGLE_TAG ") + sized(b"[]")
    body = decode_register_body(zlib.compress(data), compressed=True)
    assert body.topic_config_serialize_wrapper.topic_config_table["T1"].attributes is None


def test_no_bytes_are_no_topics() -> None:
    for compressed in (True, False):
        body = decode_register_body(b"", compressed=compressed)
        assert body == RegisterBrokerBody()


def test_written_compressed() -> None:
    topic = TopicConfig(topic_name="T1", read_queue_nums=2, write_queue_nums=3)
    wrapper = TopicConfigSerializeWrapper(
        topic_config_table={"T1": topic}, data_version=DataVersion(1795251271076, 3)
    )
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)
    plain = zlib.decompress(encode_register_body(body, compressed=True))
    assert plain == VERSION + pack(">i", 1) + sized(b"T1 2 3 6 SINGLE_TAG") + sized(b"[]")


@pytest.mark.parametrize(
    "data",
    [
        b"not zlib",
        zlib.compress(b""),
        zlib.compress(PLAIN[:-3]),
        zlib.compress(VERSION),
        zlib.compress(pack(">i", -1)),
        zlib.compress(pack(">i", 2**31 - 1) + b"x"),
        zlib.compress(VERSION + pack(">i", 2**31 - 1) + TOPICS),
        zlib.compress(VERSION + pack(">i", 1) + sized(b"T1 2 3") + sized(b"[]")),
        zlib.compress(VERSION + pack(">i", 1) + sized(b"T1 two 3 6 SINGLE_TAG") + sized(b"[]")),
        zlib.compress(VERSION + pack(">i", 1) + sized(b"T1 2 3 6 S {x") + sized(b"[]")),
        zlib.compress(sized(b"{}}") + pack(">i", 0) + sized(b"[]")),
    ],
)
def test_broken(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_register_body(data, compressed=True)


def test_a_bomb_is_refused() -> None:
    bomb = zlib.compress(bytes(FRAME_BYTES_MAX + 1), 9)
    assert len(bomb) < 100_000
    with pytest.raises(ProtocolError, match="unpacks to more"):
        decode_register_body(bomb, compressed=True)


def test_the_topics_of_a_compressed_registration_are_limited() -> None:
    topic = sized(b"T1 2 3 6 SINGLE_TAG")
    count = COMPRESSED_TOPICS_MAX + 1
    data = zlib.compress(VERSION + pack(">i", count) + topic * count + sized(b"[]"))
    with pytest.raises(ProtocolError, match=f"{count} topics, {COMPRESSED_TOPICS_MAX} are"):
        decode_register_body(data, compressed=True)
