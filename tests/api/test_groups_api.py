"""Consumer groups and their clients through the REST API, against a real cluster."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.api.conftest import API, Api
from tests.api.traffic import Traffic, poll


def line(api: Api, group: str) -> dict[str, Any]:
    """The list entry of the group; new groups appear with a delay."""
    return poll(lambda: [one for one in listed(api, group) if one["name"] == group])[0]


def listed(api: Api, words: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(f"/groups?q={words}")["items"]
    return items


def test_lag_is_what_is_stored_but_not_consumed(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic(write_queue_nums=1, read_queue_nums=1), traffic.group("behind")
    traffic.send(topic, 7)
    traffic.commit(group, topic, 0, 3)
    found = poll(lambda: (one := line(api, group)["numbers"])["lag"] == 4 and one)
    assert found["topics"] == [topic]
    assert (found["clients"], found["dead_letters"], found["broadcasting"]) == (0, 0, False)
    assert found["lag_seconds"] >= 0
    assert found["behind"] == (found["lag_seconds"] >= 6), "younger lag may be uncommitted only"
    behind = "/groups?show=behind&limit=500"
    assert poll(lambda: group in {one["name"] for one in api.get(behind)["items"]})
    assert line(api, group)["numbers"]["behind"]
    detail = api.get(f"/groups/{group}")
    assert [(one["topic"], one["queue_id"], one["lag"]) for one in detail["queues"]] == [
        (topic, 0, 4)
    ]
    assert detail["queues"][0]["client"] is None


def test_a_group_that_never_consumed_has_unknown_progress(api: Api, traffic: Traffic) -> None:
    group = traffic.group("idle")
    found = line(api, group)["numbers"]
    assert (found["lag"], found["lag_seconds"], found["clients"]) == (None, None, 0)
    assert group in {one["name"] for one in api.get("/groups?show=idle&limit=500")["items"]}
    assert api.get(f"/groups/{group}")["progress"] is None


def test_groups_are_ordered_by_lag_with_unknown_last(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic(write_queue_nums=1, read_queue_nums=1)
    traffic.send(topic, 5)
    names = [traffic.group("order") for _ in range(3)]
    for name, offset in zip(names, (4, 1), strict=False):
        traffic.commit(name, topic, 0, offset)
    poll(lambda: line(api, names[1])["numbers"]["lag"] == 4 and line(api, names[2]))
    found = [one["name"] for one in api.get("/groups?q=order-&ordering=-lag")["items"]]
    assert found == [names[1], names[0], names[2]]


def test_the_clients_of_a_group_and_what_they_hold(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic(), traffic.group("online")
    traffic.send(topic, 3)
    line(api, group)
    with traffic.consumer(group, topic, "A || B"):

        def subscribed() -> dict[str, Any]:
            found: dict[str, Any] = api.get(f"/groups/{group}/clients")
            expressions = {one["topic"]: one["expression"] for one in found["subscriptions"]}
            return found if expressions.get(topic) == "A || B" else {}

        found = poll(subscribed)
        (client,) = found["clients"]
        assert (client["language"], client["version"]) == ("PYTHON", "4.9.8")
        assert found["message_model"] == "CLUSTERING"
        path = f"/groups/{group}/clients/{quote(client['client_id'])}"

        def queue_ids() -> set[int]:
            return {one["queue_id"] for one in api.get(path)["queues"] if one["topic"] == topic}

        assert poll(lambda: queue_ids() == {0, 1})
        assert poll(lambda: line(api, group)["numbers"]["clients"] == 1)
    assert poll(lambda: line(api, group)["numbers"]["clients"] == 0)


def test_a_client_that_is_not_there(api: Api, traffic: Traffic) -> None:
    answer = api.get(f"/groups/{traffic.group()}/clients/nobody@1", 404)
    assert "nobody@1" in answer["detail"]


def test_a_group_is_created_changed_and_deleted(api: Api, traffic: Traffic) -> None:
    name = f"{traffic.group('made')}-new"
    answer = api("post", "/groups", {"name": name, "retry_max_times": 3})
    assert answer.status_code == 201, answer.content
    assert answer.headers["Location"] == f"{API}/groups/{name}"
    assert api("post", "/groups", {"name": name}).status_code == 409

    found = api("get", f"/groups/{name}")
    etag = found.headers["ETag"]
    assert found.json()["configs"][0]["retry_max_times"] == 3

    body = {"consume_enable": False}
    answer = api("patch", f"/groups/{name}", body, **{"If-Match": etag})
    assert answer.status_code == 200, answer.content
    config = api.get(f"/groups/{name}")["configs"][0]
    assert (config["consume_enable"], config["retry_max_times"]) == (False, 3)
    assert api("patch", f"/groups/{name}", body, **{"If-Match": etag}).status_code == 412

    assert api("delete", f"/groups/{name}").status_code == 200
    assert api.get(f"/groups/{name}", 404)["status"] == 404
    assert api("delete", f"/groups/{name}").status_code == 404


def test_deleting_a_group_keeps_its_dead_letters_unless_told(api: Api, traffic: Traffic) -> None:
    group = traffic.group("letters")
    suffix = group.removeprefix("letters-")
    letters = traffic.topic(f"%DLQ%{group}")
    # The helper appends a suffix; the group name must match the dead-letter topic.
    owner = letters.removeprefix("%DLQ%")
    assert api("post", "/groups", {"name": owner}).status_code == 201
    traffic.send(letters, 2)
    assert poll(lambda: api.get(f"/groups/{owner}/impact")["dead_letters"] == 2), suffix
    assert api("delete", f"/groups/{owner}").status_code == 200
    path = f"/topics/{letters.replace('%', '%25')}"
    assert api.get(path)["numbers"]["stored"] == 2

    assert api("post", "/groups", {"name": owner}).status_code == 201
    assert api("delete", f"/groups/{owner}?dead_letters=perhaps").status_code == 400
    assert api("delete", f"/groups/{owner}?dead_letters=true").status_code == 200
    assert api.get(path, 404)


def test_a_group_of_the_system_stays(api: Api) -> None:
    assert api("delete", "/groups/TOOLS_CONSUMER").status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "a b"},
        {"name": "g" * 256},
        {"name": "g", "retry_max_times": -1},
        {"name": "g", "retry_queue_nums": 0},
        {"name": "g", "consume_enable": "perhaps"},
        {"name": "g", "nothing": 1},
        [1],
    ],
)
def test_a_body_that_cannot_be_right_creates_nothing(api: Api, body: Any) -> None:
    answer = api.client.post(f"{API}/groups", json.dumps(body), content_type="application/json")
    assert answer.status_code == 400, answer.content


@pytest.mark.parametrize("name", ["%00", "..", "<script>", "x" * 3_000, "%E4%B8%AD", "%ff"])
@pytest.mark.parametrize("more", ["", "/impact", "/clients", "/clients/%00"])
def test_hostile_names_are_not_found(api: Api, name: str, more: str) -> None:
    answer = api.client.get(f"{API}/groups/{name}{more}")
    assert answer.status_code in {400, 404}, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
