"""The tables of a follower: whose delay progress it adopts, and whose not."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from core_broker.dledger.leader_tables import LeaderTables
from tests.support.broker_harness import BrokerHarness
from tests.support.eventually import eventually
from tests.support.scripted_master import ScriptedMaster
from tests.support.stores import Bench

SETTINGS = {"enable_d_leger_commit_log": True, "d_leger_self_id": "n0", "broker_role": "SLAVE"}


class Names:
    """The registration of the follower."""

    master_found: Callable[[str, str], None] | None = None


class Follower:
    """A follower's tables, and the broker whose address the name server returns."""

    def __init__(self, folder: Path) -> None:
        (folder / "follower").mkdir()
        self.broker = BrokerHarness(folder / "follower", **SETTINGS)
        self.bench = Bench(folder / "leader").open()
        self.leader = ScriptedMaster(self.bench)
        self.names = Names()
        self.tables = LeaderTables(self.broker.ctx, self.names, None, [], lambda: 0)

    async def copy(self) -> None:
        """Copy the tables once."""
        self.tables.follow()
        assert self.names.master_found is not None
        self.names.master_found("", self.leader.addr)
        await eventually(lambda: "delay progress" in self.tables._synchronization.problems)
        assert self.tables.problems == {}
        await self.tables.rest()

    def offsets(self) -> list[int]:
        return [self.broker.ctx.delay_progress.offset(level) for level in (2, 3, 4)]


@pytest_asyncio.fixture
async def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Follower]:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    made = Follower(tmp_path)
    async with made.leader:
        yield made
    await made.tables.close()
    made.bench.store.close()
    made.broker.close()


async def test_progress_goes_back_in_no_level(follower: Follower) -> None:
    """The answer may be that of a deposed leader."""
    follower.broker.ctx.delay_progress.advance_all({2: 5, 4: 9})
    for level, offset in ((2, 4), (3, 7), (4, 12)):
        follower.leader.delays.advance(level, offset)
    await follower.copy()
    assert follower.offsets() == [5, 7, 12]


async def test_progress_waits_for_the_end_of_the_leader(follower: Follower) -> None:
    """A leader of an older version counts deliveries that no other member has."""
    follower.bench.put_many(5)
    follower.leader.delays.advance(3, 7)
    await follower.copy()
    assert follower.offsets() == [0, 0, 0]
