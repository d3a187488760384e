"""Topics through the REST API, against a real cluster."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.api.conftest import API, Api
from tests.api.traffic import Traffic, poll


def line(api: Api, topic: str) -> dict[str, Any]:
    """The list entry of the topic; new topics appear with a delay."""
    return poll(lambda: [one for one in listed(api, topic) if one["name"] == unquote(topic)])[0]


def listed(api: Api, words: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(f"/topics?q={words}")["items"]
    return items


def test_a_topic_of_the_list_has_its_numbers(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("listed", read_queue_nums=3, write_queue_nums=2, perm=6)
    traffic.send(topic, 5)
    found = poll(lambda: (one := line(api, topic))["numbers"]["stored"] == 5 and one)
    assert (found["read_queues"], found["write_queues"], found["perm"]) == (3, 2, 6)
    assert (found["type"], found["brokers"]) == ("unspecified", ["broker-a"])
    assert found["numbers"]["total"] == 5
    assert found["numbers"]["last_write_ms"] > 1_700_000_000_000


def test_a_topic_without_messages_knows_no_last_one(api: Api, traffic: Traffic) -> None:
    numbers = line(api, traffic.topic("empty"))["numbers"]
    assert numbers == {
        "stored": 0,
        "total": 0,
        "last_write_ms": None,
        "in_rate": 0.0,
        "out_rate": 0.0,
        "groups": [],
        "worst_lag": None,
        "worst_group": None,
    }


def test_lists_are_ordered_filtered_and_cut(api: Api, traffic: Traffic) -> None:
    names = sorted(traffic.topic("page") for _ in range(3))
    poll(lambda: len(listed(api, "page-")) == 3)
    first = api.get("/topics?q=page-&limit=2&ordering=-name")
    assert [one["name"] for one in first["items"]] == names[::-1][:2]
    assert first["total"] == 3
    rest = api.get(f"/topics?q=page-&limit=2&ordering=-name&cursor={first['next_cursor']}")
    assert [one["name"] for one in rest["items"]] == names[:1]
    assert rest["next_cursor"] is None
    kinds = {one["type"] for one in api.get("/topics?type=system&limit=500")["items"]}
    assert kinds == {"system"}


@pytest.mark.parametrize(
    "query",
    ["ordering=size", "limit=0", "limit=x", "cursor=%00", "cursor=AAAA", "type=nothing"],
)
def test_a_query_that_makes_no_sense_is_told(api: Api, query: str) -> None:
    answer = api.get(f"/topics?{query}", 400)
    assert answer["type"] == "urn:gantry:problem:invalid"
    assert list(answer["errors"]) == [query.partition("=")[0]]


def test_a_topic_is_created_changed_and_deleted(api: Api, traffic: Traffic) -> None:
    name = f"{traffic.topic('made')}-new"
    answer = api("post", "/topics", {"name": name, "write_queues": 3, "perm": 2})
    assert answer.status_code == 201, answer.content
    assert answer.headers["Location"] == f"{API}/topics/{name}"
    assert answer.json()["outcomes"][0]["error"] is None

    found = api("get", f"/topics/{name}")
    etag = found.headers["ETag"]
    config = found.json()["configs"][0]
    assert (config["write_queues"], config["read_queues"], config["perm"]) == (3, 8, 2)
    assert len(found.json()["queues"]) == 8

    answer = api("patch", f"/topics/{name}", {"perm": 6}, **{"If-Match": etag})
    assert answer.status_code == 200, answer.content
    changed = api("get", f"/topics/{name}")
    assert changed.json()["perm"] == 6
    assert changed.json()["configs"][0]["write_queues"] == 3, "what was not named stays"
    assert changed.headers["ETag"] != etag

    stale = api("delete", f"/topics/{name}", **{"If-Match": etag})
    assert stale.status_code == 412
    assert api("delete", f"/topics/{name}").status_code == 200
    assert api.get(f"/topics/{name}", 404)["type"] == "urn:gantry:problem:not-found"
    assert api("delete", f"/topics/{name}").status_code == 404


def test_a_name_that_is_taken_is_a_conflict(api: Api, traffic: Traffic) -> None:
    answer = api("post", "/topics", {"name": traffic.topic()})
    assert answer.status_code == 409
    assert "broker-a" in answer.json()["detail"]


def test_a_topic_of_the_system_stays(api: Api) -> None:
    answer = api("delete", "/topics/TBW102")
    assert answer.status_code == 409
    assert api("get", "/topics/TBW102").status_code == 200


def test_the_impact_of_a_deletion_is_told_before(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic("doomed"), traffic.group("doomed")
    traffic.send(topic, 4)
    with traffic.consumer(group, topic):

        def impact() -> bool:
            found = api.get(f"/topics/{topic}/impact")
            stored = (found["numbers"] or {}).get("stored")
            return (stored, found["queues"], found["online_groups"]) == (4, 2, {group: 1})

        assert poll(impact)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": "é"}, "name"),
        ({"name": "x" * 128}, "name"),
        ({"name": ["x"]}, "name"),
        ({"name": "x", "perm": 8}, "perm"),
        ({"name": "x", "perm": "all"}, "perm"),
        ({"name": "x", "write_queues": 0}, "write_queues"),
        ({"name": "x", "write_queues": 10**30}, "write_queues"),
        ({"name": "x", "read_queues": -1}, "read_queues"),
        ({"name": "x", "order": "perhaps"}, "order"),
        ({"name": "x", "brokers": "broker-a"}, "brokers"),
        ({"name": "x", "brokers": [{"a": 1}]}, "brokers"),
        ({"name": "x", "writeQueues": 4}, "writeQueues"),
        ([], ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_a_body_that_cannot_be_right_creates_nothing(api: Api, body: Any, field: str) -> None:
    answer = api.client.post(f"{API}/topics", json.dumps(body), content_type="application/json")
    assert answer.status_code == 400, answer.content
    problem = answer.json()
    assert problem["status"] == 400
    if field:
        assert field in problem["errors"]


def test_a_body_beyond_the_limit_is_refused(api: Api) -> None:
    raw = b'{"name": "' + b"x" * (5 * 1024 * 1024) + b'"}'
    answer = api.client.post(f"{API}/topics", raw, content_type="application/json")
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[" * 10_000, b'{"name": "x"'])
def test_bytes_that_are_no_json_are_refused(api: Api, raw: bytes) -> None:
    answer = api.client.post(f"{API}/topics", raw, content_type="application/json")
    assert answer.status_code == 400, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_another_kind_of_body_is_refused(api: Api) -> None:
    assert api.client.post(f"{API}/topics", {"name": "x"}).status_code == 415


def test_a_broker_that_does_not_exist_is_named(api: Api) -> None:
    answer = api("post", "/topics", {"name": "x", "brokers": ["broker-z"]})
    assert answer.status_code == 404
    assert "broker-z" in answer.json()["detail"]
    assert "broker-a" in answer.json()["hint"]


@pytest.mark.parametrize("body", [{}, {"brokers": ["broker-a"]}])
def test_a_change_of_nothing_is_told(api: Api, traffic: Traffic, body: dict[str, Any]) -> None:
    assert api("patch", f"/topics/{traffic.topic()}", body).status_code == 400


HOSTILE_NAMES = [
    *("%00", "a%00b", "%0d%0aX-Injected:1", "..", "%2e%2e%2fetc", "'%20OR%201=1--"),
    *("<script>", "%F0%9F%90%88", "x" * 3_000, "%25RETRY%25nobody", "%E4%B8%AD", "a b", "%ff"),
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("method", ["get", "delete"])
def test_hostile_names_are_not_found(api: Api, name: str, method: str) -> None:
    answer = getattr(api.client, method)(f"{API}/topics/{name}")
    assert answer.status_code in {400, 404}, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "X-Injected" not in answer.headers


def test_a_retry_topic_is_found_under_its_escaped_name(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("%RETRY%escaped")
    line(api, topic.replace("%", "%25"))
    assert api.get(f"/topics/{topic.replace('%', '%25')}")["type"] == "retry"
