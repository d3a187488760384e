"""Connected clients and producer groups, by API and page."""

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from console.gateway.clients import ConnectedClient, merge_clients
from core_broker.client import Producer
from core_broker.message.model import Message
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll

HOME = "/clusters/local"
#: The reason of an unknown account.
NO_ACCOUNT = "No broker reports an account"


@pytest.fixture
def producer(traffic: Traffic) -> Any:
    """A connected producer and the producer group."""
    group = traffic.group("makers")

    async def start() -> Producer:
        producer = Producer(group, traffic.namesrv_addr)
        await producer.start()
        await producer.send(Message(traffic_topic, b"1"))
        return producer

    traffic_topic = traffic.topic("made")
    made = traffic.run(start())
    yield group
    traffic.run(made.stop())


@pytest.mark.must_beat(1)
def test_one_client_of_each_kind(api: Api, traffic: Traffic, producer: str, page: Client) -> None:
    topic, group = traffic.topic("clients"), traffic.group("readers")
    with traffic.consumer(group, topic):
        (consumer,) = poll(lambda: listed(api, group))
        (maker,) = poll(lambda: listed(api, producer))
        assert (consumer["protocol"], consumer["language"]) == ("remoting", "PYTHON")
        assert consumer["version"] == "4.9.8"
        assert topic in consumer["groups"][group]
        assert consumer["heartbeat_ms"] > 0
        assert consumer["addr"].startswith("127.0.0.1:")
        assert maker["producer_groups"] == [producer]
        assert consumer["accounts"] == maker["accounts"] == []
        assert consumer["brokers"] == maker["brokers"] == ["broker-a"]
        assert "-1" not in {str(value) for one in (consumer, maker) for value in one.values()}

        def numbers() -> list[dict[str, Any]]:
            found = api.get(f"/groups?q={group}")["items"]
            return [one["numbers"] for one in found if one["numbers"]]

        (of_group,) = poll(numbers)
        assert -1 not in of_group.values()
        text = page.get(f"{HOME}/clients/?q={group}&columns=accounts").content.decode()
        assert consumer["client_id"] in text
        assert NO_ACCOUNT in text
        detail = reverse("clients:detail", args=["local", consumer["client_id"]])
        text = page.get(detail).content.decode()
        assert NO_ACCOUNT in text
        text = page.get(f"{HOME}/clients/?role=producer&q={producer}").content.decode()
        assert maker["client_id"] in text


def listed(api: Api, words: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(f"/clients?q={words}")["items"]
    return items


def test_producers_need_no_name(api: Api, page: Client, producer: str) -> None:
    (found,) = poll(lambda: [g for g in api.get("/producers")["items"] if g["name"] == producer])
    assert (found["clients"], found["languages"]) == (1, ["PYTHON"])
    assert found["heartbeat_ms"] > 0
    assert producer in page.get(f"{HOME}/producers/").content.decode()


def test_clients_are_filtered_by_role(api: Api, producer: str) -> None:
    poll(lambda: listed(api, producer))
    assert not api.get(f"/clients?role=consumer&q={producer}")["items"]
    assert api.get(f"/clients?role=producer&q={producer}")["total"] == 1
    assert api.get("/clients?role=nobody", 400)["errors"]["role"]


@pytest.mark.parametrize(
    "query", ["q=%00", "ordering=x", "page=-1", "role=%3Cscript%3E", "q=" + "a" * 999]
)
def test_hostile_queries(page: Client, query: str) -> None:
    for path in ("clients", "producers"):
        answer = page.get(f"{HOME}/{path}/?{query}")
        assert answer.status_code == 200
        assert "<script>" not in answer.content.decode().partition("<main")[2]


def test_a_client_of_several_brokers_is_listed_once() -> None:
    def part(
        broker: str, port: int, group: str, topic: str, beat: int | None, *accounts: str
    ) -> ConnectedClient:
        groups = {group: (topic,)}
        addr = f"10.0.0.1:{port}"
        about = ("c@1", addr, "remoting", "GO", "5.0.0", groups, ("p",), (broker,), beat)
        return ConnectedClient(*about, accounts)

    elsewhere = part("a", 5, "g", "t", None)
    other = ConnectedClient("c@1", "10.0.0.2:9", "remoting", "GO", "5.0.0", {}, ("q",), ("a",), 3)
    one, two = merge_clients(
        [part("a", 1, "g", "t", 5, "bob"), part("b", 2, "g", "u", 9, "al", "bob"), other, elsewhere]
    )
    assert one.groups == {"g": ("t", "u")}
    assert (one.accounts, two.accounts) == (("al", "bob"), ())
    assert (one.brokers, one.heartbeat_ms, one.roles) == (("a", "b"), 9, ("consumer", "producer"))
    assert (two.producer_groups, two.roles) == (("q",), ("producer",))


@pytest.mark.must_beat(32)
def test_a_member_of_a_group_shows_its_threads(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic(), traffic.group()
    with traffic.consumer(group, topic):
        members = poll(lambda: api.get(f"/groups/{group}/clients")["clients"])
        path = f"/groups/{group}/clients/{quote(members[0]['client_id'], safe='')}"
        assert f"pull {topic}@" in str(poll(lambda: api.get(f"{path}?stack=true")["stack"]))
        assert api.get(path)["stack"] is None
