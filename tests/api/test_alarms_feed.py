"""The live feed of alarms: access, and what the pages of a cluster hear."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import now_ms
from console.services.alarms import episodes, evaluation, silences
from console.services.alarms.models import AlarmRule, Episode
from console.services.history.files import path_of
from tests.api.conftest import browser
from tests.api.test_alarms import World
from tests.api.test_jobs_feed import listening
from tests.api.test_roles import member
from tests.support.cluster import Cluster
from tests.support.sockets import Socket
from tests.support.webhooks import webhook
from tests.unit.history.stored import recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.must_beat(12)]
FEED = "/ws/clusters/local/alarms"


@pytest.fixture
def listener(transactional_db: None, local: Cluster) -> User:
    return member("listener", "alarms:read")


def firing(cluster: str) -> Episode:
    at_ms = now_ms()
    return Episode.objects.create(
        rule_name="lag", cluster=cluster, kind="group", name="orders", severity="critical",
        state="firing", begun_ms=at_ms, fired_ms=at_ms, seen_ms=at_ms,
    )  # fmt: skip


async def first_heard(socket: Socket, act: Callable[[], object]) -> dict[str, Any]:
    """Repeat `act` until a message arrives: the feed may not have joined the group yet."""
    hearing = asyncio.create_task(socket.hear())
    while not hearing.done():
        await sync_to_async(act)()
        await asyncio.wait([hearing], timeout=0.02)
    heard = hearing.result()
    assert heard is not None
    return heard


async def test_the_feed_needs_the_permission_for_alarms(
    transactional_db: None, local: Cluster
) -> None:
    async with await listening(None, FEED) as socket:
        assert await socket.closed() == 4401
    other = await database_sync_to_async(member)("other", "topics:read")
    async with await listening(other, FEED) as socket:
        assert await socket.closed() == 4403


async def test_changes_of_the_cluster_and_of_all_clusters_are_heard(listener: User) -> None:
    here, elsewhere = [await database_sync_to_async(firing)(each) for each in ("local", "other")]

    def silence(cluster: str) -> None:
        values = {"rule": None, "kind": "", "pattern": "x", "reason": "quiet", "duration_s": 60}
        silences.create({**values, "cluster": cluster}, listener)

    def acknowledge_elsewhere_and_silence_here() -> None:
        episodes.acknowledge(elsewhere, listener, "on it")
        silence("local")

    for act, heard in (
        (acknowledge_elsewhere_and_silence_here, "silences"),
        (partial(episodes.acknowledge, here, listener, "on it"), "alarms"),
        (partial(silence, ""), "silences"),
    ):
        async with await listening(listener, FEED) as socket:
            assert await first_heard(socket, act) == {"changed": heard}


def test_pages_of_alarms_name_the_feed(local: Cluster, staff: User) -> None:
    episode, page = firing("local"), browser(staff)
    for path in ("", "rules/", "silences/", "deliveries/", f"{episode.pk}/"):
        address = f"/clusters/local/alarms/{path}"
        whole = page.get(address).content.decode()
        assert f'data-live-feed="{FEED}"' in whole, path
        part = page.get(address, headers={"HX-Request": "true"}).content.decode()
        assert "data-live-part" not in part, path
        assert "<section" in part, path


def test_an_evaluation_announces_its_changes_once(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    AlarmRule.objects.all().delete()
    announced: list[tuple[str, str]] = []
    monkeypatch.setattr(evaluation, "announce", lambda *what: announced.append(what))
    with recorder(path_of(tmp_path, "local")) as record, webhook() as hook:
        world = World(record, hook)
        world.rule()
        world.put(orders=5, other=5)
        assert announced == []
        world.put(orders=20, other=30)
        assert announced == [("local", "alarms")]
        world.put(orders=21, other=31)
        assert len(announced) == 1, "stored values are younger than a minute"
        world.put(orders=0, other=0)
        assert world.states == ["resolved", "resolved"]
        assert announced == [("local", "alarms")] * 2
