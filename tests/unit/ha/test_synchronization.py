"""Tables of the master on the slave: whole replacement, merged offsets, delayed progress."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from core_broker.ha import synchronization
from core_broker.ha.faults import ReplicationRefused
from core_broker.ha.log_comparison import LogComparison, MasterLog
from core_broker.ha.synchronization import Synchronization
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from tests.support.broker_harness import BrokerHarness
from tests.support.eventually import eventually
from tests.support.replicas import copy_log
from tests.support.scripted_master import ScriptedMaster
from tests.support.scripted_peer import ok, refuse
from tests.support.stores import NOW_MS, Bench


class Pair:
    """A scripted master and the tables of a slave."""

    def __init__(self, folder: Path, client: RemotingClient, *, is_committed: bool = False) -> None:
        self.bench = Bench(folder / "master").open()
        self.master = ScriptedMaster(self.bench)
        (folder / "slave").mkdir()
        self.slave = BrokerHarness(folder / "slave", broker_role="SLAVE", broker_id=1)
        self.ctx = self.slave.ctx
        self.ends: list[int] = []
        self.refusals: list[ReplicationRefused] = []

        async def read(offset: int) -> bytes | None:
            return None

        self.synchronization = Synchronization(
            self.ctx,
            client,
            LogComparison(client, self.ctx.store.replica, read),
            lambda: self.master.addr,
            self._note,
            self.refusals.append,
            is_committed=is_committed,
        )

    def _note(self, master: MasterLog) -> None:
        self.ends.append(master.max_offset)

    async def synchronize(self) -> None:
        await self.synchronization.synchronize(self.master.addr)


@pytest_asyncio.fixture
async def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Pair]:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    client = RemotingClient(name="test")
    made = Pair(tmp_path, client, is_committed=getattr(request, "param", False))
    async with made.master:
        yield made
    await client.close()
    made.slave.close()


async def test_topics_and_groups_become_those_of_the_master(pair: Pair) -> None:
    master, ctx = pair.master, pair.ctx
    ctx.topics.put(TopicConfig(topic_name="Local"), NOW_MS)
    system = sorted(ctx.topics.system_topics)
    master.topics.put(TopicConfig(topic_name="T", read_queue_nums=3), NOW_MS)
    master.topics.put(TopicConfig(topic_name="Removed"), NOW_MS)
    master.groups.put(SubscriptionGroupConfig(group_name="G", retry_max_times=3), NOW_MS)
    await pair.synchronize()
    names = sorted(each.topic_name for each in ctx.topics.configs)
    assert names == sorted([*system, "Removed", "T"])
    assert ctx.topics.get("T") == master.topics.get("T")
    assert ctx.groups.get("G") == master.groups.get("G")
    assert (ctx.topics.version, ctx.groups.version) == (
        master.topics.version,
        master.groups.version,
    )

    replaced = ctx.topics.replacements
    await pair.synchronize()
    assert ctx.topics.replacements == replaced
    master.topics.remove("Removed", NOW_MS + 1)
    await pair.synchronize()
    assert ctx.topics.get("Removed") is None


async def test_a_slave_asks_for_a_new_topic_in_its_log_at_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elected without the topic, it would refuse pulls of acknowledged messages."""
    monkeypatch.setattr(synchronization, "SYNCHRONIZE_S", 3600.0)
    master, ctx = pair.master, pair.ctx
    running = asyncio.create_task(pair.synchronization.run())
    await eventually(lambda: pair.master.received(RequestCode.GET_ALL_DELAY_OFFSET))
    master.topics.put(TopicConfig(topic_name="T"), NOW_MS)
    pair.bench.put_many(1)
    copy_log(pair.bench.store, ctx.store, random.Random(0))
    await eventually(lambda: ctx.topics.get("T") is not None)
    running.cancel()


async def test_a_slave_asks_a_new_master_at_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synchronization, "SYNCHRONIZE_S", 3600.0)
    running = asyncio.create_task(pair.synchronization.run())
    await eventually(lambda: pair.master.received(RequestCode.GET_ALL_DELAY_OFFSET))
    async with ScriptedMaster(pair.bench) as other:
        other.topics.put(TopicConfig(topic_name="Other"), NOW_MS)
        pair.master = other
        await eventually(lambda: pair.ctx.topics.get("Other") is not None)
        running.cancel()


async def test_a_table_that_fails_does_not_prevent_the_others(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.master.on(RequestCode.GET_ALL_TOPIC_CONFIG, lambda _: refuse(1, "No permission"))
    pair.master.on(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, lambda _: ok(body=b"no JSON"))
    pair.master.offsets.commit("G", "T", 0, 5)
    for _ in range(2):
        await pair.synchronize()
    assert pair.ctx.offsets.committed("G", "T", 0) == 5
    problems = pair.synchronization.problems
    assert "No permission" in problems["topics"]
    assert problems["groups"]
    assert problems["consumer offsets"] == ""
    assert caplog.text.count("topics are not synchronized") == 1


async def test_delay_progress_waits_for_the_delivered_messages(pair: Pair) -> None:
    """Progress ahead of the log would lose delayed messages when the slave becomes master."""
    pair.bench.put_many(10)
    pair.master.delays.advance(3, 7)
    await pair.synchronize()
    assert pair.ctx.delay_progress.offset(3) == 0
    copy_log(pair.bench.store, pair.ctx.store, random.Random(0))
    pair.bench.put_many(10, first=10)
    pair.master.delays.advance(3, 17)
    await pair.synchronize()
    assert pair.ctx.delay_progress.offset(3) == 7
    copy_log(pair.bench.store, pair.ctx.store, random.Random(0))
    await pair.synchronize()
    assert pair.ctx.delay_progress.offset(3) == 17


@pytest.mark.parametrize("pair", [True], indirect=True)
async def test_committed_progress_waits_as_well_and_goes_back_in_no_level(pair: Pair) -> None:
    """A leader of an older version counts deliveries that are not committed."""
    pair.ctx.delay_progress.advance_all({2: 5, 4: 9})
    pair.bench.put_many(10)
    for level, offset in ((2, 4), (3, 7), (4, 12)):
        pair.master.delays.advance(level, offset)
    await pair.synchronize()
    assert [pair.ctx.delay_progress.offset(level) for level in (2, 3, 4)] == [5, 0, 9]
    copy_log(pair.bench.store, pair.ctx.store, random.Random(0))
    await pair.synchronize()
    assert [pair.ctx.delay_progress.offset(level) for level in (2, 3, 4)] == [5, 7, 12]


@pytest.mark.parametrize("pair", [False, True], indirect=True)
async def test_the_waiting_progress_of_another_master_is_dropped(pair: Pair) -> None:
    """The slave reaches the length of the old master's log with other messages."""
    pair.bench.put_many(10)
    pair.master.delays.advance(3, 70)
    await pair.synchronize()
    copy_log(pair.bench.store, pair.ctx.store, random.Random(0))
    later = ScriptedMaster(pair.bench)
    later.delays.advance(3, 7)
    async with later:
        await pair.synchronization.synchronize(later.addr)
    assert pair.ctx.delay_progress.offset(3) == 7


async def test_a_master_with_a_shorter_log_is_told(pair: Pair, tmp_path: Path) -> None:
    pair.bench.put_many(10)
    copy_log(pair.bench.store, pair.ctx.store, random.Random(0))
    await pair.synchronize()
    assert pair.refusals == []
    assert pair.ends[-1] == pair.bench.store.max_offset_physical
    pair.master.bench = Bench(tmp_path / "other").open()
    await pair.synchronize()
    assert "the master has lost messages" in str(pair.refusals[0])
