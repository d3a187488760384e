"""Names that clients and brokers of other implementations bring: no page and no answer fails."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import resolve, reverse

from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from tests.api.conftest import Api
from tests.api.test_pages import HOME, NOWHERE, Shape
from tests.api.traffic import Traffic, poll

#: List pages, start of the walk.
LISTS = (
    *("", "topics/", "groups/", "clients/", "producers/"),
    *("brokers/", "behind/", "dlq/", "messages/"),
)
#: Parts of names that have a meaning in URLs, or that servers and browsers change.
HOSTILE = "/../x//%2F;a?b#c d~2F\\é"
#: Other answers by view. The broker creates nothing with such a name (404); the page of a group's
#: client asks the client, and this client does not answer (502).
EXPECTED = {"groups:detail": {404}, "topics:detail": {404}, "groups:client": {404, 502}}


@dataclass(frozen=True)
class Foreign:
    """The names of a connected client, of its groups, and of an unreachable broker."""

    client: str
    #: Group with a configuration at the broker; its other group has none.
    configured: str
    group: str
    topic: str
    broker: str
    mark: str


@pytest.fixture
def foreign(traffic: Traffic) -> Iterator[Foreign]:
    mark = f"m{uuid4().hex[:8]}"
    configured, group, topic = traffic.group(mark), f"g{HOSTILE}{mark}", f"t{HOSTILE}{mark}"
    client, subscription = f"c{HOSTILE}{mark}", SubscriptionData(topic=topic, sub_version=1)
    beat = HeartbeatData(
        client_id=client,
        producer_data_set=[ProducerData(group_name=f"p{HOSTILE}{mark}")],
        consumer_data_set=[
            ConsumerData(group_name=name, subscription_data_set=[subscription])
            for name in (configured, group)
        ],
    )
    with (
        traffic.foreign_client(beat),
        traffic.dead_broker(NOWHERE, prefix=f"b{HOSTILE}{mark}") as broker,
    ):
        yield Foreign(client, configured, group, topic, broker, mark)


def test_no_page_fails_while_such_a_client_is_connected(page: Client, foreign: Foreign) -> None:
    poll(lambda: "~2F..~2F" in page.get(f"{HOME}/clients/").content.decode())
    group_page = f"{HOME}/groups/{foreign.configured}/consumers/"
    poll(lambda: "~2F..~2F" in page.get(group_page).content.decode())
    waiting, seen = deque(f"{HOME}/{name}" for name in LISTS), set[str]()
    failed = {}
    while waiting:
        # One variant of each page: tables link to themselves with every order and filter.
        path = waiting.popleft().partition("?")[0]
        if path in seen:
            continue
        seen.add(path)
        answer = page.get(path)
        expected = EXPECTED.get(resolve(unquote(path)).view_name, set())
        if answer.status_code not in {200, 302} | expected:
            failed[path] = answer.status_code
        if not answer.streaming and answer["Content-Type"].startswith("text/html"):
            links = Shape(answer.content.decode()).links
            waiting += [link for link in links if link.startswith(HOME) and foreign.mark in link]
    assert not failed
    names = {"cluster": "local"}
    known = {**names, "group": foreign.configured}
    assert {
        reverse("clients:detail", kwargs={**names, "client": foreign.client}),
        reverse("groups:detail", kwargs=known),
        reverse("groups:client", kwargs={**known, "client": foreign.client}),
        reverse("groups:detail", kwargs={**names, "group": foreign.group}),
        reverse("topics:detail", kwargs={**names, "topic": foreign.topic}),
    } <= seen


def test_the_api_lists_and_shows_such_names(api: Api, foreign: Foreign) -> None:
    def listed(path: str) -> str:
        answer = api("get", path)
        assert answer.status_code == 200, answer.content
        return str(answer.content.decode())

    poll(lambda: foreign.mark in listed("/clients"))
    poll(lambda: foreign.mark in listed("/producers"))
    poll(lambda: foreign.mark in listed("/brokers"))
    for path in ("/groups", "/topics", "/dlq", "/name-servers", "/load"):
        listed(path)
    members = api.get(f"/groups/{foreign.configured}/clients")
    assert repr(foreign.client) in str(members)
    names = {"cluster": "local", "group": foreign.group}
    for view, kwargs in {
        "api-group": names,
        "api-group-client": {**names, "group": foreign.configured, "client": foreign.client},
        "api-offset-resets": names,
        "api-group-impact": names,
        "api-dlq-messages": names,
        "api-topic": {"cluster": "local", "topic": foreign.topic},
        "api-broker": {"cluster": "local", "broker": foreign.broker},
    }.items():
        answer = api.client.get(reverse(view, kwargs=kwargs))
        assert answer.status_code in {200, 404, 502, 503}, (view, answer.content)
        assert "This page does not exist" not in answer.content.decode(), view


def test_the_search_finds_such_names(api: Api, foreign: Foreign) -> None:
    url = reverse("clusters:broker", kwargs={"cluster": "local", "broker": foreign.broker})
    poll(lambda: url in str(api.get(f"/search?q={foreign.mark}")["items"]))
