"""Connected clients and producer groups, by API and page."""

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

from console.areas.clients.kicks import kicked
from console.audit.models import AuditRow
from console.gateway import NotAllowedNow, gateway
from console.gateway.clients import ConnectedClient, merge_clients
from console.gateway.kicks import KickPlan
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


@pytest.mark.must_beat(32)
def test_a_stuck_client_is_kicked_with_a_reason(
    api: Api, page: Client, traffic: Traffic, reader: User
) -> None:
    topic, group = traffic.topic("stuck"), traffic.group("workers")
    with traffic.consumer(group, topic):
        (member,) = poll(lambda: api.get(f"/groups/{group}/clients")["clients"])
        client = member["client_id"]
        kick = f"/clients/{quote(client, safe='')}/kick"
        here = reverse("clients:kick", args=["local", client])
        assert here in page.get(reverse("clients:detail", args=["local", client])).content.decode()
        plan = poll(lambda: moved(api, kick))
        assert {(each["topic"], each["heir"]) for each in plan if each["topic"] == topic} == {
            (topic, None)
        }
        for reason in ("", "two\nlines", "\x1b[31m", "x" * 201):
            assert api("post", kick, {"reason": reason}).status_code == 400
            assert page.post(here, {"reason": reason}).status_code == 422
        assert api("post", kick, {"reason": "x", "group": "elsewhere"}).status_code == 404
        assert Api(reader)("post", kick, {"reason": "x"}).status_code == 403
        done = page.post(here, {"reason": "queue 1 is stuck", "group": group})
        assert done.status_code == 302

        def outcome() -> str:
            text: str = page.get(done["location"]).content.decode()
            return text

        assert "queue 1 is stuck" in outcome()
        assert poll(lambda: "reconnected after" in outcome())
        answer = api("post", kick, {"reason": "again"}).json()
        assert [each["error"] for each in answer["brokers"]] == [None]
        assert answer["brokers"][0]["closed"]
    rows = AuditRow.objects.filter(action="client.kick", target=client).order_by("pk")
    assert [row.result for row in rows] == ["denied", "done", "done"]
    assert (rows[1].before or {})["reason"] == "queue 1 is stuck"
    assert page.get(f"{here}?kicked=forged").status_code == 302
    assert api("post", "/clients/nobody/kick", {"reason": "x"}).status_code == 404


def moved(api: Api, kick: str) -> list[dict[str, Any]]:
    body = api("post", f"{kick}?dry_run=true", {"reason": "x"}).json()
    moves: list[dict[str, Any]] = body.get("moves", [])
    return moves


def test_brokers_of_apache_kick_nobody() -> None:
    parts = ("c@1", "10.0.0.1:5", "remoting", "JAVA", "4.9.8", {"g": ("t",)}, (), ("a",), None)
    plan = KickPlan((ConnectedClient(*parts),), "", ("g",), (), ("g",), 0, (), ("a",))
    with pytest.raises(NotAllowedNow):
        kicked(RequestFactory().post("/"), gateway.cluster("local"), "c@1", "x", plan)
