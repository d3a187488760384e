"""Lists of topics and groups: content, order, and number of requests."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from console.environment import ClusterMark
from console.gateway import gateway
from console.gateway.topics.permission import perm_words
from core_broker.client import AdminClient
from core_broker.client.admin.base import AdminBase
from core_broker.message.topics import dlq_topic
from core_broker.remoting.bodies import TopicConfig
from core_broker.remoting.codes import RequestCode
from tests.api.conftest import Api
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"
MANY = 60
#: Maximum database queries of a page: session, user, profile, further roles, read-only state,
#: credentials, protection, labels.
QUERIES_MAX = 8
#: Requests of a list to the cluster, independent of the number of rows.
LISTS = {
    f"{HOME}/topics/?ordering=-stored": {
        RequestCode.GET_BROKER_CLUSTER_INFO: 1,
        RequestCode.GET_ALL_TOPIC_CONFIG: 1,
        RequestCode.GET_BROKER_RUNTIME_INFO: 1,
        RequestCode.GET_TOPIC_INVENTORY: 1,
    },
    f"{HOME}/groups/?ordering=-lag": {
        RequestCode.GET_BROKER_CLUSTER_INFO: 1,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: 1,
        RequestCode.GET_BROKER_RUNTIME_INFO: 1,
        RequestCode.GET_GROUP_INVENTORY: 1,
    },
    f"{HOME}/clients/": {
        RequestCode.GET_BROKER_CLUSTER_INFO: 1,
        RequestCode.GET_BROKER_RUNTIME_INFO: 1,
        RequestCode.GET_ALL_CLIENTS: 1,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: 1,
    },
}


@pytest.fixture
def crowd(traffic: Traffic) -> str:
    """More topics and groups than one page, created in bulk; returns the name prefix."""

    async def make(admin: AdminClient) -> None:
        for number in range(MANY):
            name = f"crowd-{number:03d}"
            config = TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1, perm=6)
            await admin.create_topic(traffic.broker_addr, config)

    traffic.admin(make)
    for number in range(3):
        traffic.group(f"crowd-{number}")
    return "crowd-"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts requests to brokers and name servers, by request code."""
    counts: Counter[int] = Counter()
    ask_broker, ask_name_server = AdminBase._invoke, AdminBase._ask_name_server

    async def counted(self: Any, addr: str, code: int, *rest: Any, **more: Any) -> Any:
        counts[code] += 1
        return await ask_broker(self, addr, RequestCode(code), *rest, **more)

    async def counted_too(self: Any, code: int, *rest: Any) -> Any:
        counts[code] += 1
        return await ask_name_server(self, RequestCode(code), *rest)

    monkeypatch.setattr(AdminBase, "_invoke", counted)
    monkeypatch.setattr(AdminBase, "_ask_name_server", counted_too)
    return counts


@pytest.mark.must_beat(2)
@pytest.mark.parametrize("path", LISTS)
def test_a_list_costs_the_same_however_long_it_is(
    page: Client, crowd: str, asked: Counter[int], path: str
) -> None:
    poll(lambda: page.get(f"{HOME}/topics/crowd-059/").status_code == 200)
    gateway.close()
    asked.clear()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = page.get(path)
    assert answer.status_code == 200
    assert dict(asked) == LISTS[path]
    assert len(queries) <= QUERIES_MAX, [each["sql"] for each in queries]


@pytest.mark.must_beat(2)
def test_groups_come_with_lag_in_messages_and_seconds_in_a_stable_order(
    api: Api, traffic: Traffic
) -> None:
    topic = traffic.topic("lagging", write_queue_nums=1, read_queue_nums=1)
    traffic.send(topic, 6)
    lags = {traffic.group("stable"): offset for offset in (5, 2, 4, 2)}
    for group, offset in lags.items():
        traffic.commit(group, topic, 0, offset)
    dead = max(lags)

    async def bury(admin: AdminClient) -> None:
        config = TopicConfig(
            topic_name=dlq_topic(dead), read_queue_nums=1, write_queue_nums=1, perm=6
        )
        await admin.create_topic(traffic.broker_addr, config)

    traffic.admin(bury)
    traffic.send(dlq_topic(dead), 2)

    def listed() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = api.get("/groups?q=stable&ordering=-lag&limit=50")["items"]
        return items

    def settled() -> bool:
        found = {one["name"]: one["numbers"] for one in listed()}
        return (
            len(found) == len(lags)
            and all(found[name]["lag"] == 6 - offset for name, offset in lags.items())
            and found[dead]["dead_letters"] == 2
        )

    poll(settled)
    rows = listed()
    assert [one["name"] for one in rows] == [
        name for _lag, name in sorted((-(6 - offset), name) for name, offset in lags.items())
    ]
    assert [one["name"] for one in listed()] == [one["name"] for one in rows]
    for one in rows:
        numbers = one["numbers"]
        assert numbers["lag_seconds"] >= 0
        assert (numbers["clients"], numbers["rate"]) == (0, 0.0)
        assert -1 not in numbers.values()
    by_time = api.get("/groups?q=stable&ordering=-lag_seconds")["items"]
    seconds = [one["numbers"]["lag_seconds"] for one in by_time]
    assert seconds == sorted(seconds, reverse=True)


def test_a_list_is_walked_by_cursor_with_every_row_once(api: Api, crowd: str) -> None:
    poll(lambda: api.get(f"/topics?q={crowd}")["total"] == MANY)
    seen: list[str] = []
    cursor = ""
    while True:
        body = api.get(f"/topics?q={crowd}&ordering=-last_write_ms&limit=7{cursor}")
        seen += [one["name"] for one in body["items"]]
        if body["next_cursor"] is None:
            break
        cursor = f"&cursor={body['next_cursor']}"
    assert seen == sorted(seen)
    assert len(seen) == MANY


@pytest.mark.must_beat(22)
def test_topics_show_everything_at_first_sight_and_chips_add_up(
    api: Api, page: Client, traffic: Traffic
) -> None:
    topic = traffic.topic("untyped", write_queue_nums=1, read_queue_nums=1)
    traffic.send(topic, 4)
    fast, slow = traffic.group("fast"), traffic.group("slow")
    traffic.commit(fast, topic, 0, 4)
    traffic.commit(slow, topic, 0, 1)

    def found() -> dict[str, Any] | None:
        items = [one for one in api.get("/topics?limit=500")["items"] if one["name"] == topic]
        numbers = items[0]["numbers"] if items else None
        return items[0] if numbers and len(numbers["groups"]) == 2 else None

    row = poll(found)
    assert row is not None
    assert (row["type"], row["perm"], row["write_queues"], row["read_queues"]) == (
        *("unspecified", 6, 1),
        1,
    )
    numbers = row["numbers"]
    assert (numbers["stored"], numbers["worst_lag"], numbers["worst_group"]) == (4, 3, slow)
    assert numbers["last_write_ms"] > 0
    assert numbers["in_rate"] >= 0 <= numbers["out_rate"]
    text = page.get(f"{HOME}/topics/").content.decode()
    assert topic in text
    words = perm_words(6)
    assert words is not None
    assert f"{words.words} <b>6</b>" in text
    totals = [
        api.get(f"/topics?type={kind}")["total"]
        for kind in (
            *("unspecified", "normal", "fifo", "delay", "transaction"),
            *("retry", "dlq", "system"),
        )
    ]
    assert sum(totals) == api.get("/topics")["total"]


@pytest.mark.must_beat(21)
def test_two_clusters_in_two_tabs_and_what_tells_them_apart(
    page: Client, local: Cluster, traffic: Traffic, settings: Settings
) -> None:
    topic = traffic.topic("tabs")
    settings.CONSOLE_CLUSTERS = {"one": local.namesrv_addr, "two": "127.0.0.1:1"}
    settings.CONSOLE_CLUSTER_MARKS = {"one": ClusterMark("red", production=True)}
    look: Callable[[str], str] = lambda path: page.get(path).content.decode()  # noqa: E731
    poll(lambda: topic in look("/clusters/one/topics/"))
    for _reload in range(2):
        assert topic in look("/clusters/one/topics/")
        assert page.get("/clusters/two/topics/").status_code == 503
    home = look("/")
    assert 'data-cluster-mark="red"' in home
    assert "Dead letters" in home
    assert 'data-cluster-mark="red"' in look("/clusters/one/")
    assert "data-cluster-mark" not in look("/clusters/two/")
