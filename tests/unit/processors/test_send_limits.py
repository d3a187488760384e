"""How large and how odd a message may be: Refusals have Java's codes and store nothing."""

from struct import pack

import pytest

from core_broker.message.batch import encode_batch
from core_broker.message.compression import compress
from core_broker.message.model import Message
from core_broker.message.sysflag import (
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
)
from core_broker.remoting.bodies import TopicConfig
from core_broker.remoting.codes import RequestCode
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import send_header
from tests.unit.processors.conftest import MakeBroker

MIB = 1024 * 1024
#: maxMessageSize
BODY_MAX = 4 * MIB
PROPERTIES_MAX = 32_767
CLUSTER = "CLUSTER\x01DefaultCluster"


@pytest.fixture
def large_broker(make_broker: MakeBroker) -> BrokerHarness:
    """A broker with the default limits, and files large enough for the limits."""
    broker = make_broker(mapped_file_size_commit_log=64 * MIB)
    broker.topic("T")
    return broker


class TestBodies:
    @pytest.mark.parametrize(
        ("size", "code"), [(0, 0), (BODY_MAX - 1, 0), (BODY_MAX, 0), (BODY_MAX + 1, 13)]
    )
    async def test_one_message(self, large_broker: BrokerHarness, size: int, code: int) -> None:
        assert (await large_broker.send("T", b"x" * size)).code == code
        assert [len(each.body) for each in await large_broker.messages("T")] == [size] * (not code)

    async def test_the_largest_body_leaves_room_for_properties(
        self, large_broker: BrokerHarness
    ) -> None:
        name = "K\x01"
        room = PROPERTIES_MAX - len(name) - 1 - len(CLUSTER)
        assert (await large_broker.send("T", b"x" * BODY_MAX, name + "v" * room)).code == 0
        assert (await large_broker.send("T", b"x" * BODY_MAX, name + "v" * (room + 1))).code == 13
        (stored,) = await large_broker.messages("T")
        assert len(stored.properties["K"]) == room

    @pytest.mark.parametrize(("extra", "code"), [(0, 0), (1, 13)])
    async def test_a_batch_is_measured_as_it_was_sent(
        self, large_broker: BrokerHarness, extra: int, code: int
    ) -> None:
        """The records may take more bytes, because every record has a header and a topic."""
        overhead = len(encode_batch([Message("T", b"")]))
        count = 1_000
        size = BODY_MAX // count - overhead
        bodies = [b"x" * size] * (count - 1)
        bodies.append(b"y" * (BODY_MAX - (count - 1) * (size + overhead) - overhead + extra))
        body = encode_batch([Message("T", each) for each in bodies])
        assert len(body) == BODY_MAX + extra
        answer = await large_broker.send("T", body, batch=True, code=RequestCode.SEND_BATCH_MESSAGE)
        assert answer.code == code
        assert large_broker.ctx.store.queue_range("T", 0) == (0, 0 if code else count)
        if not code:
            assert len(answer.ext_fields["msgId"].split(",")) == count


class TestProperties:
    async def test_ten_thousand_keys(self, large_broker: BrokerHarness) -> None:
        keys = [f"k{number:04}" for number in range(4_000)]
        assert (await large_broker.send("T", b"x", f"KEYS\x01{' '.join(keys)}")).code == 0
        (stored,) = await large_broker.messages("T")
        assert stored.keys == keys
        keys = [f"{number}" for number in range(10_000)]
        assert (await large_broker.send("T", b"x", f"KEYS\x01{' '.join(keys)}")).code == 13
        assert (await large_broker.send("T", b"x", f"KEYS\x01{' ' * 10_000}")).code == 0

    @pytest.mark.parametrize(
        "text",
        ["x" * 1_000, "\x01" * 1_000, "\x02" * 1_000, "a\x02b\x02", "\x00\x01\x00", "ü\x01ß"],
    )
    async def test_text_without_sense(self, large_broker: BrokerHarness, text: str) -> None:
        assert (await large_broker.send("T", b"x", text)).code == 0
        (stored,) = await large_broker.messages("T")
        assert stored.properties["CLUSTER"] == "DefaultCluster"

    async def test_multibyte_characters_count_in_bytes(self, large_broker: BrokerHarness) -> None:
        assert (await large_broker.send("T", b"x", "K\x01" + "ü" * 16_000)).code == 0
        assert (await large_broker.send("T", b"x", "K\x01" + "ü" * 17_000)).code == 13
        assert len(await large_broker.messages("T")) == 1


class TestTopics:
    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("t" * 127, 0),
            ("t" * 128, 1),
            ("t" * 255, 1),
            ("t" * 256, 1),
            ("%RETRY%" + "g" * 120, 0),
            ("%RETRY%" + "g" * 121, 1),
            ("", 1),
            (" ", 1),
            ("a/b", 1),
            ("a.b", 1),
            ("ü", 1),
            ("a\x00", 1),
            ("a|b%c-d_e", 0),
        ],
    )
    async def test_names(self, broker: BrokerHarness, name: str, code: int) -> None:
        before = len(broker.ctx.topics)
        answer = await broker.send(name)
        assert answer.code == code, answer.remark
        assert (len(broker.ctx.topics) > before) == (not code)
        if len(name) > 127:
            assert answer.remark == "The specified topic is longer than topic max length."

    @pytest.mark.parametrize(
        ("template_perm", "wanted", "perm", "queues"),
        [(7, 4, 6, 4), (7, 100, 6, 8), (5, 4, 4, 4), (3, 1, 2, 1)],
    )
    async def test_what_a_new_topic_inherits(
        self, broker: BrokerHarness, template_perm: int, wanted: int, perm: int, queues: int
    ) -> None:
        template = TopicConfig(
            topic_name="Template", read_queue_nums=3, write_queue_nums=8, perm=template_perm
        )
        broker.ctx.topics.put(template, broker.now_ms)
        answer = await broker.send("New", default_topic="Template", default_topic_queue_nums=wanted)
        assert answer.code == 0
        topic = broker.ctx.topics.get("New")
        assert topic is not None
        assert (topic.perm, topic.read_queue_nums, topic.write_queue_nums) == (perm, queues, queues)

    async def test_a_template_that_is_not_inherited(self, broker: BrokerHarness) -> None:
        broker.topic("Plain", perm=6)
        assert (await broker.send("New", default_topic="Plain")).code == 17
        assert broker.ctx.topics.get("New") is None


class TestFlags:
    @pytest.mark.parametrize("kind", [0, COMPRESSION_ZLIB, COMPRESSION_LZ4, COMPRESSION_ZSTD])
    async def test_compressed_bodies_stay_unchanged(
        self, broker: BrokerHarness, topic: str, kind: int
    ) -> None:
        packed = compress(b"x" * 5_000, kind or COMPRESSION_ZLIB)
        assert (await broker.send(topic, packed, sys_flag=COMPRESSED | kind)).code == 0
        (stored,) = await broker.messages(topic)
        assert (stored.body, stored.sys_flag) == (packed, COMPRESSED | kind)
        assert stored.decompressed_body() == b"x" * 5_000

    @pytest.mark.parametrize("sys_flag", [0x10, 0x20, 0x30])
    async def test_forged_ipv6_flags_are_cleared(
        self, broker: BrokerHarness, topic: str, sys_flag: int
    ) -> None:
        """The bits say how long the addresses in the record are."""
        assert (await broker.send(topic, b"x", sys_flag=sys_flag)).code == 0
        (stored,) = await broker.messages(topic)
        assert (stored.sys_flag, stored.body) == (0, b"x")

    @pytest.mark.parametrize("value", [-(2**31), -1, 2**31 - 1])
    async def test_numbers_at_their_limits(
        self, broker: BrokerHarness, topic: str, value: int
    ) -> None:
        answer = await broker.send(
            topic, b"x", flag=value, born_timestamp=value, reconsume_times=value
        )
        assert answer.code == 0
        (stored,) = await broker.messages(topic)
        assert (stored.flag, stored.born_timestamp, stored.reconsume_times) == (value,) * 3


def record(body: bytes = b"x", properties: bytes = b"", **lies: int) -> bytes:
    """A message of a batch, possibly with wrong lengths."""
    size = 22 + len(body) + len(properties)
    return b"".join(
        (
            pack(">IIIiI", lies.get("size", size), 0, 0, 0, lies.get("body_bytes", len(body))),
            body,
            pack(">H", lies.get("properties_bytes", len(properties))),
            properties,
        )
    )


class TestBadBatches:
    @pytest.mark.parametrize(
        "bad",
        [
            record(size=0),
            record(size=21),
            record(size=2**32 - 1),
            record(body_bytes=2**31),
            record(body_bytes=0),
            record(properties_bytes=1),
            record(properties_bytes=65_535),
            record(properties=b"K\x01v", body_bytes=5),
            record(properties=b"K\x01" + b"v" * 32_766),
            b"\x00",
            b"\x00" * 22,
        ],
    )
    async def test_batches_with_a_malformed_part_are_refused(
        self, broker: BrokerHarness, topic: str, bad: bytes
    ) -> None:
        for body in (bad, record() + bad, bad + record(), record() + bad + record()):
            answer = await broker.send(topic, body, batch=True)
            assert answer.code in {1, 13}, answer.remark
        assert await broker.messages(topic) == []
        assert (await broker.send(topic, record() + record(b"y"), batch=True)).code == 0
        assert [each.body for each in await broker.messages(topic)] == [b"x", b"y"]

    async def test_properties_without_separators_are_ignored(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        assert (await broker.send(topic, record(properties=b"nonsense"), batch=True)).code == 0
        (stored,) = await broker.messages(topic)
        assert stored.properties == {"CLUSTER": "DefaultCluster"}


async def test_a_refused_oneway_message_is_not_answered(broker: BrokerHarness, topic: str) -> None:
    request = broker.request(RequestCode.SEND_MESSAGE_V2, send_header("SCHEDULE_TOPIC_XXXX"), b"x")
    request.flag |= 2
    broker.give(request)
    assert request.opaque not in broker.client.answers
    assert await broker.messages("SCHEDULE_TOPIC_XXXX") == []
