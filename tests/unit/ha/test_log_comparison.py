"""The comparison of both logs by requests, against a scripted master."""

import os
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from core_broker.ha import log_comparison
from core_broker.ha.faults import DivergedLog
from core_broker.ha.log_comparison import LogComparison
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.replicas import assert_equal, copy_log, log_bytes
from tests.support.scripted_peer import ScriptedPeer, ok, refuse
from tests.support.stores import SEGMENT_BYTES, Bench, message, warmed


class Master(ScriptedPeer):
    """Answers codes 28 and 33 from a store."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.min_offset: int | None = None
        self.on(RequestCode.GET_BROKER_RUNTIME_INFO, self._runtime)
        self.on(RequestCode.VIEW_MESSAGE_BY_ID, self._view)

    def _runtime(self, request: RemotingCommand) -> RemotingCommand:
        store = self.bench.store
        least = store.min_offset_physical if self.min_offset is None else self.min_offset
        table = {
            "commitLogMinOffset": str(least),
            "commitLogMaxOffset": str(store.max_offset_physical),
            "bootTimestamp": "17",
        }
        return ok(body=encode_body(KVTable(table=table)))

    def _view(self, request: RemotingCommand) -> RemotingCommand:
        offset = int(request.ext_fields["offset"])
        record = warmed(self.bench.store, partial(self.bench.store.read_at, offset))
        return ok(body=record) if record else refuse(1, "can not find message by the offset")


class Pair:
    """A scripted master and a slave's store."""

    def __init__(self, folder: Path, client: RemotingClient) -> None:
        self.bench = Bench(folder / "master").open()
        self.bench.put(*(message(each, body=bytes(500)) for each in range(60)))
        self.slave = Bench(folder / "slave", broker_role="SLAVE", broker_id=1).open()
        self.master = Master(self.bench)
        store = self.slave.store

        async def read(offset: int) -> bytes | None:
            return warmed(store, partial(store.read_at, offset))

        self.comparison = LogComparison(client, store.replica, read)

    def copy(self, end: int | None = None) -> None:
        copy_log(self.bench.store, self.slave.store, random.Random(0), end)


@pytest_asyncio.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    client = RemotingClient(name="test")
    made = Pair(tmp_path, client)
    async with made.master:
        yield made
    await client.close()


async def test_equal_logs_agree(pair: Pair) -> None:
    pair.copy(20_000)
    found = await pair.comparison.compare(pair.master.addr)
    assert found is not None
    assert found.max_offset == pair.bench.store.max_offset_physical
    assert found.boot_ms == 17


async def test_another_newest_record_is_found(pair: Pair, tmp_path: Path) -> None:
    """A broker that was master of other messages, of the same sizes."""
    other = Bench(tmp_path / "other").open()
    other.put(*(message(each, body=b"x" * 500) for each in range(60)))
    pair.copy(20_000)
    pair.master.bench = other
    with pytest.raises(DivergedLog, match="the newest record of this slave"):
        await pair.comparison.compare(pair.master.addr)


async def test_a_master_that_lost_its_end_is_refused(pair: Pair, tmp_path: Path) -> None:
    pair.copy()
    shorter = Bench(tmp_path / "other").open()
    shorter.put(*(message(each, body=bytes(500)) for each in range(59)))
    pair.master.bench = shorter
    with pytest.raises(DivergedLog, match="the master has lost messages"):
        await pair.comparison.compare(pair.master.addr)


async def test_a_slave_behind_the_oldest_segment_is_refused(pair: Pair) -> None:
    pair.copy(5_000)
    pair.master.min_offset = SEGMENT_BYTES
    with pytest.raises(DivergedLog, match="the master has deleted"):
        await pair.comparison.compare(pair.master.addr)


async def test_an_empty_slave_fetches_the_first_record(pair: Pair) -> None:
    """A report of 0 would bring the newest segment only."""
    await pair.comparison.compare(pair.master.addr)
    store, end = pair.slave.store, pair.slave.store.replica.end
    assert 0 < end < 1_000
    assert log_bytes(store, 0) == log_bytes(pair.bench.store, 0, end)
    pair.copy()
    assert_equal(pair.bench.store, store)


async def test_an_empty_slave_asks_a_master_that_just_started_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java master refuses until it has sampled its rates."""
    monkeypatch.setattr(log_comparison, "EMPTY_RETRY_S", 0)
    refusals = iter([refuse(1, "Index: 0, Size: 0")] * 2)
    pair.master.on(
        RequestCode.GET_BROKER_RUNTIME_INFO,
        lambda request: next(refusals, None) or pair.master._runtime(request),
    )
    assert await pair.comparison.compare(pair.master.addr) is not None
    assert pair.slave.store.replica.end > 0


async def test_an_empty_slave_begins_at_the_oldest_segment(pair: Pair) -> None:
    pair.master.min_offset = SEGMENT_BYTES
    await pair.comparison.compare(pair.master.addr)
    assert pair.slave.store.replica.end == SEGMENT_BYTES
    assert pair.master.received(RequestCode.VIEW_MESSAGE_BY_ID) == []


async def test_an_empty_slave_of_one_segment_needs_no_record(pair: Pair, tmp_path: Path) -> None:
    pair.master.bench = Bench(tmp_path / "other").open()
    pair.master.bench.put(message(1))
    await pair.comparison.compare(pair.master.addr)
    assert pair.slave.store.replica.end == 0


@pytest.mark.parametrize("code", [1, 3, 16])
async def test_a_master_that_refuses_the_questions_is_not_compared(
    pair: Pair, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Access control of a Java master refuses with code 1."""
    pair.copy()
    pair.master.on(RequestCode.GET_BROKER_RUNTIME_INFO, lambda _: refuse(code, "no permission"))
    assert await pair.comparison.compare(pair.master.addr) is None
    assert await pair.comparison.compare(pair.master.addr) is None
    assert caplog.text.count("are not compared") == 1


async def test_an_unknown_master_is_not_compared(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.copy()
    assert await pair.comparison.compare("") is None
    assert "the address of the master is unknown" in caplog.text


@pytest.mark.parametrize("body", [b"{}", b"no JSON", b'{"table":{"commitLogMinOffset":"x"}}'])
async def test_an_unreadable_answer_compares_nothing(pair: Pair, body: bytes) -> None:
    pair.copy()
    pair.master.on(RequestCode.GET_BROKER_RUNTIME_INFO, lambda _: ok(body=body))
    assert await pair.comparison.compare(pair.master.addr) is None
