"""Sends from the console: all message types with stored properties, and all refusals."""

import base64
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core_broker.message.hashing import java_string_hash
from core_broker.message.model import Message
from core_broker.message.topics import TRACE_TOPIC
from tests.api.conftest import Api, browser
from tests.api.stored import NASTY, RAW, routed_topic, store
from tests.api.test_pages import html
from tests.api.traffic import Traffic, poll

SEND = "/clusters/local/messages/send/"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "written", read_queue_nums=4, write_queue_nums=4)


def send(api: Api, **draft: Any) -> list[dict[str, Any]]:
    answer = api("post", "/messages", {"body": "hello", **draft})
    assert answer.status_code == 201, answer.content
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def stored_in(api: Api, topic: str, count: int) -> list[dict[str, Any]]:
    """The messages of a topic with details, once `count` messages are stored."""

    def stored() -> list[dict[str, Any]]:
        items = api.get(f"/messages?topic={topic}")["items"]
        return items if len(items) >= count else []

    items = poll(stored)
    assert len(items) == count
    return [api.get(f"/messages/{item['offset_msg_id']}") for item in items]


@pytest.mark.must_beat(25)
def test_a_normal_message_keeps_what_was_written(api: Api, topic: str) -> None:
    broker = send(api, topic=topic)[0]["queue"].partition(":")[0]
    [sent] = send(
        api,
        topic=topic,
        body=base64.b64encode(b"\x00\xff").decode(),
        body_encoding="base64",
        tags="paid",
        keys=["k1", "k2"],
        properties={"colour": "red", "名": "值"},
        queue=f"{broker}:3",
    )
    assert (sent["queue"], sent["status"]) == (f"{broker}:3", "SEND_OK")
    message = api.get(f"/messages/{sent['offset_msg_id']}")
    assert message["msg_id"] == sent["msg_id"]
    assert (message["tags"], message["keys"], message["queue_id"]) == ("paid", ["k1", "k2"], 3)
    assert message["properties"]["colour"] == "red"
    assert message["properties"]["名"] == "值"
    assert message["body"]["text"].startswith("00000000  00 ff")


@pytest.mark.must_beat(25)
def test_a_delayed_message_comes_after_its_delay(api: Api, topic: str) -> None:
    [sent] = send(api, topic=topic, type="delay", delay_level=1, body="later")
    [message] = stored_in(api, topic, 1)
    assert message["msg_id"] == sent["msg_id"]
    assert message["properties"]["DELAY"] == "1"
    assert message["store_timestamp"] - message["born_timestamp"] >= 900


@pytest.mark.must_beat(25)
def test_messages_of_a_group_go_to_the_queue_that_java_would_choose(api: Api, topic: str) -> None:
    sent = send(api, topic=topic, type="fifo", message_group="order-7", count=3)
    queue = abs(java_string_hash("order-7")) % 4
    assert {each["queue"].rpartition(":")[2] for each in sent} == {str(queue)}
    assert [each["queue_offset"] for each in sent] == [0, 1, 2]
    message = api.get(f"/messages/{sent[0]['offset_msg_id']}")
    assert message["properties"]["__SHARDINGKEY"] == "order-7"


@pytest.mark.must_beat(25)
def test_a_transaction_ends_as_it_was_said(api: Api, topic: str) -> None:
    for outcome in ("rollback", "unknown", "commit"):
        [sent] = send(api, topic=topic, type="transaction", outcome=outcome, body=outcome)
    [message] = stored_in(api, topic, 1)
    assert (message["body"]["text"], message["msg_id"]) == ("commit", sent["msg_id"])
    assert message["properties"]["PGROUP"] == "console_producer"
    half = api.get("/messages?topic=RMQ_SYS_TRANS_HALF_TOPIC")["items"]
    assert len(half) >= 1


@pytest.mark.must_beat(25)
def test_many_are_sent_in_batches_and_each_has_its_own_id(api: Api, topic: str) -> None:
    sent = send(api, topic=topic, count=250, tags="many")
    assert len({each["msg_id"] for each in sent}) == 250
    answer = api.get(f"/messages?topic={topic}&limit=200")
    assert answer["total"] == 250
    first = api.get(f"/messages/{sent[120]['offset_msg_id']}")
    assert (first["msg_id"], first["tags"]) == (sent[120]["msg_id"], "many")


def test_a_trace_is_written_when_it_is_wanted(api: Api, topic: str) -> None:
    [sent] = send(api, topic=topic, trace=True)

    def stored() -> list[Any]:
        answer = api("get", f"/messages?topic={TRACE_TOPIC}&body={sent['msg_id']}")
        return answer.json()["items"] if answer.status_code == 200 else []

    assert poll(stored)


@pytest.mark.parametrize(
    ("draft", "status"),
    [
        ({"body": ""}, 400),
        ({"body": "x", "body_encoding": "base64"}, 400),
        ({"count": 1_001}, 400),
        ({"type": "nonsense"}, 400),
        ({"type": "delay"}, 400),
        ({"type": "fifo"}, 400),
        ({"type": "delay", "deliver_ms": 2_000_000_000_000}, 409),
        ({"type": "transaction", "queue": "broker-a:0"}, 400),
        ({"queue": "nosuch:9"}, 404),
        ({"properties": {"KEYS": "x"}}, 400),
        ({"properties": {"a": "x\x01y"}}, 400),
        ({"properties": {str(n): "x" for n in range(101)}}, 400),
        ({"properties": {"big": "x" * 32_000, "bigger": "x" * 32_000}}, 400),
        ({"keys": ["with blank"]}, 400),
        ({"unknown": 1}, 400),
        ({"body": "x" * 3_100_000}, 400),
        ({"body": "x" * 100_000, "count": 1_000}, 400),
        ({"topic": "nosuch"}, 404),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, 400),
        ({"producer_group": "!!"}, 400),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_reason(
    api: Api, topic: str, draft: dict[str, Any], status: int
) -> None:
    answer = api("post", "/messages", {"topic": topic, "body": "hello", **draft})
    assert answer.status_code == status, answer.content
    told = answer.json()
    assert told["detail"] or told["errors"]
    assert api.get(f"/messages?topic={topic}")["total"] == 0


def test_a_topic_that_forbids_writing_says_so(api: Api, page: Client, traffic: Traffic) -> None:
    topic = routed_topic(traffic, "shut", perm=4)
    answer = api("post", "/messages", {"topic": topic, "body": "x"})
    assert answer.status_code == 409
    assert "read only" in answer.json()["detail"]
    assert "takes no messages" in html(page, f"{SEND}?topic={topic}")
    form = {"topic": topic, "type": "normal", "body": "x"}
    shown = page.post(SEND, form)
    assert shown.status_code == 409
    assert b"takes no messages" in shown.content


def test_the_page_sends_and_tells_the_ids(page: Client, api: Api, topic: str) -> None:
    form = {
        "topic": topic,
        "type": "normal",
        "body": "one\r\ntwo",
        "tags": "t",
        "keys": "a b",
        "properties": "colour=red\nsum=1=2",
        "count": "2",
    }
    answer = page.post(SEND, form)
    assert answer.status_code == 302
    shown = html(page, answer.headers["Location"])
    messages = stored_in(api, topic, 2)
    assert all(each["msg_id"] in shown for each in messages)
    assert messages[0]["body"]["text"] == "one\ntwo"
    assert messages[0]["keys"] == ["a", "b"]
    assert messages[0]["properties"]["sum"] == "1=2"


def test_a_stored_message_is_sent_again(
    page: Client, api: Api, traffic: Traffic, topic: str
) -> None:
    original = Message(
        topic, b"\xff\x00", tags="t", keys=("k",), properties={"a": "line\nline", "b": "c"}
    )
    [sent] = store(traffic, original)
    shown = html(page, f"{SEND}?again={sent.offset_msg_id}")
    assert base64.b64encode(b"\xff\x00").decode() in shown
    assert "line\\nline" in shown
    form = {
        "topic": topic,
        "type": "normal",
        "body": base64.b64encode(b"\xff\x00").decode(),
        "body_encoding": "base64",
        "properties": json.dumps({"a": "line\nline", "b": "c"}),
    }
    assert page.post(SEND, form).status_code == 302
    both = stored_in(api, topic, 2)
    assert both[0]["body"] == both[1]["body"]
    assert both[0]["properties"]["a"] == "line\nline"
    assert both[0]["msg_id"] != both[1]["msg_id"]


def test_a_viewer_may_not_send(reader: User, topic: str) -> None:
    client = browser(reader)
    assert client.get(SEND).status_code == 403
    assert client.post(SEND, {"topic": topic, "body": "x", "type": "normal"}).status_code == 403
    assert Api(reader)("post", "/messages", {"topic": topic, "body": "x"}).status_code == 403


@pytest.mark.parametrize("field", ["topic", "type", "body_encoding", "queue", "properties", "tags"])
def test_a_hostile_form_is_shown_and_never_run(page: Client, topic: str, field: str) -> None:
    form = {"topic": topic, "type": "normal", "body": "x" * 10, field: NASTY, "count": NASTY}
    answer = page.post(SEND, form)
    assert answer.status_code == 422
    assert not any(raw in answer.content for raw in RAW)
