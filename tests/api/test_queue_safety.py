"""Queue numbers that hide messages from consumers: refused, previewed, confirmed, marked."""

from typing import Any

import pytest
from django.test import Client

from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll

HOME = "/clusters/local"
CONFIRM = "confirm_unread_queues=true"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    """A topic with four queues of two messages each, none of them consumed by its group."""
    name = traffic.topic("numbered", write_queue_nums=4, read_queue_nums=4)
    traffic.send(name, 8)
    group = traffic.group("slow")
    for queue_id in range(4):
        traffic.commit(group, name, queue_id, 1 if queue_id == 3 else 0)
    return name


def stored(api: Api, topic: str) -> dict[int, int]:
    return {one["queue_id"]: one["stored"] for one in api.get(f"/topics/{topic}")["queues"]}


def numbers(api: Api, topic: str) -> tuple[int, int]:
    (config,) = api.get(f"/topics/{topic}")["configs"]
    return config["write_queues"], config["read_queues"]


def test_fewer_read_queues_than_queues_with_messages_need_a_confirmation(
    api: Api, topic: str
) -> None:
    assert poll(lambda: sum(stored(api, topic).values()) == 8)
    path, body = f"/topics/{topic}", {"write_queues": 2, "read_queues": 2}
    hidden = sum(count for queue, count in stored(api, topic).items() if queue >= 2)
    risk = {
        "broker": "broker-a",
        "first": 2,
        "last": 3,
        "stored": hidden,
        "unconsumed": hidden - 1,
        "written": False,
    }
    dry = api("patch", f"{path}?dry_run=true", body).json()
    assert (dry["risks"], dry["confirm"]) == ([risk], "confirm_unread_queues")
    refused = api("patch", path, body)
    assert refused.status_code == 409
    problem = refused.json()
    assert problem["type"] == "urn:gantry:problem:unread-queues"
    assert problem["unread_queues"] == [risk]
    assert "confirm_unread_queues" in problem["hint"]
    assert numbers(api, topic) == (4, 4)
    assert api("patch", f"{path}?{CONFIRM}", body).status_code == 200
    assert numbers(api, topic) == (2, 2)


def test_more_write_queues_than_read_queues_need_a_confirmation_and_are_marked(
    api: Api, page: Client, topic: str
) -> None:
    path, body = f"/topics/{topic}", {"write_queues": 6}
    assert api("patch", path, body).status_code == 409
    assert api.get(path)["unread_queues"] == 0
    assert api("patch", f"{path}?{CONFIRM}", body).status_code == 200
    found = api.get(path)
    assert found["unread_queues"] == 2
    assert [one["queue_id"] for one in found["queues"] if one["unread"]] == [4, 5]
    text = page.get(f"{HOME}/topics/{topic}/").content.decode()
    assert "No consumer reads 2 of the write queues." in text
    assert poll(lambda: "2 unread" in page.get(f"{HOME}/topics/?q={topic}").content.decode())
    assert poll(lambda: topic in api.get("")["unread_topics"])
    overview = page.get(f"{HOME}/").content.decode()
    assert f'href="{HOME}/topics/{topic}/"' in overview
    assert api("patch", path, {"perm": 4}).status_code == 200, "other settings need no confirmation"
    assert api("patch", path, {"write_queues": 5}).status_code == 200, "nor does a step back"


def test_queues_without_messages_may_go(api: Api, traffic: Traffic) -> None:
    name = traffic.topic("empty", write_queue_nums=4, read_queue_nums=4)
    body = {"write_queues": 2, "read_queues": 2}
    assert "risks" not in api("patch", f"/topics/{name}?dry_run=true", body).json()
    assert api("patch", f"/topics/{name}", body).status_code == 200


def test_a_new_topic_with_more_write_queues_than_read_queues(api: Api, traffic: Traffic) -> None:
    name = f"{traffic.topic('new')}-wide"
    body = {"name": name, "write_queues": 8, "read_queues": 4}
    (risk,) = api("post", "/topics?dry_run=true", body).json()["risks"]
    assert (risk["first"], risk["last"], risk["stored"], risk["written"]) == (4, 7, 0, True)
    assert api("post", "/topics", body).status_code == 409
    assert api("post", f"/topics?{CONFIRM}", body).status_code == 201


def test_changes_of_several_topics_are_guarded_as_well(api: Api, topic: str) -> None:
    body: dict[str, Any] = {"names": [topic], "write_queues": 5}
    for query in ("?dry_run=true", ""):
        (item,) = api("post", f"/topics:update{query}", body).json()["results"]
        assert item["result"] == "failed", query
        assert item["error"], query
    (item,) = api("post", f"/topics:update?{CONFIRM}", body).json()["results"]
    assert item["result"] == "done"


def test_the_form_previews_the_queues_and_asks(api: Api, page: Client, topic: str) -> None:
    url = f"{HOME}/topics/{topic}/edit/"
    form = {"write_queues": "2", "read_queues": "2", "perm": "6", "brokers": ["broker-a"]}
    assert poll(lambda: sum(stored(api, topic).values()) == 8)
    preview = page.post(url, {**form, "preview": ""}).content.decode()
    assert "queues 2 to 3" in preview
    assert 'name="confirm_unread_queues"' in preview
    unconfirmed = page.post(url, {**form, "save": ""})
    assert unconfirmed.status_code == 409
    assert 'name="confirm_unread_queues"' in unconfirmed.content.decode()
    assert numbers(api, topic) == (4, 4)
    confirmed = page.post(url, {**form, "save": "", "confirm_unread_queues": "true"})
    assert confirmed.status_code == 302
    assert numbers(api, topic) == (2, 2)


def test_the_form_of_a_new_topic_asks_as_well(page: Client, traffic: Traffic) -> None:
    name = f"{traffic.topic('form')}-wide"
    form = {
        "name": name,
        "write_queues": "8",
        "read_queues": "4",
        "perm": "6",
        "brokers": "broker-a",
    }
    url = f"{HOME}/create-topic/"
    asked = page.post(url, form)
    assert asked.status_code == 409
    assert "queues 4 to 7" in asked.content.decode()
    assert page.post(url, {**form, "confirm_unread_queues": "true"}).status_code == 302


def test_an_undo_does_not_hide_messages(api: Api, page: Client, traffic: Traffic) -> None:
    name = traffic.topic("undone", write_queue_nums=1, read_queue_nums=1)
    form = {"write_queues": "2", "read_queues": "2", "perm": "6", "brokers": ["broker-a"]}
    assert page.post(f"{HOME}/topics/{name}/edit/", {**form, "save": ""}).status_code == 302
    traffic.send(name, 4)
    assert poll(lambda: stored(api, name).get(1))
    text = page.get(f"{HOME}/topics/{name}/edit/").content.decode()
    undo = text.partition(f'action="{HOME}/topics/{name}/undo/')[2].partition('"')[0]
    answer = page.post(f"{HOME}/topics/{name}/undo/{undo}")
    assert answer.status_code == 409
    assert "Consumers would not read" in answer.content.decode()
    assert numbers(api, name) == (2, 2)
