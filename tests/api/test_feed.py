"""The live feed of the overview: access, samples, and outages."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from pytest_django import Settings

from console.asgi import application
from console.web.live import sampler
from tests.api.conftest import browser
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster
from tests.support.sockets import Socket

pytestmark = pytest.mark.django_db(transaction=True)

FEED = "/ws/clusters/local/overview"
OWN = "http://testserver"
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def listener(transactional_db: None, local: Cluster) -> User:
    return User.objects.create_user("listener")


@pytest.fixture(autouse=True)
async def _quick_samples(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(sampler, "INTERVAL_S", 0.1)
    yield
    await sampler.stop_samplers()


async def listening(user: User | None, path: str = FEED, origin: str = OWN) -> Socket:
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if user is not None:
        session = await database_sync_to_async(session_of)(user)
        headers.append((b"cookie", f"gantry_session={session}".encode()))
    return Socket(application, path, headers)


def session_of(user: User) -> str:
    return str(browser(user).cookies["gantry_session"].value)


def is_(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda message: message["type"] == kind


async def test_nobody_listens_without_signing_in(transactional_db: None, local: Cluster) -> None:
    async with await listening(None) as socket:
        assert await socket.closed() == 4401


@pytest.mark.parametrize(
    "path",
    ["/ws/clusters/other/overview", "/ws/clusters/local/nothing", "/ws/nothing", "/elsewhere"],
)
async def test_feeds_that_do_not_exist_are_closed_with_a_code(listener: User, path: str) -> None:
    async with await listening(listener, path) as socket:
        assert await socket.closed() == 4404


async def test_a_page_of_another_site_is_not_let_in(listener: User) -> None:
    async with await listening(listener, origin="http://evil.example") as socket:
        assert not socket.accepted


async def test_history_comes_first_and_then_samples(listener: User, local: Cluster) -> None:
    async with await listening(listener) as socket:
        first = await socket.hear()
        assert first is not None
        assert first["type"] == "history"
        sample = await socket.hear_until(is_("sample"))
        assert [one["addr"] for one in sample["brokers"]] == [local.broker_addr]
        assert sample["failures"] == []


async def test_rates_follow_what_producers_send(listener: User, traffic: Traffic) -> None:
    topic = await asyncio.to_thread(traffic.topic, "rates")
    async with await listening(listener) as socket:
        await socket.hear_until(is_("sample"))
        sending = asyncio.to_thread(traffic.send, topic, 50)
        heard = socket.hear_until(lambda message: (message.get("in_rate") or 0) > 1)
        _nothing, sample = await asyncio.gather(sending, heard)
        assert sample["in_today"] >= 1


async def test_viewers_share_one_sampler_and_later_ones_get_its_history(listener: User) -> None:
    async with await listening(listener) as one, await listening(listener) as other:
        first = await one.hear_until(is_("sample"))
        history = await other.hear()
        assert history is not None
        later = await other.hear_until(lambda message: message["type"] == "sample")
        assert later["at_ms"] >= first["at_ms"]
        async with await listening(listener) as third:
            told = await third.hear()
            assert told is not None
            assert first["at_ms"] in {sample["at_ms"] for sample in told["samples"]}


async def test_a_cluster_that_cannot_be_reached_is_told(listener: User, settings: Settings) -> None:
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    async with await listening(listener) as socket:
        lost = await socket.hear_until(is_("lost"))
        assert f"Cannot connect to {NOWHERE}" in lost["reason"]


async def test_a_broker_that_dies_and_comes_back_is_followed(
    listener: User, cluster: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    async with await listening(listener) as socket:
        await socket.hear_until(lambda message: bool(message.get("brokers")))
        await asyncio.to_thread(cluster.kill_broker)
        stale = await socket.hear_until(lambda message: message.get("state") == "stale")
        assert [broker["state"] for broker in stale["brokers"]] == ["down"]
        # One failure per reason: a question at the moment of the kill has a reason of its own.
        assert {one["broker"] for one in stale["failures"]} == {"broker-a"}
        assert stale["fresh_at_ms"] < stale["at_ms"]
        assert stale["in_rate"] is None
        await asyncio.to_thread(cluster.restart_broker)
        await socket.hear_until(lambda message: message.get("state") == "fresh")


async def test_what_browsers_say_is_ignored_and_long_speeches_end(listener: User) -> None:
    async with await listening(listener) as socket:
        await socket.say("{not json")
        await socket.say(data=b"\xff\xfe")
        await socket.hear_until(is_("sample"))
        await socket.say("x" * 5_000)
        assert await socket.closed() == 1009
