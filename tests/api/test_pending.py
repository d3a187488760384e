"""Delayed and half messages: lists by due time and age, search, new checks."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from console.audit.models import AuditRow
from console.gateway.pending.half import CheckSettings, Settled, next_check_ms, runs
from core_broker.client import LocalTransactionState, Producer, TransactionProducer
from core_broker.message.model import Message, MessageExt
from core_broker.message.properties import PROPERTY_DELAY_TIME_LEVEL
from core_broker.message.transactions import PROPERTY_MOVED_TO
from tests.api.conftest import Api, browser
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from tests.support.stored_messages import stored

HOUR, HALF_HOUR = 17, 16
CHECKS_MAX = 2


def delayed(topic: str, level: int, key: str) -> Message:
    return Message(topic, b"later", keys=(key,), properties={PROPERTY_DELAY_TIME_LEVEL: str(level)})


@pytest.fixture
def waiting(traffic: Traffic) -> tuple[str, str]:
    """A topic with delayed messages, of keys late-0 to late-2 (1 h) and soon-0 (30 min)."""
    topic, mark = traffic.topic("later"), uuid4().hex[:6]

    async def send() -> None:
        async with Producer("delayed-tests", traffic.namesrv_addr) as producer:
            for number in range(3):
                await producer.send(delayed(topic, HOUR, f"late-{number}-{mark}"))
            await producer.send(delayed(topic, HALF_HOUR, f"soon-0-{mark}"))

    traffic.run(send())
    return topic, mark


def keys(answer: dict[str, Any]) -> list[str]:
    return [each["keys"][0].rpartition("-")[0] for each in answer["items"]]


@pytest.mark.must_beat(30)
def test_delayed_messages_are_listed_by_due_time_until_they_are_delivered(
    api: Api, waiting: tuple[str, str]
) -> None:
    topic, mark = waiting
    found = api.get(f"/delayed-messages?topic={topic}")
    assert keys(found) == ["soon-0", "late-0", "late-1", "late-2"]
    assert [each["level"] for each in found["items"]] == [HALF_HOUR, HOUR, HOUR, HOUR]
    for each in found["items"]:
        assert each["due_ms"] - each["stored_ms"] == each["delay_ms"]
        assert (each["topic"], each["retry_group"]) == (topic, None)
    counted = {level["level"]: level["pending"] for level in found["levels"]}
    assert counted[HOUR] >= 3
    assert found["cancellation"]["available"] is False
    assert "recall" in found["cancellation"]["reason"]
    one = api.get(f"/delayed-messages?q=late-1-{mark}")
    assert keys(one) == ["late-1"]
    assert keys(api.get(f"/delayed-messages?topic={topic}&level={HALF_HOUR}")) == ["soon-0"]
    assert keys(api.get(f"/delayed-messages?topic={topic}&kind=retries")) == []
    due = found["items"][1]["due_ms"]
    assert "soon-0" not in keys(api.get(f"/delayed-messages?topic={topic}&due_from_ms={due}"))
    assert keys(api.get(f"/delayed-messages?topic={topic}&due_to_ms={due - 60_000}")) == ["soon-0"]


def test_pages_of_delayed_messages_have_every_message_once(
    api: Api, waiting: tuple[str, str]
) -> None:
    whole = api.get("/delayed-messages?limit=200")
    assert whole["next_cursor"] is None
    seen, cursor = [], ""
    while True:
        page = api.get(f"/delayed-messages?limit=2{cursor}")
        seen += [each["offset_msg_id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == [each["offset_msg_id"] for each in whole["items"]]
    api.get("/delayed-messages?cursor=%00", status=400)
    api.get("/delayed-messages?kind=none", status=400)
    api.get("/delayed-messages?level=0", status=400)


def test_a_delivered_message_leaves_the_list(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("soon")

    async def send() -> None:
        async with Producer("delayed-tests", traffic.namesrv_addr) as producer:
            await producer.send(delayed(topic, 1, "soon"))

    traffic.run(send())
    poll(lambda: api.get(f"/messages?topic={topic}")["items"])
    assert poll(lambda: not api.get(f"/delayed-messages?topic={topic}")["items"])


@pytest.fixture
def quick_checks(traffic: Traffic) -> Iterator[None]:
    """The broker checks transactions every 200 ms, twice."""
    quick = {
        "transactionTimeOut": "0",
        "transactionCheckInterval": "200",
        "transactionCheckMax": str(CHECKS_MAX),
    }
    before = traffic.admin(lambda admin: admin.broker_config(traffic.broker_addr))
    traffic.admin(lambda admin: admin.update_broker_config(traffic.broker_addr, quick))
    yield
    old = {name: before[name] for name in quick}
    traffic.admin(lambda admin: admin.update_broker_config(traffic.broker_addr, old))


def begin_transaction(traffic: Traffic, topic: str, group: str, key: str) -> TransactionProducer:
    """A producer that answers every check with UNKNOW, and one half message of it."""

    async def start() -> TransactionProducer:
        producer = TransactionProducer(
            group,
            traffic.namesrv_addr,
            execute=lambda _message, _arg: LocalTransactionState.UNKNOW,
            check=lambda _message: LocalTransactionState.UNKNOW,
        )
        await producer.start()
        await producer.send_in_transaction(Message(topic, b"half", keys=(key,)))
        return producer

    return traffic.run(start())


@pytest.mark.must_beat(31)
def test_an_unanswered_half_message_shows_its_checks_is_discarded_and_checked_again(
    api: Api, traffic: Traffic, quick_checks: None, staff: User
) -> None:
    topic, group, key = traffic.topic("orders"), f"tx-{uuid4().hex[:6]}", f"k-{uuid4().hex[:6]}"
    producer = begin_transaction(traffic, topic, group, key)
    rows: list[dict[str, Any]] = []

    def discarded() -> list[dict[str, Any]]:
        rows.extend(api.get(f"/half-messages?q={key}")["items"])
        items = api.get("/discarded-half-messages")["items"]
        return [each for each in items if each["keys"] == [key]]

    try:
        [gone] = poll(discarded)
        assert (gone["real_topic"], gone["producer_group"]) == (topic, group)
        assert gone["checks"] == CHECKS_MAX
        assert {each["topic"] for each in rows} <= {topic}
        counts = [each["checks"] for each in rows]
        assert counts == sorted(counts)
        html = browser(staff).get("/clusters/local/half-messages/discarded/").content.decode()
        assert gone["offset_msg_id"] in html
        ids = [gone["offset_msg_id"], "00" * 16]
        plan = api("post", "/discarded-half-messages/checks?dry_run=1", {"ids": ids}).json()
        assert [each["result"] for each in plan["outcomes"]] == ["planned", "failed"]
        answer = api("post", "/discarded-half-messages/checks", {"ids": ids})
        assert answer.status_code == 207
        body = answer.json()
        assert (body["resumed"], body["failed"]) == (1, 1)
        assert body["outcomes"][1]["error"]
        row = AuditRow.objects.get(action="halfmessage.check")
        assert row.result == "partly"
        # After new checks the message is discarded a second time.
        assert poll(lambda: len(discarded()) == 2)
    finally:
        traffic.run(producer.stop())
    assert api("post", "/discarded-half-messages/checks", {"ids": []}).status_code == 400


def test_a_pending_half_message_names_group_producers_and_next_check(
    api: Api, traffic: Traffic, local: Cluster, staff: User
) -> None:
    topic, group, key = traffic.topic("orders"), f"tx-{uuid4().hex[:6]}", f"k-{uuid4().hex[:6]}"
    producer = begin_transaction(traffic, topic, group, key)
    try:
        [half] = poll(lambda: api.get(f"/half-messages?q={key}")["items"])
        assert (half["topic"], half["producer_group"], half["producers"]) == (topic, group, 1)
        assert half["checks_max"] == 15
        assert half["next_check_ms"] >= half["born_ms"] + 6_000
        page = browser(staff).get(f"/clusters/local/half-messages/?q={key}").content.decode()
        assert half["msg_id"] in page
    finally:
        traffic.run(producer.stop())
    assert poll(lambda: api.get(f"/half-messages?q={key}")["items"][0]["producers"] == 0)


def op(halves: str, moved_to: int | None = None) -> MessageExt:
    message = stored(0, 0, 0)
    message.body, message.properties["TAGS"] = halves.encode(), "d"
    if moved_to is not None:
        message.properties[PROPERTY_MOVED_TO] = str(moved_to)
    return message


def test_op_messages_settle_ended_messages_and_old_copies() -> None:
    settled = Settled()
    settled.read_op(op("3,4,"))  # RocketMQ 5 names several
    settled.read_op(op("5", moved_to=9))
    assert not any(settled.is_pending(each, None) for each in (3, 4, 5))
    assert settled.is_pending(9, 5), "the copy of a message in its immunity time is pending"
    settled.read_op(op("5"))  # the producer ends the transaction by the first offset
    assert not settled.is_pending(9, 5)
    assert not settled.is_pending(12, 3), "RocketMQ's copy of an ended message"
    settled.read_op(op("-1,x,99999999999999999999"))
    assert settled.is_pending(10, None)


def test_a_long_range_of_half_messages_is_not_walked_to_its_end() -> None:
    settled = Settled()
    settled.read_op(op("0,2,"))
    assert settled.pending(0, 10**12, 3) == ([1, 3, 4], 10**12 - 5)
    assert settled.pending(1, 4, 9) == ([1, 3], 0)
    assert settled.pending(4, 4, 9) == settled.pending(5, 4, 9) == ([], 0)


def test_half_messages_are_read_in_few_ranges() -> None:
    assert runs([]) == []
    assert runs([3, 4, 8, 50]) == [(3, 9), (50, 51)]


def test_the_next_check_follows_immunity_and_interval() -> None:
    message = stored(0, 0, 50_000)
    message.born_timestamp = 1_000
    settings = CheckSettings(interval_ms=60_000, timeout_ms=6_000, checks_max=15)
    assert next_check_ms(message, 0, settings) == 7_000
    assert next_check_ms(message, 2, settings) == 110_000
    message.properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] = "30"
    assert next_check_ms(message, 0, settings) == 31_000
    assert next_check_ms(message, 0, CheckSettings(None, 1, 1)) is None
