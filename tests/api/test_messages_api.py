"""Stored messages through the REST API, against a real cluster."""

import base64
import json
import socket
import zlib
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from console.gateway import gateway
from core_broker.message.ids import offset_msg_id
from core_broker.message.model import Message
from core_broker.remoting.bodies import TopicConfig
from tests.api.conftest import API, Api
from tests.api.stored import cursor, ids, numbered, routed_topic, store
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

QUERY = "/messages?topic="


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "messages")


def test_a_topic_is_browsed_newest_first_and_each_message_comes_once(
    api: Api, traffic: Traffic, topic: str
) -> None:
    sent = [store(traffic, each, queue_id=n % 2)[0] for n, each in enumerate(numbered(topic, 11))]
    seen: list[str] = []
    following: str | None = ""
    while following is not None:
        page = api.get(f"{QUERY}{topic}&limit=4&cursor={following}")
        assert (page["total"], page["unreadable"], page["failures"]) == (11, 0, [])
        seen += ids(page)
        following = page["next_cursor"]
    assert sorted(seen) == sorted(each.offset_msg_id for each in sent)
    stamps = [api.get(f"/messages/{each}")["store_timestamp"] for each in seen]
    assert stamps == sorted(stamps, reverse=True)


def test_a_time_is_exact_also_for_messages_of_one_millisecond(
    api: Api, traffic: Traffic, topic: str
) -> None:
    store(traffic, *numbered(topic, 60))
    everything = api.get(f"{QUERY}{topic}&limit=200")["items"]
    stamps = sorted(each["store_timestamp"] for each in everything)
    assert len(set(stamps)) < len(stamps), "some share a millisecond"
    for begin, end in [(stamps[20], stamps[40]), (stamps[0] - 1, stamps[0]), (stamps[-1], 0)]:
        query = f"&begin_ms={begin}" + (f"&end_ms={end}" if end else "")
        page = api.get(f"{QUERY}{topic}&limit=200{query}")
        wanted = [each for each in stamps if begin <= each <= (end or each)]
        assert sorted(each["store_timestamp"] for each in page["items"]) == wanted
        assert page["total"] == len(wanted)
    assert api.get(f"{QUERY}{topic}&begin_ms={stamps[-1] + 1}")["total"] == 0
    assert api.get(f"{QUERY}{topic}&end_ms={stamps[0] - 1}")["items"] == []


def test_a_topic_nobody_may_read_is_read_and_stays_as_it_is(api: Api, traffic: Traffic) -> None:
    topic = routed_topic(traffic, "write-only", perm=2)
    store(traffic, *numbered(topic, 5))
    page = api.get(f"{QUERY}{topic}&limit=3")
    assert [each["queue_offset"] for each in page["items"]] == [4, 3, 2]
    rest = api.get(f"{QUERY}{topic}&limit=3&cursor={page['next_cursor']}")
    assert [each["queue_offset"] for each in rest["items"]] == [1, 0]
    configs = traffic.admin(lambda admin: admin.topic_configs(traffic.broker_addr))
    assert configs[topic].perm == 2


@pytest.mark.parametrize(
    "query",
    [
        "topic=",
        "begin_ms=0",
        "topic=T&begin_ms=yesterday",
        "topic=T&begin_ms=-1",
        "topic=T&end_ms=1e9",
        "topic=T&end_ms=9999999999999999",
        "topic=T&limit=0",
        "topic=T&limit=201",
        "topic=T&limit=99999999999999999999",
        "topic=T&cursor=x",
        f"topic=T&cursor={cursor('[]')}",
        f"topic=T&cursor={cursor(json.dumps({'a': 'b'}))}",
        f"topic=T&cursor={'A' * 70_000}",
        f"topic={'T' * 300}",
    ],
)
def test_a_question_that_makes_no_sense_is_refused(api: Api, query: str) -> None:
    answer = api("get", f"/messages?{query}")
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("text", ["{}", '{"broker-a:0": 99999999}', '{"broker-a:0": -5}'])
def test_a_made_up_cursor_shows_nothing_it_should_not(
    api: Api, traffic: Traffic, topic: str, text: str
) -> None:
    store(traffic, *numbered(topic, 2))
    page = api.get(f"{QUERY}{topic}&cursor={cursor(text)}")
    assert len(page["items"]) in {0, 2}


@pytest.mark.parametrize(
    "topic", ["nosuch", "%25DLQ%25nobody", "%3Cscript%3E", "a%20b", "订单", "."]
)
def test_a_topic_that_is_not_there(api: Api, topic: str) -> None:
    assert api.get(f"{QUERY}{topic}", status=404)["type"] == "urn:gantry:problem:not-found"
    assert api.get(f"/messages/find?q=x&topic={topic}", status=404)["status"] == 404


def test_one_message_is_found_by_whatever_is_known_of_it(
    api: Api, traffic: Traffic, topic: str
) -> None:
    other, sent = store(
        traffic,
        Message(topic, b"other", keys=("another",)),
        Message(topic, b"body", keys=(f"key-{topic}", "second")),
        queue_id=1,
    )
    known = [sent.msg_id, sent.offset_msg_id, sent.offset_msg_id.lower(), f"key-{topic}"]
    for text in known:
        for where in ("", f"&topic={topic}"):
            found = api.get(f"/messages/find?q={text}{where}")
            assert ids(found) == [sent.offset_msg_id], (text, where)
            assert found["is_cut"] is False
    for place in ("broker-a:1:1", "1:1"):
        assert ids(api.get(f"/messages/find?q={place}&topic={topic}")) == [sent.offset_msg_id]
    assert ids(api.get(f"/messages/find?q=1:0&topic={topic}")) == [other.offset_msg_id]
    for nothing in ("0:0", "9:0", "broker-b:1:1", "1:99", "nokey", "F" * 32):
        assert api.get(f"/messages/find?q={nothing}&topic={topic}")["items"] == []


def test_more_messages_than_a_broker_answers_with_are_told(
    api: Api, traffic: Traffic, topic: str
) -> None:
    store(traffic, *(Message(topic, b"body", keys=("crowd",)) for _ in range(66)))
    found = api.get(f"/messages/find?q=crowd&topic={topic}")
    assert len(found["items"]) == 64
    assert found["is_cut"] is True


@pytest.mark.parametrize("query", ["", "q=", "q=%20", f"q={'x' * 256}"])
def test_finding_needs_something_to_look_for(api: Api, query: str) -> None:
    assert api.get(f"/messages/find?{query}", status=400)["errors"]["q"]


def test_an_id_with_another_address_makes_no_connection(
    api: Api, traffic: Traffic, topic: str
) -> None:
    [sent] = store(traffic, *numbered(topic, 1))
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        port = elsewhere.getsockname()[1]
        for offset in (0, int(sent.offset_msg_id[16:], 16), 2**62):
            foreign = offset_msg_id("127.0.0.1", port, offset)
            api.get(f"/messages/{foreign}", status=404)
            api.get(f"/messages/{foreign}/body", status=404)
            assert api.get(f"/messages/find?q={foreign}")["items"] == []
            with pytest.raises(BlockingIOError):
                elsewhere.accept()


@pytest.mark.parametrize(
    "text",
    ["0" * 32, "F" * 32, "F" * 56, "0", "x" * 32, "%3Cb%3E", "7F000001", "a%2520b", "A" * 4000],
)
def test_an_id_that_names_nothing(api: Api, text: str) -> None:
    assert api.get(f"/messages/{text}", status=404)["title"] == "Not found"
    assert api("get", f"/messages/{text}/body").status_code == 404


def test_a_broker_that_does_not_answer_may_have_the_message(api: Api, traffic: Traffic) -> None:
    with traffic.dead_broker("127.0.0.1:1") as name:
        problem = poll(lambda: missing_from(api, name))
        assert problem["hint"] == "A failed broker may have the message."
        result = api("post", "/dlq/group/resend", {"ids": ["0" * 32]}).json()
        assert "127.0.0.1:1" in result["outcomes"][0]["reason"]


def missing_from(api: Api, broker: str) -> dict[str, Any]:
    """The problem body of an unknown id, once the broker is named."""
    problem: dict[str, Any] = api.get(f"/messages/{'0' * 32}", status=404)
    named = [each for each in problem.get("failures", ()) if each["broker"] == broker]
    return problem if named else {}


def test_a_message_of_a_broker_that_has_moved_is_still_found(
    tmp_path: Path, settings: Settings, api: Api
) -> None:
    with Cluster(tmp_path) as own:
        settings.CONSOLE_CLUSTERS = {"local": own.namesrv_addr}
        traffic = Traffic(own.namesrv_addr, own.broker_addr)
        config = TopicConfig(topic_name="moved", read_queue_nums=1, write_queue_nums=1)
        traffic.admin(lambda admin: admin.create_topic(own.broker_addr, config))
        [sent] = store(traffic, Message("moved", b"still here"))
        traffic.close()
        own.restart_broker(listen_port=0)
        assert own.broker.port("remoting") != int(own.broker_addr.rpartition(":")[2])
        poll(lambda: api("get", f"/messages/{sent.offset_msg_id}").status_code == 200)
        assert ids(api.get(f"{QUERY}moved")) == [sent.offset_msg_id]
        gateway.close()


def test_a_body_is_shown_in_every_form_it_has(api: Api, traffic: Traffic, topic: str) -> None:
    body = json.dumps({"b": [1, 2], "a": "é"}).encode()
    [sent] = store(
        traffic, Message(topic, body, tags="T", keys=("k1", "k2"), properties={"u": "v"})
    )
    address = f"/messages/{sent.offset_msg_id}"
    message = api.get(address)
    assert message["body"]["form"] == "json"
    assert json.loads(message["body"]["text"]) == json.loads(body)
    assert (message["tags"], message["keys"]) == ("T", ["k1", "k2"])
    assert message["properties"]["u"] == "v"
    assert api.get(f"{address}?form=text")["body"]["text"] == body.decode()
    assert base64.b64decode(api.get(f"{address}?form=base64")["body"]["text"]) == body
    assert api.get(f"{address}?form=hex")["body"]["text"].startswith("00000000  7b 22 62")
    assert api.get(f"{address}?form=nonsense")["body"]["form"] == "json"


def test_a_compressed_body_is_unpacked_for_people_and_files(
    api: Api, traffic: Traffic, topic: str
) -> None:
    body = b"again and again " * 1000
    [sent] = store(traffic, Message(topic, body))
    message = api.get(f"/messages/{sent.offset_msg_id}")
    assert message["store_size"] < len(body)
    assert message["body"]["size_bytes"] == len(body)
    assert message["body"]["compression"] == "zlib"
    answer = api.client.get(f"{API}/messages/{sent.offset_msg_id}/body")
    assert answer.content == body
    assert zlib.compress(body) != answer.content


def test_a_body_as_a_file_is_never_shown_by_a_browser(
    api: Api, traffic: Traffic, topic: str
) -> None:
    body = b"<html><script>alert(1)</script>\x00\xff"
    [sent] = store(traffic, Message(topic, body))
    answer = api.client.get(f"{API}/messages/{sent.offset_msg_id}/body")
    assert answer.content == body
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
