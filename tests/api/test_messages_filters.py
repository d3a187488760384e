"""Filtered searches in a topic: scan budget, continuation by cursor, filter tests."""

import json

import pytest
from django.test import Client

from console.gateway.messages import browse as questions
from core_broker.message.model import Message
from tests.api.conftest import Api
from tests.api.stored import NASTY, RAW, ids, routed_topic, store
from tests.api.test_pages import html
from tests.api.traffic import Traffic

TEST = "/messages:test-filter"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    """60 messages in two queues, every third message red."""
    topic = routed_topic(traffic, "sifted")
    for queue_id in (0, 1):
        store(
            traffic,
            *(
                Message(
                    topic,
                    json.dumps({"n": number, "who": f"user-{number}"}).encode(),
                    tags="red" if number % 3 == 0 else "blue",
                    properties={"n": str(number)},
                )
                for number in range(30)
            ),
            queue_id=queue_id,
        )
    return topic


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("tags=red", 20),
        ("tags=red||blue", 60),
        ("sql=n BETWEEN 3 AND 5", 6),
        ("body=USER-29", 2),
        ("body=user-1[0-4]&body_test=regex", 10),
        ("body=$.n >= 20&body_test=json", 20),
        ("tags=red&sql=n > 10&body=$.n < 20&body_test=json", 6),
        ("queue=broker-a:1&tags=red", 10),
    ],
)
def test_a_filter_finds_what_it_says(api: Api, topic: str, query: str, count: int) -> None:
    broker = api.get(f"/messages?topic={topic}")["items"][0]["broker"]
    answer = api.get(f"/messages?topic={topic}&limit=200&{query.replace('broker-a', broker)}")
    assert len(answer["items"]) == count
    assert answer["next_cursor"] is None
    assert answer["left"] == 0


@pytest.mark.must_beat(9)
def test_a_spent_budget_goes_on_to_the_same_final_set(
    api: Api, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ids(api.get(f"/messages?topic={topic}&tags=red"))
    monkeypatch.setattr(questions, "SCAN_MESSAGES_MAX", 7)
    found: list[str] = []
    cursor, scanned, pages = "", 0, 0
    while True:
        answer = api.get(f"/messages?topic={topic}&tags=red&limit=200{cursor}")
        found += ids(answer)
        scanned += answer["scanned"]
        pages += 1
        assert answer["scanned"] <= 7
        assert answer["left"] == 60 - scanned
        if answer["next_cursor"] is None:
            break
        cursor = f"&cursor={answer['next_cursor']}"
    assert (found, scanned, pages) == (whole, 60, 9)


@pytest.mark.must_beat(9)
def test_a_filter_is_tried_out_without_consuming(api: Api, topic: str) -> None:
    answer = api("post", TEST, {"topic": topic, "tags": "red", "sample": 30})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["valid"], told["tested"], told["matched"]) == (True, 30, 10)
    assert sum(each["matches"] for each in told["items"]) == 10


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ({"sql": "a ="}, "sql"),
        ({"tags": "||"}, "tags"),
        ({"body": "(", "body_test": "regex"}, "body"),
        ({"body": NASTY, "body_test": "json"}, "body"),
    ],
)
def test_a_filter_that_cannot_be_used_says_why(
    api: Api, page: Client, topic: str, wrong: dict[str, str], part: str
) -> None:
    told = api("post", TEST, {"topic": topic, **wrong}).json()
    assert (told["valid"], told["tested"], list(told["problems"])) == (False, 0, [part])
    refused = api("get", "/messages?" + "&".join(f"{k}={v}" for k, v in wrong.items()) + "&topic=T")
    assert refused.status_code == 400
    shown = page.get("/clusters/local/messages/", {"topic": topic, **wrong})
    assert shown.status_code == 400
    assert b"field-error" in shown.content
    assert not any(raw in shown.content for raw in RAW)


@pytest.mark.parametrize(
    "body",
    [{}, {"topic": ""}, {"topic": "T", "sample": 0}, {"topic": "T", "sample": 10**6}, {"x": 1}, []],
)
def test_a_trial_that_makes_no_sense_is_refused(api: Api, body: object) -> None:
    assert api("post", TEST, body).status_code == 400


@pytest.mark.parametrize(
    "query", ["queue=nosuch", f"queue={'q' * 400}", "body=x&body_test=nosuch", "sql=" + "x" * 3000]
)
def test_a_search_that_makes_no_sense_is_refused(api: Api, topic: str, query: str) -> None:
    assert api("get", f"/messages?topic={topic}&{query}").status_code in {400, 404}


def test_a_topic_nobody_may_read_is_filtered_too(api: Api, traffic: Traffic) -> None:
    topic = routed_topic(traffic, "unreadable", perm=2)
    store(traffic, Message(topic, b"one", tags="red"), Message(topic, b"two", tags="blue"))
    answer = api.get(f"/messages?topic={topic}&tags=red&sql=TAGS IS NOT NULL")
    assert [each["tags"] for each in answer["items"]] == ["red"]


def test_the_page_shows_how_far_a_search_is_and_leads_on(
    page: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "SCAN_MESSAGES_MAX", 45)
    shown = html(page, f"/clusters/local/messages/?topic={topic}&tags=red&queue=")
    assert "45 scanned, 15 matched, 15 remaining" in shown
    assert "Continue search" in shown
    done = html(page, f"/clusters/local/messages/?topic={topic}&tags=nosuch&last=5m")
    assert "45 scanned" in done
    monkeypatch.setattr(questions, "SCAN_MESSAGES_MAX", 100)
    nothing = html(page, f"/clusters/local/messages/?topic={topic}&tags=nosuch")
    assert "No message matches the filter" in nothing
    assert "Search complete." in nothing
