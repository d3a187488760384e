"""processors/send.py: batches of messages in one request."""

from collections.abc import Callable

import pytest

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from tests.support.broker_harness import BrokerHarness
from tests.unit.processors.conftest import MakeBroker


class TestBatch:
    def body(self, *texts: bytes) -> bytes:
        return encode_batch([Message("T", text, tags="A", keys=["k"]) for text in texts])

    async def test_each_message_is_a_record_with_the_properties_of_both(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        response = await broker.send(
            topic, self.body(b"1", b"2", b"3"), "WAIT\x01true", batch=True, code=320
        )
        assert response.code == 0
        stored = await broker.messages(topic)
        assert [each.body for each in stored] == [b"1", b"2", b"3"]
        assert [each.queue_offset for each in stored] == [0, 1, 2]
        assert stored[0].properties == {
            "KEYS": "k", "TAGS": "A", "WAIT": "true", "CLUSTER": "DefaultCluster",
        }  # fmt: skip
        assert response.ext_fields["msgId"] == ",".join(each.offset_msg_id for each in stored)
        assert response.ext_fields["queueOffset"] == "0"
        assert broker.ctx.statistics.totals()["TOPIC_PUT_NUMS"] == {topic: 3}

    async def test_the_flag_decides_not_the_code(self, broker: BrokerHarness, topic: str) -> None:
        await broker.send(topic, self.body(b"1", b"2"), batch=True, code=310)
        assert len(await broker.messages(topic)) == 2
        await broker.send(topic, self.body(b"1", b"2"), batch=False, code=320)
        assert len(await broker.messages(topic)) == 3

    @pytest.mark.parametrize(
        "damage",
        [
            lambda body: b"",
            lambda body: body[:-1],
            lambda body: body + b"\x00",
            lambda body: b"\xff" * len(body),
            lambda body: b"\x00" * len(body),
            lambda body: body[:3] + b"\xff" + body[4:],
        ],
    )
    async def test_a_damaged_batch_stores_nothing(
        self, broker: BrokerHarness, topic: str, damage: Callable[[bytes], bytes]
    ) -> None:
        response = await broker.send(topic, damage(self.body(b"1", b"2")), batch=True)
        assert response.code in {1, 13}
        assert await broker.messages(topic) == []

    async def test_neither_delayed_nor_transactional_nor_to_a_retry_topic(
        self, broker: BrokerHarness, topic: str
    ) -> None:
        body = self.body(b"1")
        assert (await broker.send(topic, body, "DELAY\x011", batch=True)).code == 13
        assert (await broker.send(topic, body, batch=True, sys_flag=4)).code == 13
        assert (await broker.send(topic, body, "TRAN_MSG\x01true", batch=True)).code == 13
        response = await broker.send("%RETRY%G", body, batch=True)
        assert (response.code, response.remark) == (
            13,
            "batch request does not support retry group %RETRY%G",
        )

    async def test_the_whole_batch_is_measured(self, make_broker: MakeBroker) -> None:
        broker = make_broker(max_message_size=100)
        topic = broker.topic()
        assert (await broker.send(topic, self.body(b"x" * 30, b"x" * 30), batch=True)).code == 13
        assert await broker.messages(topic) == []
