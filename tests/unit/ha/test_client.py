"""The slave's end of a replication connection, with well-behaved, slow and hostile masters."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack

import pytest

from core_broker.ha import client as ha_client
from core_broker.ha.client import HaClient
from core_broker.ha.faults import DivergedLog
from core_broker.ha.frames import BODY_BYTES_MAX, encode_packet_header
from core_broker.ha.status import SlaveState
from tests.support.eventually import eventually
from tests.support.ha_masters import HaMaster, Script, SlaveLink
from tests.support.replicas import assert_equal, log_bytes
from tests.support.stores import SEGMENT_BYTES, Bench, message

#: Bound of every wait, seconds; far above what a busy machine needs.
WAIT_S = 60.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk, and short pauses between attempts."""
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    for name in ("RETRY_S_MIN", "RETRY_S_MAX", "REFUSED_RETRY_S", "SEARCH_S"):
        monkeypatch.setattr(ha_client, name, 0.01)


@pytest.fixture
def master(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "master").open()
    dice = random.Random(1)
    for number in range(120):
        bench.put(message(number, queue_id=number % 3, body=dice.randbytes(dice.randrange(700))))
    return bench


@pytest.fixture
def slave(tmp_path: Path) -> Bench:
    return open_slave(tmp_path)


def open_slave(folder: Path, **changes: object) -> Bench:
    return Bench(folder / "slave", broker_role="SLAVE", broker_id=1, **changes).open()


async def agreed() -> None:
    """A comparison that finds nothing."""


@asynccontextmanager
async def replicating(
    slave: Bench, script: Script, compare: Callable[[], Awaitable[None]] = agreed
) -> AsyncIterator[tuple[HaClient, HaMaster]]:
    store = slave.store
    async with HaMaster(script) as ha:
        client = HaClient(
            store.replica,
            lambda: store.config,
            lambda: ha.addr,
            compare,
            lambda: None,
            lambda: slave.now_ms,
        )
        task = asyncio.create_task(client.run())
        try:
            yield client, ha
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def serving(master: Bench, dice: random.Random, *, cut: bool = False) -> Script:
    """Serve the log as a master does: packets cut anywhere, never across segments.

    With `cut`, most connections end at a random byte.
    """

    async def serve(link: SlaveLink) -> None:
        at = await link.report()
        end = master.store.max_offset_physical
        budget = dice.randrange(1, 30_000) if cut and dice.random() < 0.8 else end * 2
        while at < end:
            segment_end = at - at % SEGMENT_BYTES + SEGMENT_BYTES
            size = min(dice.choice((1, 20, 700, 32_768)), end - at, segment_end - at)
            packet = encode_packet_header(at, size) + log_bytes(master.store, at, at + size)
            await link.send(packet[:budget])
            budget -= len(packet)
            if budget <= 0:
                return
            at += size
        await link.packet(at)
        await link.closed()

    return serve


@pytest.mark.parametrize("seed", range(4))
async def test_a_slave_catches_up_over_cut_connections(
    master: Bench, slave: Bench, seed: int
) -> None:
    async with replicating(slave, serving(master, random.Random(seed), cut=True)) as (client, _):
        end = master.store.max_offset_physical
        await eventually(lambda: slave.store.replica.end == end, WAIT_S)
        await eventually(lambda: client.status.state is SlaveState.TRANSFERRING, WAIT_S)
        assert client.status.problem == ""
        assert client.status.lag_bytes(end) == 0
    assert_equal(master.store, slave.store)


async def test_the_first_report_comes_at_once_and_reports_follow_the_written_bytes(
    master: Bench, slave: Bench
) -> None:
    reports: list[int] = []
    data = log_bytes(master.store, 0, SEGMENT_BYTES)
    first = int.from_bytes(data[:4], "big")

    async def script(link: SlaveLink) -> None:
        reports.append(await link.report())
        await link.packet(0, data[: first + 10])
        reports.append(await link.report())
        await link.packet(first + 10, data[first + 10 :])
        reports.append(await link.report())
        await link.closed()

    async with replicating(slave, script):
        await eventually(lambda: len(reports) == 3, WAIT_S)
    # Half a record is neither written nor reported.
    assert reports == [0, first, SEGMENT_BYTES]


async def test_an_idle_connection_is_kept_by_reports_and_heartbeats(
    tmp_path: Path, master: Bench
) -> None:
    slave = open_slave(tmp_path, ha_send_heartbeat_interval=10)
    counts: list[int] = []

    async def script(link: SlaveLink) -> None:
        for _ in range(5):
            counts.append(await link.report())
            await link.packet(0)
        await link.closed()

    async with replicating(slave, script) as (client, ha):
        await eventually(lambda: len(counts) == 5, WAIT_S)
        await eventually(lambda: client.status.state is SlaveState.TRANSFERRING, WAIT_S)
        assert ha.connections == 1
    assert counts == [0] * 5


async def test_a_silent_master_is_given_up(tmp_path: Path) -> None:
    slave = open_slave(tmp_path, ha_housekeeping_interval=50)
    async with replicating(slave, SlaveLink.closed) as (client, ha):
        await eventually(lambda: ha.connections >= 2, WAIT_S)
        await eventually(lambda: "haHousekeepingInterval" in client.status.problem, WAIT_S)


@pytest.mark.parametrize("offset", [1, SEGMENT_BYTES, 2**62])
@pytest.mark.parametrize("is_heartbeat", [True, False])
async def test_another_offset_is_refused_and_nothing_is_changed(
    master: Bench, slave: Bench, offset: int, is_heartbeat: bool
) -> None:
    """A master that has another log, or whose log is shorter, as a Java master answers."""
    data = log_bytes(master.store, 0, SEGMENT_BYTES)

    async def script(link: SlaveLink) -> None:
        begin = await link.report()
        if not begin:
            await link.packet(0, data)
            await link.reported(SEGMENT_BYTES)
        await link.packet(SEGMENT_BYTES + offset, b"" if is_heartbeat else data)
        await link.closed()

    async with replicating(slave, script) as (client, ha):
        await eventually(lambda: ha.connections >= 2, WAIT_S)
        await eventually(lambda: client.status.state is SlaveState.DIVERGED, WAIT_S)
        assert f"from offset {SEGMENT_BYTES + offset} on" in client.status.problem
    assert slave.store.replica.end == SEGMENT_BYTES
    assert log_bytes(slave.store, 0) == data


async def test_an_empty_slave_begins_at_a_segment_only(slave: Bench) -> None:
    async def script(link: SlaveLink) -> None:
        await link.packet(SEGMENT_BYTES + 1)  # a heartbeat has any offset
        await link.packet(SEGMENT_BYTES + 1, b"x")
        await link.closed()

    async with replicating(slave, script) as (client, _):
        await eventually(lambda: "no begin of a segment" in client.status.problem, WAIT_S)
    assert slave.store.replica.is_empty
    assert slave.store.replica.end == 0


async def test_an_empty_slave_accepts_the_newest_segment(master: Bench, slave: Bench) -> None:
    """A Java master sends its newest file to a slave that reports 0."""
    start = 2 * SEGMENT_BYTES
    end = master.store.max_offset_physical

    async def script(link: SlaveLink) -> None:
        at = await link.report() or start
        segment_end = at - at % SEGMENT_BYTES + SEGMENT_BYTES
        while at < end:
            await link.packet(at, log_bytes(master.store, at, min(end, segment_end)))
            at, segment_end = segment_end, segment_end + SEGMENT_BYTES
        await link.closed()

    async with replicating(slave, script):
        await eventually(lambda: slave.store.replica.end == end, WAIT_S)
    assert slave.store.min_offset_physical == start
    assert_equal(master.store, slave.store)


HOSTILE = {
    "a body above the maximum": pack(">qi", 0, BODY_BYTES_MAX + 1),
    "a negative size": pack(">qi", 0, -1),
    "a negative offset": pack(">qi", -1, 10),
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "half a header": pack(">qi", 0, 100)[:7],
    "half a body": pack(">qi", 0, 100) + bytes(10),
    "a body of zeros": pack(">qi", 0, 100) + bytes(100),
    "a record of two gigabytes": pack(">qi", 0, 8) + bytes.fromhex("7fffffffdaa320a7"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_master_changes_nothing(
    tmp_path: Path, master: Bench, slave: Bench, kind: str
) -> None:
    """Afterwards the slave still replicates from a good master."""
    is_hostile = True
    good = serving(master, random.Random(0))

    async def script(link: SlaveLink) -> None:
        if not is_hostile:
            await good(link)
            return
        await link.report()
        await link.send(HOSTILE[kind])

    async with replicating(slave, script) as (client, ha):
        await eventually(lambda: ha.connections >= 3, WAIT_S)
        assert client.status.problem
        assert slave.store.replica.end == 0
        is_hostile = False
        end = master.store.max_offset_physical
        await eventually(lambda: slave.store.replica.end == end, WAIT_S)
    assert_equal(master.store, slave.store)


async def test_a_refused_comparison_prevents_the_connection(slave: Bench) -> None:
    async def differs() -> None:
        raise DivergedLog("the newest record of this slave, at 0, differs")

    async with replicating(slave, SlaveLink.closed, differs) as (client, ha):
        await eventually(lambda: client.status.state is SlaveState.DIVERGED, WAIT_S)
        assert ha.connections == 0
        assert "move its store folder away" in client.status.problem


async def test_a_refusal_ends_a_running_connection(
    slave: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(link: SlaveLink) -> None:
        await link.packet(0)
        await link.closed()

    async with replicating(slave, script) as (client, ha):
        await eventually(lambda: client.status.state is SlaveState.TRANSFERRING, WAIT_S)
        client.refuse(DivergedLog("the master has lost messages"))
        await eventually(lambda: ha.connections >= 2, WAIT_S)
    assert "the master has lost messages" in caplog.text


async def test_a_store_that_cannot_write_is_tried_again(master: Bench, slave: Bench) -> None:
    slave.store.health.set_disk_refusal("the disk is full")
    async with replicating(slave, serving(master, random.Random(0))) as (client, ha):
        await eventually(lambda: ha.connections >= 2, WAIT_S)
        await eventually(lambda: "the disk is full" in client.status.problem, WAIT_S)
        slave.store.health.set_disk_refusal(None)
        end = master.store.max_offset_physical
        await eventually(lambda: slave.store.replica.end == end, WAIT_S)
    assert_equal(master.store, slave.store)
