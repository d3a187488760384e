"""kill -9 of a slave during replication, repeatedly: the store becomes equal to the master's.

`RUNS` sets how many kills, `FIRST_SEED` where the random moments begin; a failure prints the
command for a repetition.
"""

import asyncio
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core_broker.ha.frames import encode_packet_header
from tests.support.cluster import ROOT, SMALL_STORE, Program, free_broker_port
from tests.support.eventually import eventually
from tests.support.ha_masters import HaMaster, SlaveLink
from tests.support.replicas import log_bytes
from tests.support.stores import Bench, message

pytestmark = pytest.mark.crash

RUNS = int(os.environ.get("RUNS", "3"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
#: Bound of every wait, seconds.
WAIT_S = 60.0
SEGMENT_BYTES = 256 * 1024
STORE: dict[str, Any] = SMALL_STORE | {
    "mapped_file_size_commit_log": SEGMENT_BYTES,
    "flush_interval_consume_queue": 100,
    "flush_consume_queue_thorough_interval": 300,
    "disk_space_warning_level_ratio": 100,
    "disk_space_clean_forcibly_ratio": 100,
    "disk_max_used_space_ratio": 95,
    "delete_when": "",
}


class Serving:
    """Serves the log of a store; `reported` is the slave's last report."""

    def __init__(self, master: Bench, dice: random.Random) -> None:
        self._master = master
        self._dice = dice
        self.requested: list[int] = []
        self.reported = 0

    async def serve(self, link: SlaveLink) -> None:
        """Send all bytes from the first report on, and read the reports meanwhile."""
        at = self.reported = await link.report()
        self.requested.append(at)
        reading = asyncio.create_task(self._read(link))
        store, end = self._master.store, self._master.store.max_offset_physical
        try:
            while at < end:
                segment_end = at - at % SEGMENT_BYTES + SEGMENT_BYTES
                size = min(self._dice.choice((100, 5_000, 32_768)), end - at, segment_end - at)
                await link.send(encode_packet_header(at, size) + log_bytes(store, at, at + size))
                at += size
                await asyncio.sleep(0)
            await reading
        finally:
            reading.cancel()

    def has_reported(self, offset: int) -> bool:
        """True when the slave has reported an offset or a later one."""
        return self.reported >= offset

    def has_requests(self, count: int) -> bool:
        """True after `count` connections with a report."""
        return len(self.requested) >= count

    async def _read(self, link: SlaveLink) -> None:
        while True:
            self.reported = await link.report()


async def kill_again_and_again(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    master = Bench(folder / "master", mapped_file_size_commit_log=SEGMENT_BYTES).open()
    slave = Program("core_broker", folder)
    serving = Serving(master, dice)
    async with HaMaster(serving.serve) as ha:
        settings = {
            "broker_role": "SLAVE",
            "broker_id": 1,
            "broker_name": "broker-a",
            "broker_ip1": "127.0.0.1",
            "bind_address": "127.0.0.1",
            "listen_port": free_broker_port(),
            "http_port": 0,
            "ha_master_address": ha.addr,
            "store_path_root_dir": folder / "slave",
            **STORE,
        }
        try:
            for _ in range(4):
                fill(master, dice)
                end = master.store.max_offset_physical
                # Before the start: a fast slave has reported everything when it is ready.
                killed_at = dice.randrange(serving.reported + 1, end)
                await asyncio.to_thread(slave.start, settings)
                await eventually(partial(serving.has_reported, killed_at), WAIT_S)
                confirmed = serving.reported
                await asyncio.to_thread(slave.kill)
                connections = len(serving.requested)
                await asyncio.to_thread(slave.start, settings)
                await eventually(partial(serving.has_requests, connections + 1), WAIT_S)
                # All that was reported is in the file of the killed process.
                assert serving.requested[-1] >= confirmed
                await eventually(partial(serving.has_reported, end), WAIT_S)
                await asyncio.to_thread(slave.kill)
            await asyncio.to_thread(slave.start, settings)
            assert await asyncio.to_thread(slave.stop) == 0
        finally:
            slave.kill()
    compare(master, folder / "slave")


def fill(master: Bench, dice: random.Random) -> None:
    for number in range(400):
        body = dice.randbytes(dice.randrange(6_000))
        master.put(message(number, topic=dice.choice(("A", "B")), queue_id=number % 3, body=body))


def compare(master: Bench, folder: Path) -> None:
    """Compare the bytes, and let `mqstore verify` compare queues and index with the log."""
    parts = [file.read_bytes() for file in sorted((folder / "commitlog").iterdir())]
    end = master.store.max_offset_physical
    assert b"".join(parts)[:end] == log_bytes(master.store, 0)
    command = [sys.executable, "-m", "core_broker.mqstore", "verify", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.timeout(300 + 60 * RUNS)
async def test_a_slave_killed_during_replication_becomes_equal(tmp_path: Path) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            await kill_again_and_again(folder, seed)
        except BaseException as failure:
            failure.add_note(
                f'repeat it: make crash RUNS=1 FIRST_SEED={seed} ARGS="-k slave_killed"'
            )
            raise
