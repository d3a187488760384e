"""The live topology, by API and page, on real clusters."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.areas.topology import asking, views
from console.gateway import TooSlow, gateway, inventory
from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import question
from tests.api.conftest import Api
from tests.api.outages import Own
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """New pages wait for the topology: a busy machine gives the same page."""
    monkeypatch.setattr(views, "FIRST_WAIT_S", None)
    monkeypatch.setattr(views, "RATES_WAIT_S", 60.0)


@pytest.fixture
def own(cluster: Cluster, staff: User, settings: Settings) -> Iterator[Own]:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    found = Own(cluster.namesrv_addr, cluster.broker_addr, cluster.kill_broker, staff)
    yield found
    found.traffic.close()


def nodes_of(body: Any) -> dict[str, Any]:
    return {node["key"]: node for node in body["nodes"]}


def edges_of(body: Any) -> dict[tuple[str, str], Any]:
    return {(edge["from_key"], edge["to_key"]): edge for edge in body["edges"]}


def check_shop(api: Api, traffic: Traffic) -> None:
    """A topic with a connected group, and a topic without."""
    topic, other, group = traffic.topic("orders"), traffic.topic("other"), traffic.group("billing")
    with traffic.consumer(group, topic):
        query = f"/topology?focus=group:{group}"

        def consumed() -> Any:
            traffic.send(topic, 1)  # a broker's rate is the growth between two of its samples
            body = api("get", query).json()
            edges = edges_of(body) if "edges" in body else {}
            edge = edges.get((f"topic:{topic}", f"group:{group}"))
            return edge is not None and edge["lag"] is not None and edge["rate"] and body

        body = poll(consumed)
        assert nodes_of(body)[f"group:{group}"]["clients"] == 1
        assert nodes_of(body)[f"group:{group}"]["state"] == "up"
        assert f"topic:{other}" not in nodes_of(body)
        whole: Any = poll(
            lambda: (
                (found := api.get("/topology"))
                and (nodes_of(found)[f"topic:{topic}"]["in_rate"] or 0) > 0
                and found
            )
        )
    edges = edges_of(whole)
    assert edges["broker:broker-a", f"topic:{topic}"]["rate"] > 0
    assert edges["broker:broker-a", f"topic:{other}"]["kind"] == "storage"
    (registration,) = [edge for edge in whole["edges"] if edge["kind"] == "registration"]
    assert registration["from_key"] == f"namesrv:{traffic.namesrv_addr}"
    assert (registration["to_key"], registration["down"]) == ("broker:broker-a", False)
    assert nodes_of(whole)["broker:broker-a"]["state"] == "up"
    assert whole["system_hidden"] > 0
    assert (whole["nodes_left_out"], whole["edges_left_out"]) == (0, 0)
    assert (whole["failures"], whole["complete"]) == ([], True)


def test_the_topology_of_a_cluster(api: Api, traffic: Traffic) -> None:
    check_shop(api, traffic)


def test_the_topology_from_requests_that_every_broker_answers(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Gantry's private request codes, as from a broker of Apache RocketMQ."""
    monkeypatch.setattr(inventory, "offered_codes", lambda _table: frozenset())
    check_shop(api, traffic)


def test_a_producer_group_has_edges_to_brokers(api: Api, traffic: Traffic) -> None:
    from core_broker.client import Producer
    from core_broker.message.model import Message

    topic, group = traffic.topic("made"), traffic.group("makers")

    async def start() -> Producer:
        producer = Producer(group, traffic.namesrv_addr)
        await producer.start()
        await producer.send(Message(topic, b"1"))
        return producer

    producer = traffic.run(start())
    try:
        ends = f"producer:{group}", "broker:broker-a"
        edge: Any = poll(lambda: edges_of(api.get("/topology")).get(ends))
        assert (edge["kind"], edge["clients"]) == ("connection", 1)
    finally:
        traffic.run(producer.stop())


def test_views_by_parameters(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic("seen"), traffic.group("seen")
    poll(lambda: f"topic:{topic}" in nodes_of(api.get("/topology")))
    assert f"group:{group}" in nodes_of(api.get(f"/topology?q={group}"))
    assert nodes_of(api.get("/topology?q=nothing-has-this-name")) == {}
    traffic.topic("more")
    stacked: Any = poll(
        lambda: (one := nodes_of(api.get("/topology?collapse=topic")).get("topic:*")) and one
    )
    assert stacked["count"] >= 2
    assert "topic:TBW102" in nodes_of(api.get("/topology?system=true"))
    assert len(api.get("/topology?limit=2")["nodes"]) == 2
    assert api.get("/topology?focus=topic:none", 404)["detail"]


@pytest.mark.parametrize(
    "query",
    [
        *("focus=topic", "focus=x:y", f"focus=topic:{'x' * 400}", f"q={'x' * 513}"),
        *("steps=0", "steps=9", "steps=%00", "limit=0", "limit=99999", "limit=-1"),
        *("collapse=nothing", "system=perhaps", "retry=2", "unknown=1", "steps=1&steps=2"),
    ],
)
def test_hostile_parameters_are_refused_by_the_api_and_ignored_by_the_page(
    api: Api, page: Client, query: str
) -> None:
    assert api("get", f"/topology?{query}").status_code == 400
    assert page.get(f"{HOME}/topology/?{query}").status_code == 200


def test_the_page_has_the_same_objects_in_drawing_and_table(page: Client, traffic: Traffic) -> None:
    topic, group = traffic.topic("<b>drawn"[3:]), traffic.group("drawn")
    poll(lambda: topic in page.get(f"{HOME}/topology/").content.decode())
    text = page.get(f"{HOME}/topology/").content.decode()
    drawn = set(re.findall(r'data-node="([^"]+)"', text))
    assert drawn == set(re.findall(r'<tr data-key="([^"]+)"', text))
    assert {f"topic:{topic}", f"group:{group}", "broker:broker-a"} <= drawn
    text = page.get(f"{HOME}/topology/?table=connections&ordering=-rate").content.decode()
    edges = set(re.findall(r'data-edge="([^"]+)"', text))
    assert edges == set(re.findall(r'<tr data-key="([^"]+)"', text))
    assert f"broker:broker-a → topic:{topic}" in edges
    assert f"?focus=topic:{topic}" in page.get(f"{HOME}/topics/{topic}/").content.decode()
    assert f"?focus=group:{group}" in page.get(f"{HOME}/groups/{group}/").content.decode()


def test_the_page_keeps_filter_and_focus_in_its_links(page: Client, traffic: Traffic) -> None:
    topic = traffic.topic("kept")
    poll(lambda: topic in page.get(f"{HOME}/topology/").content.decode())
    query = f"focus=topic:{topic}&steps=2&system=1&q=kept"
    text = page.get(f"{HOME}/topology/?{query}").content.decode()
    assert f'name="focus" value="topic:{topic}"' in text
    assert 'name="system" value="1"' in text
    assert "within 1 step" in text
    part = page.get(f"{HOME}/topology/?{query}", headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    missing = page.get(f"{HOME}/topology/?focus=topic:%3Cb%3E").content.decode()
    assert "no object “topic:&lt;b&gt;”" in missing


def test_a_new_page_is_there_before_the_brokers_answer(
    page: Client, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "FIRST_WAIT_S", 0.0)
    topic = traffic.topic("late")
    gateway.close()  # no cached topology
    text = page.get(f"{HOME}/topology/?q={topic}").content.decode()
    assert 'hx-trigger="load, every 5s"' in text
    assert "data-node=" not in text
    assert f"?q={topic}&amp;wait=1" in text, "the link of browsers without scripts"
    drawn = f'data-node="topic:{topic}"'
    url = f"{HOME}/topology/?q={topic}"
    poll(lambda: drawn in page.get(f"{url}&wait=1").content.decode())
    gateway.close()
    assert drawn in page.get(url, headers={"HX-Request": "true"}).content.decode()


def test_slow_consume_rates_leave_the_topology_without_rates(
    api: Api, page: Client, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    @question(fresh_for_ms=0)
    async def slow_rates(session: Any, pairs: Any) -> Any:
        raise TooSlow("no answer in time")

    monkeypatch.setattr(inventory, "offered_codes", lambda _table: frozenset())
    monkeypatch.setattr(asking, "consume_rates", slow_rates)
    topic, group = traffic.topic("slow"), traffic.group("slow")
    ends = f"topic:{topic}", f"group:{group}"
    with traffic.consumer(group, topic):
        query = f"/topology?focus=group:{group}"
        edge: Any = poll(
            lambda: (
                (answer := api("get", query)).status_code == 200
                and edges_of(answer.json()).get(ends)
            )
        )
        assert edge["rate"] is None
        drawn = page.get(f"{HOME}{query.replace('?', '/?')}").content.decode()
    assert f'data-edge="{ends[0]} → {ends[1]}"' in drawn
    assert "line-unknown" in drawn


def test_consume_rates_of_gantry_brokers_take_no_request_per_edge(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    @question(fresh_for_ms=0)
    async def rates(session: Any, pairs: Any) -> Any:
        asked.append(pairs)
        return Partial({})

    monkeypatch.setattr(asking, "consume_rates", rates)
    topic, group = traffic.topic("rated"), traffic.group("rated")
    traffic.send(topic, 1)
    traffic.commit(group, topic, 0, 0)
    ends = f"topic:{topic}", f"group:{group}"

    def measured() -> Any:
        body = api("get", f"/topology?focus=group:{group}").json()
        edge = edges_of(body).get(ends) if "edges" in body else None
        return edge is not None and edge["lag"] == 1 and body

    body = poll(measured)
    assert edges_of(body)[ends]["rate"] == 0.0
    asked.clear()
    assert edges_of(api.get(f"/topology?focus=group:{group}"))[ends]["rate"] == 0.0
    assert asked == []


def test_a_dead_broker_is_down_with_the_last_known_objects(own: Own) -> None:
    poll(lambda: f"topic:{own.topic}" in nodes_of(own.api.get("/topology")))
    own.kill_and_notice()
    body = poll(
        lambda: (
            (found := own.api.get("/topology"))
            and nodes_of(found)["broker:broker-a"]["state"] == "down"
            and found
        )
    )
    topic = nodes_of(body)[f"topic:{own.topic}"]
    assert (topic["stale"], topic["in_rate"]) == (True, None)
    edge = edges_of(body)["broker:broker-a", f"topic:{own.topic}"]
    assert (edge["down"], edge["stale"], edge["rate"]) == (True, True, None)
    # One failure per reason: a question at the moment of the kill has a reason of its own.
    assert {failure["broker"] for failure in body["failures"]} == {"broker-a"}
    text = own.text("topology/")
    assert "alert-danger" in text
    assert "state-down" in text
    assert "stale" in text


def test_a_cluster_that_never_answered_shows_its_broker_and_unknown_topics(own: Own) -> None:
    assert own.get("brokers/").status_code == 200
    own.kill_broker()
    gateway.close()  # a new process of the console: no last answers
    body = poll(
        lambda: (
            (answer := own.api("get", "/topology")).status_code == 200
            and not (found := answer.json())["complete"]
            and found
        )
    )
    assert nodes_of(body)["broker:broker-a"]["state"] == "down"
    assert not [key for key in nodes_of(body) if key.startswith(("topic:", "group:"))]
    assert "topics and groups are unknown" in own.text("topology/")
