"""The slave's end of a connection under controllers: which bytes it acknowledges."""

import asyncio
import random
from pathlib import Path

import pytest

from core_broker.ha.faults import DivergedLog
from core_broker.ha.status import SlaveState
from core_broker.ha.switch_client import SwitchClient
from core_broker.ha.switch_frames import (
    REPORT_BYTES,
    SLAVE_HANDSHAKE_BYTES,
    encode_master_handshake,
    encode_transfer_header,
)
from tests.support.eventually import eventually
from tests.support.ha_masters import HaMaster, SlaveLink
from tests.support.replicas import copy_log, log_bytes
from tests.support.stores import Bench


async def no_truncation(offset: int, confirm_offset: int) -> None:
    raise AssertionError(f"a truncation to {offset}")


async def agreed() -> None:
    """A comparison that finds nothing."""


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_with_sync_flush_acknowledged_bytes_are_on_the_disk(
    tmp_path: Path, flush: str
) -> None:
    master = Bench(tmp_path / "master").open()
    master.put_many(3)
    end = master.store.max_offset_physical
    slave = Bench(
        tmp_path / "slave",
        broker_role="SLAVE",
        broker_id=2,
        enable_controller_mode=True,
        flush_disk_type=flush,
    ).open()
    slave.run_io()
    store, reported, served = slave.store, list[int](), asyncio.Event()

    async def serve(link: SlaveLink) -> None:
        await link._reader.readexactly(SLAVE_HANDSHAKE_BYTES)
        await link.send(encode_master_handshake(end, [(1, 0)]))
        await link._reader.readexactly(REPORT_BYTES)
        await link.send(encode_transfer_header(0, end, (1, 0), 0) + log_bytes(master.store, 0))
        try:
            while True:
                report = await link._reader.readexactly(REPORT_BYTES)
                reported.append(int.from_bytes(report[4:], "big"))
        finally:
            served.set()

    async with HaMaster(serve) as ha:
        client = SwitchClient(
            store,
            2,
            lambda: store.config,
            lambda: ha.addr,
            no_truncation,
            agreed,
            lambda: None,
            lambda: slave.now_ms,
        )
        task = asyncio.create_task(client.run())
        await eventually(lambda: bool(reported))
        assert store.max_offset_physical == end
        if flush == "SYNC_FLUSH":
            assert set(reported) == {0}, "nothing is flushed yet"
            slave.run_io()
        await eventually(lambda: reported[-1] == end)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await eventually(served.is_set)
    slave.store.close()
    master.store.close()


async def test_a_log_with_another_newest_record_is_not_acknowledged(tmp_path: Path) -> None:
    """Epochs alone do not show that a master went on after it had lost the end of its log."""
    slave = Bench(tmp_path, broker_role="SLAVE", broker_id=2, enable_controller_mode=True).open()
    source = Bench(tmp_path / "source").open()
    source.put_many(3)
    end = source.store.max_offset_physical
    copy_log(source.store, slave.store, random.Random(1))
    store, reports = slave.store, list[bytes]()
    assert store.epochs.begin(1, 0)

    async def differs() -> None:
        raise DivergedLog("the newest record differs")

    async def serve(link: SlaveLink) -> None:
        await link._reader.readexactly(SLAVE_HANDSHAKE_BYTES)
        await link.send(encode_master_handshake(end + 100, [(1, 0)]))
        try:
            reports.append(await link._reader.read(REPORT_BYTES))
        except ConnectionError:
            reports.append(b"")

    async with HaMaster(serve) as ha:
        client = SwitchClient(
            store,
            2,
            lambda: store.config,
            lambda: ha.addr,
            no_truncation,
            differs,
            lambda: None,
            lambda: slave.now_ms,
        )
        task = asyncio.create_task(client.run())
        await eventually(lambda: client.status.state is SlaveState.DIVERGED)
        await eventually(lambda: bool(reports))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert set(reports) == {b""}, "the connection is closed without a report"
    source.store.close()
    store.close()
