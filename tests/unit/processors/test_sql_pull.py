"""Pulling by SQL92: sources of the expression, refusals, long polling, budgets, retries."""

from typing import Any

import pytest

from core_broker.filter.sql92 import EXPRESSION_CHARS_MAX
from core_broker.message.record import decode_records
from core_broker.processors import subscriptions
from core_broker.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import UnregisterClientRequestHeader
from tests.support.broker_harness import BrokerHarness, Peer
from tests.support.broker_requests import pull_header
from tests.unit.processors.conftest import MakeBroker


def bodies(response: RemotingCommand) -> list[bytes]:
    return [each.body for each in decode_records(response.body)]


def next_offset(response: RemotingCommand) -> int:
    return int(response.ext_fields["nextBeginOffset"])


@pytest.fixture
def filtering(make_broker: MakeBroker) -> BrokerHarness:
    """A broker with enablePropertyFilter=true, with a topic."""
    broker = make_broker(enable_property_filter=True)
    broker.topic()
    return broker


def subscribed(expression: str, version: int = 5, topic: str = "T") -> SubscriptionData:
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type="SQL92", sub_version=version
    )


async def beat(
    broker: BrokerHarness, *subscriptions: SubscriptionData, peer: Peer | None = None
) -> None:
    consumer = ConsumerData(group_name="CG", subscription_data_set=list(subscriptions))
    body = HeartbeatData(client_id="c1", consumer_data_set=[consumer])
    assert (await broker.ask(RequestCode.HEART_BEAT, body=body, peer=peer)).code == 0


async def fill(broker: BrokerHarness, count: int = 6, topic: str = "T", body: bytes = b"") -> None:
    for number in range(count):
        properties = f"n\x01{number}\x02TAGS\x01{'even' if number % 2 == 0 else 'odd'}"
        await broker.send(topic, str(number).encode() + body, properties)


async def pull(broker: BrokerHarness, offset: int = 0, **fields: Any) -> RemotingCommand:
    """Pull as a Java push consumer does, without an expression."""
    wanted = {"sys_flag": 0, "sub_version": 5, "subscription": None, "expression_type": "SQL92"}
    return await broker.pull("T", offset, **wanted | fields)


def hold(broker: BrokerHarness, peer: Peer, expression: str, offset: int = 0) -> RemotingCommand:
    header = pull_header("T", offset, sys_flag=6, subscription=expression, expression_type="SQL92")
    request = broker.request(RequestCode.PULL_MESSAGE, header)
    assert broker.give(request, peer) is None
    return request


class TestExpressionInTheRequest:
    async def test_filters(self, filtering: BrokerHarness) -> None:
        await fill(filtering)
        response = await filtering.pull(
            "T", subscription="n > 1 AND TAGS = 'even'", expression_type="SQL92"
        )
        assert bodies(response) == [b"2", b"4"]
        assert next_offset(response) == 6

    async def test_nothing_matches(self, filtering: BrokerHarness) -> None:
        await fill(filtering)
        response = await filtering.pull("T", subscription="n > 9", expression_type="SQL92")
        assert (response.code, response.remark, next_offset(response)) == (
            20,
            "NO_MATCHED_MESSAGE",
            6,
        )

    @pytest.mark.parametrize("expression", ["n >", "n = 1 AND", "('"])
    async def test_a_syntax_error_in_a_request_filters_no_message(
        self, filtering: BrokerHarness, expression: str
    ) -> None:
        await fill(filtering)
        response = await filtering.pull("T", subscription=expression, expression_type="SQL92")
        assert (response.code, len(bodies(response))) == (0, 6)

    async def test_an_empty_expression_is_refused(self, filtering: BrokerHarness) -> None:
        response = await filtering.pull("T", subscription="", expression_type="SQL92")
        assert (response.code, response.remark) == (23, "parse the consumer's subscription failed")

    async def test_large_bodies_are_passed_over(self, filtering: BrokerHarness) -> None:
        await fill(filtering, 3, body=b"x" * 9_000)
        response = await filtering.pull("T", subscription="n = 2", expression_type="SQL92")
        assert bodies(response) == [b"2" + b"x" * 9_000]


class TestExpressionOfTheHeartbeat:
    async def test_filters(self, filtering: BrokerHarness) -> None:
        await fill(filtering)
        await beat(filtering, subscribed("n BETWEEN 1 AND 2"))
        assert bodies(await pull(filtering)) == [b"1", b"2"]

    async def test_switched_off(self, make_broker: MakeBroker) -> None:
        broker = make_broker()
        broker.topic()
        await beat(broker, subscribed("n = 1"))
        response = await pull(broker)
        assert (response.code, response.remark) == (
            1,
            "The broker does not support consumer to filter message by SQL92",
        )

    async def test_a_heartbeat_expression_with_a_syntax_error(
        self, filtering: BrokerHarness
    ) -> None:
        await beat(filtering, subscribed("n >"))
        response = await pull(filtering)
        assert (response.code, response.remark) == (
            27,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )

    async def test_an_older_expression(self, filtering: BrokerHarness) -> None:
        await beat(filtering, subscribed("n = 1"))
        group = filtering.ctx.consumers.group("CG")
        assert group is not None
        group.subscriptions["T"].sub_version = 6
        response = await pull(filtering, sub_version=6)
        assert (response.code, response.remark) == (
            28,
            "the consumer's consumer filter data not latest",
        )

    async def test_a_newer_expression_replaces_the_older(self, filtering: BrokerHarness) -> None:
        await fill(filtering)
        await beat(filtering, subscribed("n = 1"))
        await beat(filtering, subscribed("n = 2", version=4))
        assert bodies(await pull(filtering)) == [b"1"]
        await beat(filtering, subscribed("n = 2", version=6))
        assert bodies(await pull(filtering, sub_version=6)) == [b"2"]
        await beat(filtering, subscribed("n >", version=7))
        assert (await pull(filtering, sub_version=7)).code == 27

    async def test_the_filter_is_dead_after_the_last_consumer(
        self, filtering: BrokerHarness
    ) -> None:
        other = filtering.peer()
        await beat(filtering, subscribed("n = 1"))
        await beat(filtering, subscribed("n = 1"), peer=other)
        leave = UnregisterClientRequestHeader(client_id="c1", consumer_group="CG")
        known = filtering.ctx.filters.get("T", "CG")
        assert known is not None
        await filtering.ask(RequestCode.UNREGISTER_CLIENT, leave)
        assert not known.data.is_dead
        filtering.requests.clients.disconnected(other)  # type: ignore[arg-type]
        assert known.data.dead_time == filtering.now_ms
        await beat(filtering, subscribed("n = 1"))
        assert not known.data.is_dead


class TestWaiting:
    async def test_only_a_matching_message_ends_the_wait(self, filtering: BrokerHarness) -> None:
        waiting = filtering.peer()
        request = hold(filtering, waiting, "n = 2")
        await fill(filtering, 2)
        assert waiting.answers == {}
        await fill(filtering, 3)
        assert bodies(waiting.answers[request.opaque]) == [b"2"]
        assert next_offset(waiting.answers[request.opaque]) == 5

    async def test_the_deadline_is_kept(self, filtering: BrokerHarness) -> None:
        waiting = filtering.peer()
        request = hold(filtering, waiting, "n = 9")
        filtering.now_ms += 10_000
        await fill(filtering, 2)
        filtering.now_ms += 5_300
        filtering.requests.pulls.expire()
        answer = waiting.answers[request.opaque]
        assert (answer.code, next_offset(answer)) == (19, 2)

    async def test_rejected_messages_are_not_evaluated_again(
        self, filtering: BrokerHarness
    ) -> None:
        waiting = filtering.peer()
        request = hold(filtering, waiting, "n = 9")
        await fill(filtering, 3)
        held = filtering.requests.held_pulls.take_all()
        assert [(pull.offset, pull.query.offset) for pull in held] == [(3, 3)]
        assert request.opaque not in waiting.answers


class TestBudget:
    async def test_a_costly_filter_goes_on_with_the_next_pull(
        self, filtering: BrokerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(subscriptions, "STEPS_PER_PULL_MAX", 50)
        await fill(filtering, 6)
        offset, found = 0, []
        for _ in range(6):
            response = await filtering.pull(
                "T", offset, subscription="n = 4", expression_type="SQL92"
            )
            found += bodies(response)
            assert next_offset(response) - offset in {1, 2}
            offset = next_offset(response)
            if offset == 6:
                break
        assert found == [b"4"]

    async def test_the_largest_expression_still_moves_on(self, filtering: BrokerHarness) -> None:
        await fill(filtering, 3)
        expression = " OR ".join(f"n={number}" for number in range(10, 1_300))
        assert len(expression) < EXPRESSION_CHARS_MAX
        response = await filtering.pull("T", subscription=expression, expression_type="SQL92")
        assert response.code == 20
        assert next_offset(response) >= 1


class TestRetryTopic:
    async def test_retries_by_the_filter_of_the_original_topic(
        self, make_broker: MakeBroker
    ) -> None:
        broker = make_broker(enable_property_filter=True, filter_support_retry=True)
        broker.topic()
        retry = SubscriptionData(topic="%RETRY%CG", sub_string="*", sub_version=5)
        await beat(broker, subscribed("n = 1"), retry)
        for number in range(3):
            await broker.send("%RETRY%CG", b"%d" % number, f"n\x01{number}\x02RETRY_TOPIC\x01T")
        await broker.send("%RETRY%CG", b"other", "n\x017\x02RETRY_TOPIC\x01Other")
        response = await broker.pull("%RETRY%CG", sys_flag=0, sub_version=5, subscription=None)
        assert bodies(response) == [b"1", b"other"]

    async def test_not_filtered_otherwise(self, filtering: BrokerHarness) -> None:
        retry = SubscriptionData(topic="%RETRY%CG", sub_string="*", sub_version=5)
        await beat(filtering, subscribed("n = 1"), retry)
        await filtering.send("%RETRY%CG", b"2", "n\x012\x02RETRY_TOPIC\x01T")
        response = await filtering.pull("%RETRY%CG", sys_flag=0, sub_version=5, subscription=None)
        assert bodies(response) == [b"2"]


class TestCheckConfig:
    def body(self, expression: str, kind: str = "SQL92") -> CheckClientRequestBody:
        data = SubscriptionData(topic="T", sub_string=expression, expression_type=kind)
        return CheckClientRequestBody(client_id="c", group="CG", subscription_data=data)

    async def test_valid_expressions(self, filtering: BrokerHarness) -> None:
        for body in (self.body("a = 1"), self.body("A || B", "TAG")):
            assert (await filtering.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)).code == 0

    @pytest.mark.parametrize(
        ("expression", "kind", "remark"),
        [
            (
                "a and between 2 and 10",
                "SQL92",
                'Invalid MessageSelector. Encountered "between" where a value is expected '
                "at line 1, column 7.",
            ),
            ("a = 1", "XPATH", "Unknown filter type 'XPATH' at line 1, column 1."),
            ("(" * 5_000, "SQL92", "More than 64 levels of nesting at line 1, column 65."),
            ("a\0 = 1", "SQL92", r"'\x00 = 1' begins no token at line 1, column 2."),
            ("ü" * 40_000, "SQL92", f"over {EXPRESSION_CHARS_MAX} at line 1"),
        ],
    )
    async def test_syntax_errors_with_position(
        self, filtering: BrokerHarness, expression: str, kind: str, remark: str
    ) -> None:
        body = self.body(expression, kind)
        response = await filtering.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body)
        assert response.code == 23
        assert remark in str(response.remark)

    async def test_switched_off(self, broker: BrokerHarness) -> None:
        response = await broker.ask(RequestCode.CHECK_CLIENT_CONFIG, body=self.body("a = 1"))
        assert (response.code, response.remark) == (
            1,
            "The broker does not support consumer to filter message by SQL92",
        )
