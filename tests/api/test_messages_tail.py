"""The live tail of a topic: rows by listener, counts, failures."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.areas.messages import feeds, tails
from core_broker.message.model import Message
from tests.api.conftest import browser
from tests.api.stored import NASTY, RAW, numbered, routed_topic, store
from tests.api.test_feed import NOWHERE, is_, listening
from tests.api.test_masking import rule
from tests.api.test_pages import html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster
from tests.support.sockets import Socket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def listener(transactional_db: None, local: Cluster) -> User:
    return User.objects.create_user("listener")


@pytest.fixture(autouse=True)
async def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(tails, "POLL_INTERVAL_S", 0.05)
    monkeypatch.setattr(tails, "RETRY_DELAY_S", 0.05)
    monkeypatch.setattr(feeds, "HEARTBEAT_S", 0.2)
    yield
    await tails.stop_tails()


@pytest.fixture
async def topic(traffic: Traffic) -> str:
    return await asyncio.to_thread(routed_topic, traffic, "tailed")


async def tail(user: User | None, **query: str) -> Socket:
    return await listening(user, f"/ws/clusters/local/messages/tail?{urlencode(query)}")


async def rows_of(socket: Socket, count: int) -> list[dict[str, Any]]:
    """Frames until the number of rows is reached."""
    rows: list[dict[str, Any]] = []

    def enough(message: dict[str, Any]) -> bool:
        rows.extend(message.get("rows", ()))
        return len(rows) >= count

    await socket.hear_until(enough)
    return rows


@pytest.mark.must_beat(8)
async def test_two_tabs_show_all_of_a_hundred(listener: User, traffic: Traffic, topic: str) -> None:
    async with await tail(listener, topic=topic) as one, await tail(listener, topic=topic) as two:
        await one.hear_until(is_("rows"))
        await two.hear_until(is_("rows"))
        assert len(tails._tails) == 1, "one tail for both"
        sent = await asyncio.to_thread(store, traffic, *numbered(topic, 100))
        for socket in (one, two):
            rows = await rows_of(socket, 100)
            assert [row["offset_msg_id"] for row in rows] == [each.offset_msg_id for each in sent]
            assert rows[7]["preview"] == "message 7"


async def test_only_what_passes_the_filter_is_shown(
    listener: User, traffic: Traffic, topic: str
) -> None:
    wanted = {"topic": topic, "tags": "red", "body": "$.n >= 8", "body_test": "json"}
    async with await tail(listener, **wanted) as socket:
        await socket.hear_until(is_("rows"))
        bodies = [json.dumps({"n": number}).encode() for number in range(10)]
        await asyncio.to_thread(
            store, traffic, *(Message(topic, each, tags="red") for each in bodies)
        )
        await asyncio.to_thread(store, traffic, Message(topic, bodies[9], tags="blue"))
        told = await socket.hear_until(lambda message: message["seen"] == 11)
        assert told["matched"] == 2


@pytest.mark.must_beat(8)
async def test_what_is_faster_than_the_rate_is_counted(
    listener: User, traffic: Traffic, topic: str
) -> None:
    async with await tail(listener, topic=topic, rate="20") as socket:
        await socket.hear_until(is_("rows"))
        await asyncio.to_thread(traffic.send_many, topic, [b"flood"] * 5_000)
        shown = 0

        def all_counted(message: dict[str, Any]) -> bool:
            nonlocal shown
            shown += len(message["rows"])
            return bool(message["seen"] + message["skipped"] == 5_000)

        told = await socket.hear_until(all_counted)
        assert shown + told["dropped"] + told["skipped"] == 5_000
        assert 0 < shown < 1_000


async def test_a_pause_counts_and_a_resume_goes_on(
    listener: User, traffic: Traffic, topic: str
) -> None:
    async with await tail(listener, topic=topic) as socket:
        await socket.hear_until(is_("rows"))
        await socket.say('{"paused": true}')
        await asyncio.to_thread(store, traffic, *numbered(topic, 3))
        told = await socket.hear_until(lambda message: message["seen"] == 3)
        assert (told["rows"], told["dropped"]) == ([], 3)
        await socket.say('{"paused": false}')
        await asyncio.to_thread(store, traffic, Message(topic, b"after"))
        assert [row["preview"] for row in await rows_of(socket, 1)] == ["after"]


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"topic": "T" * 300},
        {"topic": "T", "sql": "a ="},
        {"topic": "T", "body": "(", "body_test": "regex"},
        {"topic": "T", "body_test": NASTY},
        {"topic": "T", "rate": "9999999"},
    ],
)
async def test_a_wrong_question_is_refused_with_its_reason(
    listener: User, query: dict[str, str]
) -> None:
    async with await tail(listener, **query) as socket:
        told = await socket.hear()
        assert told is not None
        assert told["type"] == "refused"
        assert await socket.closed() == 4400


async def test_nobody_follows_without_signing_in(transactional_db: None, local: Cluster) -> None:
    async with await tail(None, topic="T") as socket:
        assert await socket.closed() == 4401


async def test_listeners_are_bounded(
    listener: User, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "LISTENERS_MAX", 1)
    async with await tail(listener, topic=topic) as one:
        await one.hear_until(is_("rows"))
        async with await tail(listener, topic=topic) as other:
            assert await other.closed() == 4429


async def test_nonsense_is_passed_over_and_long_speeches_end(listener: User, topic: str) -> None:
    async with await tail(listener, topic=topic) as socket:
        for text in ("{not json", "[]", "null", '{"paused": "yes"}', "[" * 3_000):
            await socket.say(text)
        await socket.say(data=b"\xff\xfe")
        await socket.hear_until(is_("rows"))
        await socket.say("x" * 5_000)
        assert await socket.closed() == 1009


async def test_trouble_is_told_and_ends(
    listener: User, traffic: Traffic, settings: Settings, local: Cluster
) -> None:
    async with await tail(listener, topic="comes-later") as socket:
        told = await socket.hear_until(is_("lost"))
        assert "comes-later" in told["reason"]
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    async with await tail(listener, topic="any") as socket:
        told = await socket.hear_until(is_("lost"))
        assert f"Cannot connect to {NOWHERE}" in told["reason"]


async def test_a_broker_that_was_away_loses_no_rows(
    listener: User, cluster: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    traffic = Traffic(cluster.namesrv_addr, cluster.broker_addr)
    try:
        topic = await asyncio.to_thread(routed_topic, traffic, "returning")
        async with await tail(listener, topic=topic) as socket:
            await socket.hear_until(is_("rows"))
            await asyncio.to_thread(cluster.kill_broker)
            await socket.hear_until(is_("lost"))
            await asyncio.to_thread(cluster.restart_broker)
            await socket.hear_until(is_("rows"))
            await asyncio.to_thread(store, traffic, Message(topic, b"back"))
            assert [row["preview"] for row in await rows_of(socket, 1)] == ["back"]
    finally:
        await asyncio.to_thread(traffic.close)


def test_the_page_keeps_what_it_follows_in_its_address(listener: User, traffic: Traffic) -> None:
    topic = routed_topic(traffic, "page")
    page = browser(listener)
    shown = html(page, f"/clusters/local/messages/tail/?topic={topic}&tags=red&rate=20")
    assert f"/ws/clusters/local/messages/tail?topic={topic}&amp;tags=red&amp;rate=20" in shown
    assert "Select a topic" in html(page, "/clusters/local/messages/tail/")


def test_a_hostile_address_is_shown_and_never_run(page: Client) -> None:
    for query in ({"topic": "T", "sql": NASTY}, {"topic": "T" * 300}, {"topic": "T", "rate": "x"}):
        answer = page.get(f"/clusters/local/messages/tail/?{urlencode(query)}")
        assert answer.status_code == 400
        assert not any(raw in answer.content for raw in RAW)


@pytest.mark.must_beat(34)
async def test_rows_are_masked_for_each_listener(
    listener: User, traffic: Traffic, topic: str
) -> None:
    def prepare() -> User:
        rule("json", "$.card", topic)
        return User.objects.create_superuser("cleared", password="x")

    cleared = await database_sync_to_async(prepare)()
    wanted = {"topic": topic, "body": "4111"}
    async with (
        await tail(listener, topic=topic) as masked,
        await tail(listener, **wanted) as oracle,
        await tail(cleared, **wanted) as shown,
    ):
        for socket in (masked, oracle, shown):
            await socket.hear_until(is_("rows"))
        await asyncio.to_thread(store, traffic, Message(topic, b'{"card": "4111"}'))
        assert (await rows_of(masked, 1))[0]["preview"] == '{"card":"***"}'
        assert (await rows_of(shown, 1))[0]["preview"] == '{"card": "4111"}'
        told = await oracle.hear_until(lambda message: message["seen"] == 1)
        assert told["matched"] == 0
