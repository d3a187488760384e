"""Search: names, pages, actions, messages and recent items, by page and REST resource."""

from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.services.search import engine as searching
from core_broker.message.model import Message
from tests.api.conftest import Api, browser
from tests.api.stored import NASTY, RAW, numbered, routed_topic, store
from tests.api.test_feed import NOWHERE
from tests.api.test_pages import html
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

PAGE = "/clusters/local/search/"


@pytest.fixture
def topic(traffic: Traffic) -> str:
    return routed_topic(traffic, "Payments-settled")


def titles(api: Api, text: str, kind: str) -> list[str]:
    items = api.get(f"/search?q={quote(text)}")["items"]
    return [each["title"] for each in items if each["kind"] == kind]


@pytest.mark.must_beat(38)
def test_a_part_of_a_name_finds_topics_groups_and_brokers(
    api: Api, traffic: Traffic, topic: str
) -> None:
    group = traffic.group("payments-readers")
    assert poll(lambda: titles(api, "settled pay", "topic")) == [topic]
    assert poll(lambda: titles(api, "PAYMENTS-R", "group")) == [group]
    broker = api.get(f"/messages?topic={topic}")
    assert broker["items"] == []
    assert f"Messages of {topic}" in titles(api, "settled", "action")


def test_pages_and_actions_are_found_by_their_titles(api: Api) -> None:
    assert "Dead letters" in titles(api, "dead", "page")
    assert "Create a topic" in titles(api, "create", "action")
    everything = api.get("/search")["items"]
    assert {each["kind"] for each in everything} == {"page", "action"}


@pytest.mark.must_beat(7)
def test_messages_are_found_by_what_can_only_be_an_id_or_a_place(
    api: Api, traffic: Traffic, topic: str
) -> None:
    id_of_5 = "01" + "AB" * 16
    [sent] = store(traffic, Message(topic, b"x", properties={"UNIQ_KEY": id_of_5}), queue_id=1)
    for text in (sent.offset_msg_id, id_of_5, f"{topic}/1/{sent.queue_offset}"):
        assert titles(api, text, "message")[0] == id_of_5, text
    assert titles(api, "order-7", "message") == ["Find messages with ID or key “order-7”"]


@pytest.mark.must_beat(7)
def test_one_box_finds_by_every_id_and_tells_where_it_looked(
    api: Api, page: Client, traffic: Traffic, topic: str
) -> None:
    id_of_5 = "01" + "CD" * 16
    [sent] = store(traffic, Message(topic, b"x", keys=("k-7",), properties={"UNIQ_KEY": id_of_5}))
    [other] = store(traffic, Message(topic, b"y"), queue_id=1)
    known = {
        id_of_5: ("unique_key", sent),
        other.msg_id: ("unique_key", other),
        other.offset_msg_id: ("offset_id", other),
        "k-7": ("key", sent),
        f"{topic}/1/0": ("place", other),
    }
    for text, (index, wanted) in known.items():
        answer = api.get(f"/messages/find?q={quote(text)}")
        assert [each["offset_msg_id"] for each in answer["items"]] == [wanted.offset_msg_id], text
        assert index in {each["index"] for each in answer["searched"] if each["found"]}, text
        leads = page.get("/clusters/local/messages/find/", {"q": text})
        assert leads.headers["Location"].endswith(f"/{wanted.offset_msg_id}/")
    nothing = html(page, "/clusters/local/messages/find/?q=nosuch/1/5")
    assert "Searched indexes" in nothing
    assert "message ID index" in nothing


def test_what_was_looked_at_last_comes_first(page: Client, traffic: Traffic, topic: str) -> None:
    [sent] = store(traffic, *numbered(topic, 1))
    html(page, f"/clusters/local/messages/?topic={topic}&tags=t")
    html(page, f"/clusters/local/messages/{sent.offset_msg_id}/")
    shown = html(page, PAGE)
    first = shown.index(f"messages/{sent.offset_msg_id}/")
    assert first < shown.index(f"messages/?topic={topic}&amp;tags=t")
    session = page.session["recent"]
    assert len(session) == 2
    for number in range(15):
        html(page, f"/clusters/local/messages/?topic={topic}&tags={number}")
    assert len(page.session["recent"]) == 2, "one topic is one item"


def test_results_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch, traffic: Traffic) -> None:
    monkeypatch.setattr(searching, "ENTRIES_OF_KIND_MAX", 2)
    for _number in range(3):
        routed_topic(traffic, "bounded")
    assert poll(lambda: len(titles(api, "bounded", "topic")) == 2)
    assert api("get", f"/search?q={'x' * 5_000}").status_code == 200


def test_a_viewer_is_not_offered_what_they_may_not_do(
    reader: User, topic: str, local: Cluster
) -> None:
    viewer = browser(reader)

    def look() -> str:
        shown = html(viewer, f"{PAGE}?q=settled")
        return shown if "Live tail of" in shown else ""

    shown = poll(look)
    assert "Send a message to" not in shown
    assert "palette-list" in shown


def test_pages_are_found_while_the_cluster_is_away(page: Client, settings: Settings) -> None:
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    shown = html(page, f"{PAGE}?q=dead")
    assert "Dead letters" in shown
    assert "Cannot connect" in shown


@pytest.mark.parametrize("text", [NASTY, "%00", "\ud83d", "%DLQ%", "a/b/c", "0" * 32, "\x00"])
def test_any_text_is_shown_and_never_run(page: Client, api: Api, text: str) -> None:
    encoded = quote(text.encode("utf-8", "surrogatepass"))
    answer = page.get(f"{PAGE}?q={encoded}")
    assert answer.status_code == 200
    assert not any(raw in answer.content for raw in RAW)
    assert api("get", f"/search?q={encoded}").status_code == 200
