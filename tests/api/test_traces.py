"""The journey of one message, as page and resource, from traces of real clients."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from pytest_django import Settings

from console.gateway import gateway
from console.gateway.traces import journey as questions
from core_broker.client import AdminClient, Producer, SendResult
from core_broker.message.model import Message
from core_broker.message.topics import TRACE_TOPIC
from tests.api.conftest import Api
from tests.api.stored import (
    NASTY,
    NASTY_PROPERTIES,
    RAW,
    Dead,
    routed_topic,
    store,
    wait_for_topic,
)
from tests.api.test_pages import Shape, html
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord, encode_trace, message_keys
from trace.hooks import TraceHook

HOME = "/clusters/local/traces/"
SENT_MS = 1_800_000_000_000


@pytest.fixture
def topic(traffic: Traffic) -> str:
    """Create a topic and the trace topic."""
    store(traffic, Message(TRACE_TOPIC, b"no record", keys=("nobody",)))
    wait_for_topic(traffic, TRACE_TOPIC)
    return routed_topic(traffic, "traced")


def record(traffic: Traffic, *records: TraceRecord) -> None:
    """Write trace records as a client does."""
    message = Message(TRACE_TOPIC, encode_trace(records), keys=message_keys(records))
    store(traffic, message)


def attempt(msg_id: str, retry: int, at_ms: int, *, success: bool) -> list[TraceRecord]:
    known = {"request_id": f"r{retry}-{at_ms}", "msg_id": msg_id, "group": "cg"}
    return [
        SubBefore(timestamp_ms=at_ms, retry_times=retry, **known),
        SubAfter(cost_ms=5, success=success, timestamp_ms=at_ms + 5, **known),
    ]


def send_traced(traffic: Traffic, message: Message) -> SendResult:
    async def run(_admin: AdminClient) -> SendResult:
        async with Producer("traced-producer", traffic.namesrv_addr, [TraceHook()]) as producer:
            return await producer.send(message)

    return traffic.admin(run)


def test_a_message_is_followed_from_its_producer_to_its_consumer(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    group = traffic.group("follower")
    with traffic.consumer(group, topic, hooks=[TraceHook()]):
        sent = send_traced(traffic, Message(topic, b"follow me", keys=("key",)))
        journey = poll(lambda: journey_of(api, sent.msg_id, "consumed", "sent"))
    timeline = journey["timeline"]
    assert (journey["reason"], journey["broken_count"], journey["is_cut"]) == (None, 0, False)
    kinds = [event["kind"] for event in timeline["events"]]
    assert kinds == ["sent", "stored", "consume_started", "consumed"]
    assert [each["group"] for each in timeline["groups"]] == [group]
    assert timeline["groups"][0]["latencies"]["end_to_end_ms"] >= 0
    shown = html(page, f"{HOME}{sent.msg_id}/")
    assert "Delivered and consumed" in shown
    assert f"/clusters/local/groups/{group}/" in Shape(shown).links
    assert f"/clusters/local/messages/{sent.offset_msg_id}/" in Shape(shown).links
    assert Shape(shown).wrong == []


def test_a_dead_letter_shows_each_attempt_and_its_second_life(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    dead = Dead(traffic, count=1)
    [letter] = api.get(f"/dlq/{dead.group}/messages")["items"]
    msg_id, died_ms = letter["msg_id"], letter["store_timestamp"]
    group = {"group": dead.group}
    first = SubBefore(timestamp_ms=died_ms - 9, request_id="a", msg_id=msg_id, **group)
    failed = SubAfter(
        request_id="a",
        msg_id=msg_id,
        cost_ms=4,
        success=False,
        timestamp_ms=died_ms - 5,
        context_code=2,
        **group,
    )
    record(traffic, first, failed)
    journey = poll(lambda: journey_of(api, msg_id, "dead_lettered"))
    kinds = [event["kind"] for event in journey["timeline"]["events"]]
    assert kinds == ["consume_started", "consume_failed", "dead_lettered"]
    shown = html(page, f"{HOME}{msg_id}/?topic={dead.topic}")
    assert "consumer exception" in shown
    assert f"/clusters/local/dlq/{dead.group}/{letter['offset_msg_id']}/" in Shape(shown).links

    assert api("post", f"/dlq/{dead.group}/resend", {"ids": [letter["offset_msg_id"]]}).json()[
        "sent"
    ]
    again = SubBefore(timestamp_ms=died_ms + 50, request_id="b", msg_id=msg_id, **group)
    done = SubAfter(
        request_id="b", msg_id=msg_id, cost_ms=3, success=True, timestamp_ms=died_ms + 53
    )
    record(traffic, again, done)
    poll(lambda: journey_of(api, msg_id, "consumed"))
    assert "Resent by staff" in poll(lambda: with_text(page, msg_id, "Resent"))


def journey_of(api: Api, msg_id: str, outcome: str, *kinds: str) -> dict[str, Any]:
    """The journey with this outcome and events of all these kinds, or nothing."""
    journey: dict[str, Any] = api.get(f"/traces/{msg_id}")
    timeline = journey["timeline"]
    if timeline is None or timeline["outcome"] != outcome:
        return {}
    return journey if {*kinds} <= {event["kind"] for event in timeline["events"]} else {}


def with_text(page: Client, msg_id: str, text: str) -> str:
    shown = html(page, f"{HOME}{quote(msg_id)}/")
    return shown if text in shown else ""


def test_broken_records_are_counted_and_the_rest_is_shown(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    pub = Pub(timestamp_ms=SENT_MS, group="pg", topic=topic, msg_id="half-broken")
    body = encode_trace([pub]) + b"SubBefore\x01not a time\x01\x02"
    store(traffic, Message(TRACE_TOPIC, body, keys=("half-broken",)))
    journey = poll(lambda: journey_of(api, "half-broken", "pending"))
    assert journey["broken_count"] == 1
    assert "One trace record could not be read." in html(page, f"{HOME}half-broken/")


def test_clocks_that_differ_are_shown(page: Client, traffic: Traffic, topic: str) -> None:
    pub = Pub(timestamp_ms=SENT_MS, group="pg", topic=topic, msg_id="skewed", cost_ms=2)
    record(traffic, pub, *attempt("skewed", 0, SENT_MS - 700, success=True))
    assert "clock off by 700 ms" in poll(lambda: with_text(page, "skewed", "clock off"))


def test_each_reason_for_no_trace_is_told_apart(
    api: Api, page: Client, traffic: Traffic, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(msg_id: str, reason: str) -> str:
        assert api.get(f"/traces/{msg_id}?topic={topic}")["reason"] == reason
        assert api.get(f"/traces/{msg_id}")["reason"] == reason
        return html(page, f"{HOME}{msg_id}/?topic={topic}")

    [new] = store(traffic, Message(topic, b"new"))
    assert "Nothing is recorded yet" in shown(new.msg_id, "not_yet")
    assert "No such message" in shown("0" * 32, "unknown_message")
    monkeypatch.setattr(questions, "RECORDS_DELAY_MS", 0)
    [old] = store(traffic, Message(topic, b"old"))
    assert "This message was not traced" in shown(old.msg_id, "client_off")
    assert api.get(f"/traces/x?topic=nosuch-{topic}")["reason"] == "unknown_message"


def test_a_cluster_without_the_trace_topic_says_what_to_set(
    tmp_path: Path, settings: Settings, api: Api, page: Client
) -> None:
    with Cluster(tmp_path) as own:
        settings.CONSOLE_CLUSTERS = {"local": own.namesrv_addr}
        poll(lambda: api("get", "/topics").status_code == 200)
        assert api.get("/traces/any")["reason"] == "broker_off"
        assert "traceTopicEnable=true" in html(page, f"{HOME}any/")
        gateway.close()


def test_any_id_or_key_leads_to_a_journey(page: Client, traffic: Traffic, topic: str) -> None:
    sent, other = store(
        traffic,
        Message(topic, b"one", keys=(f"one-{topic}", f"both-{topic}")),
        Message(topic, b"two", keys=(f"both-{topic}",)),
    )
    for text in (sent.msg_id, sent.offset_msg_id, f"one-{topic}"):
        answer = page.get(f"{HOME}?q={text}")
        assert answer.status_code == 302
        assert answer.headers["Location"] == f"{HOME}{sent.msg_id}/?topic={topic}"
    choice = Shape(html(page, f"{HOME}?q=both-{topic}&topic={topic}")).links
    assert f"{HOME}{sent.msg_id}/?topic={topic}" in choice
    assert f"{HOME}{other.msg_id}/?topic={topic}" in choice
    assert page.get(f"{HOME}?q=unknown").headers["Location"] == f"{HOME}unknown/"
    assert page.get(f"{HOME}?q=a&topic=gone").headers["Location"] == f"{HOME}a/?topic=gone"
    assert "Follow one message" in html(page, HOME)
    html(page, f"{HOME}?q=", status=400)


def test_what_people_write_is_shown_and_never_run(
    page: Client, traffic: Traffic, topic: str
) -> None:
    [sent] = store(traffic, Message(topic, b"body", properties=NASTY_PROPERTIES))
    assert sent.msg_id == NASTY
    pub = Pub(timestamp_ms=SENT_MS, group=NASTY, topic=NASTY, msg_id=NASTY, tags=NASTY)
    known = {"request_id": NASTY, "msg_id": NASTY, "group": NASTY}
    record(traffic, pub, SubBefore(timestamp_ms=SENT_MS, **known))
    poll(lambda: with_text(page, NASTY, "Sent by the producer"))
    for path in (f"{HOME}{quote(NASTY)}/", f"{HOME}?q={quote(NASTY)}", f"{HOME}?q={quote(NASTY)}x"):
        answer = page.get(path, follow=True)
        assert answer.status_code == 200
        assert b"&lt;script&gt;alert" in answer.content
        assert not any(raw in answer.content for raw in RAW)
        assert b" style=" not in answer.content


@pytest.mark.parametrize(
    "msg_id", ["x", "A" * 4000, "%00", "a%2Fb", "订单", "..%2F..", "%25DLQ%25"]
)
def test_any_text_is_an_id_that_may_be_unknown(
    api: Api, page: Client, traffic: Traffic, topic: str, msg_id: str
) -> None:
    assert api.get(f"/traces/{msg_id}")["reason"] == "unknown_message"
    assert "No such message" in html(page, f"{HOME}{msg_id}/")


def test_a_message_that_the_filter_rejects_is_filtered_out_and_not_pending(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    """The committed offset lies beyond the rejected message, as if the group had consumed it."""
    group = traffic.group("paid")
    with traffic.consumer(group, topic, "paid || refunded"):
        sent = send_traced(traffic, Message(topic, b"other", tags="open"))
        poll(lambda: standing_of(api, sent.msg_id, group) == "filtered")
        shown = poll(lambda: in_heading(page, sent.msg_id, topic, "filtered out"))
        assert "not consumed yet" not in shown
        text = html(page, f"/clusters/local/messages/{sent.offset_msg_id}/")
        assert "filtered out" in text
        assert "paid || refunded" in text
    poll(lambda: standing_of(api, sent.msg_id, group) == "consumed")
    text = poll(lambda: in_heading(page, sent.msg_id, topic, "consumed, by offset"))
    assert "not consumed yet" not in text, "an offline group's filter is unknown"


def standing_of(api: Api, msg_id: str, group: str) -> str:
    found = api.get(f"/traces/{msg_id}")["standings"]
    return next((each["standing"] for each in found if each["group"] == group), "")


def in_heading(page: Client, msg_id: str, topic: str, words: str) -> str:
    """The page of a journey as soon as its heading has the words."""
    text = html(page, f"{HOME}{msg_id}/?topic={topic}")
    return text if words in text.partition("</h1>")[0] else ""
