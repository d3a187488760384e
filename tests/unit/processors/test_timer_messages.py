"""processors/delays.py: timer messages of RocketMQ 5 are refused."""

import pytest

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from tests.support.broker_harness import BrokerHarness

PROPERTIES = "KEYS\x01K1\x02UNIQ_KEY\x01FD00\x02WAIT\x01true"
DELAYED_TIMER = "DELAY\x012\x02TIMER_DELIVER_MS\x019\x02a\x01b"


class TestTimerMessages:
    @pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
    async def test_refused_with_the_property_and_the_alternative(
        self, broker: BrokerHarness, topic: str, name: str
    ) -> None:
        properties = f"{PROPERTIES}\x02{name}\x0110"
        response = await broker.send(topic, b"hi", properties)
        assert (response.code, response.remark) == (
            13,
            f"timer messages are not supported (property {name}); use a delay level (DELAY)",
        )
        half = f"{properties}\x02TRAN_MSG\x01true\x02PGROUP\x01PG"
        assert (await broker.send(topic, b"hi", half, sys_flag=4)).code == 13
        assert await broker.messages(topic) == []
        assert broker.ctx.topics.get("RMQ_SYS_TRANS_HALF_TOPIC") is None

    async def test_refused_in_a_batch_as_a_whole(self, broker: BrokerHarness, topic: str) -> None:
        timer = Message("T", b"2", properties={"TIMER_DELAY_SEC": "10"})
        body = encode_batch([Message("T", b"1"), timer])
        assert (await broker.send(topic, body, batch=True, code=320)).code == 13
        plain = encode_batch([Message("T", b"1")])
        response = await broker.send(topic, plain, "TIMER_DELAY_MS\x0110", batch=True)
        assert (response).code == 13
        assert await broker.messages(topic) == []

    async def test_a_delay_level_wins(self, broker: BrokerHarness, topic: str) -> None:
        response = await broker.send(topic, b"hi", DELAYED_TIMER)
        assert response.code == 0
        (delayed,) = await broker.messages("SCHEDULE_TOPIC_XXXX", 1)
        assert delayed.properties.keys() == {"DELAY", "a", "CLUSTER", "REAL_TOPIC", "REAL_QID"}
        for no_level in ("0", "-1"):
            properties = f"DELAY\x01{no_level}\x02TIMER_DELIVER_MS\x019"
            assert (await broker.send(topic, b"hi", properties)).code == 13

    async def test_a_retried_message_is_accepted(self, broker: BrokerHarness) -> None:
        """A consumer may retry a message that a broker of RocketMQ 5 has delivered on time."""
        retry = broker.topic("%RETRY%G", 1)
        response = await broker.send(retry, b"hi", "TIMER_DELAY_SEC\x0110\x02a\x01b")
        assert response.code == 0
        (stored,) = await broker.messages(retry)
        assert stored.properties == {"a": "b", "CLUSTER": "DefaultCluster"}
