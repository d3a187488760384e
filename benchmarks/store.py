"""The store alone, without a network: `python -m benchmarks.store SCENARIO FOLDER [--…]`.

    store-append-100    bodies of 100 bytes, ASYNC_FLUSH, 64 messages per event-loop iteration
    store-append-1024   the same with 1 KiB
    store-group-commit  SYNC_FLUSH, clients with one message each in flight
    store-recovery      start after a kill, and with queues and index rebuilt from the log
    store-key-query     queries by key among many indexed messages: from memory, then from disk

Each scenario is a separate process that prints one JSON object.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from core_broker.config import BrokerConfig
from core_broker.message.model import MessageInner
from core_broker.store import MessageStore
from core_broker.store.files import DiskFiles
from core_broker.store.index_items import ENTRY_NUMBERS, IndexEntries
from core_broker.store.key_hash import KeyHasher
from core_broker.store.key_index import KeyIndex

TOPIC = "Bench"
QUEUES = 8
MIB = 1024 * 1024
PER_TURN = 64
CLIENTS = (1, 4, 16, 64, 256)
#: Indexed keys per stored message; all keys point to the offset of the stored message.
KEYS_PER_MESSAGE = 100
QUERIES = 5_000
COLD_QUERIES = 300
KILLED = 9


def store_config(folder: Path, **changes: Any) -> BrokerConfig:
    """RocketMQ's defaults, with the store in a folder."""
    return BrokerConfig(store_path_root_dir=str(folder), **changes)


def inner(number: int, body: bytes) -> MessageInner:
    """A message as a Java producer sends it, with a key and a tag."""
    properties = {
        "KEYS": f"key-{number}",
        "UNIQ_KEY": f"7F0000010000{number:020X}",
        "WAIT": "true",
        "TAGS": "TagA",
    }
    hosts = ("127.0.0.1", 40000), ("127.0.0.1", 10911)
    return MessageInner(
        TOPIC, number % QUEUES, body, properties, born_host=hosts[0], store_host=hosts[1]
    )


def opened(config: BrokerConfig) -> MessageStore:
    """An open store on the running event loop."""
    store = MessageStore(config)
    store.load()
    store.start(asyncio.get_running_loop())
    return store


async def append(store: MessageStore, body: bytes, stop: Callable[[int], bool]) -> int:
    """Put messages, several per event-loop iteration; returns their number."""
    number = 0
    while not stop(number):
        for number in range(number, number + PER_TURN):  # noqa: B020 - goes on where it was
            store.put(inner(number, body))
        number += 1
        store.write_staged()
        await asyncio.sleep(0)
    return number


async def measure_append(folder: Path, size: int, seconds: float) -> dict[str, Any]:
    """Throughput of one writer."""
    store = opened(store_config(folder))
    started = time.perf_counter()
    deadline = started + seconds
    cpu = time.process_time()
    messages = await append(store, b"x" * size, lambda number: time.perf_counter() >= deadline)
    took = time.perf_counter() - started
    stored = store.max_offset_physical
    cpu = time.process_time() - cpu
    store.close()
    return {
        "messages": messages,
        "rate": round(messages / took),
        "body_mb_per_second": round(messages * size / took / 1e6, 1),
        "log_mb_per_second": round(stored / took / 1e6, 1),
        "cpu_us_per_message": round(cpu * 1e6 / messages, 2),
    }


class Clients:
    """Clients that each wait for the flush before the next message."""

    def __init__(self, store: MessageStore, count: int, seconds: float) -> None:
        self.latencies: list[int] = []
        self._store = store
        self._count = count
        self._deadline = time.perf_counter() + seconds
        self._is_ending = False
        self._waiting: list[asyncio.Future[bool]] = []

    async def run(self) -> None:
        """Run all clients until the deadline."""
        await asyncio.gather(*(self._client(number) for number in range(self._count)))

    async def _client(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        body = b"x" * 1024
        while time.perf_counter() < self._deadline:
            began = time.perf_counter_ns()
            self._store.put(inner(number, body))
            flushed: asyncio.Future[bool] = loop.create_future()
            self._waiting.append(flushed)
            if not self._is_ending:
                self._is_ending = True
                loop.call_soon(self._end_turn)
            if not await flushed:
                raise SystemExit("the disk did not flush in time")
            self.latencies.append(time.perf_counter_ns() - began)

    def _end_turn(self) -> None:
        self._is_ending = False
        waiting, self._waiting = self._waiting, []
        self._store.write_staged()

        def flushed(is_flushed: bool) -> None:
            for each in waiting:
                each.set_result(is_flushed)

        self._store.on_flushed(self._store.max_offset_physical, flushed)


async def measure_group_commit(folder: Path, seconds: float) -> dict[str, Any]:
    """Throughput and latency for each number of waiting clients."""
    store = opened(store_config(folder, flush_disk_type="SYNC_FLUSH"))
    figures: dict[str, Any] = {}
    for count in CLIENTS:
        clients = Clients(store, count, seconds)
        await clients.run()
        rate = round(len(clients.latencies) / seconds)
        figures[str(count)] = {"rate": rate, **percentiles(clients.latencies)}
    store.close()
    return {"clients": figures}


def percentiles(latencies_ns: list[int]) -> dict[str, Any]:
    """The median and the 99th percentile, microseconds."""
    latencies_ns.sort()
    last = len(latencies_ns) - 1
    return {f"p{each}_us": latencies_ns[last * each // 100] // 1000 for each in (50, 99)}


async def fill(folder: Path, mib: int) -> None:
    """Write `mib` MiB of log and exit without closing anything; runs in a separate process."""
    store = opened(store_config(folder))
    await append(store, b"x" * 1024, lambda number: store.max_offset_physical >= mib * MIB)
    os._exit(KILLED)


def measure_recovery(folder: Path, mib: int) -> dict[str, Any]:
    """Start time per GiB of log."""
    command = [sys.executable, "-m", "benchmarks.store", "fill", str(folder), "--log-mib", str(mib)]
    done = subprocess.run(command, check=False)
    if done.returncode != KILLED:
        raise SystemExit(f"the writer ended with {done.returncode}")
    after_kill = timed_load(folder)
    for name in ("consumequeue", "index"):
        shutil.rmtree(folder / name)
    for name in ("checkpoint", "dispatchCheckpoint.json"):
        (folder / name).unlink()
    rebuild = timed_load(folder)
    return {
        "log_mib": mib,
        "after_kill_seconds": round(after_kill, 2),
        "rebuild_seconds": round(rebuild, 2),
        "rebuild_seconds_per_gib": round(rebuild * 1024 / mib, 2),
    }


def timed_load(folder: Path) -> float:
    """Load a store, and close it properly."""
    store = MessageStore(store_config(folder))
    began = time.perf_counter()
    store.load()
    took = time.perf_counter() - began
    store.close()
    return took


async def measure_key_query(folder: Path, keys: int) -> dict[str, Any]:
    """Latency of a query by key among `keys` indexed messages."""
    began = time.perf_counter()
    count = keys // KEYS_PER_MESSAGE
    await store_keyed(folder, count)
    build_index(folder, count)
    built = time.perf_counter() - began
    store = opened(store_config(folder))
    numbers = random.Random(1)
    hot = [await query(store, numbers.randrange(count)) for _ in range(QUERIES)]
    for path in (folder / "index").iterdir():
        drop_from_memory(path)
    cold = [await query(store, numbers.randrange(count)) for _ in range(COLD_QUERIES)]
    store.close()
    return {
        "indexed": count * KEYS_PER_MESSAGE,
        "build_seconds": round(built, 1),
        "from_memory": percentiles(hot),
        "from_disk": percentiles(cold),
    }


async def store_keyed(folder: Path, count: int) -> None:
    """Store the messages that will be queried, without index."""
    store = opened(store_config(folder, message_index_enable=False))
    for number in range(count):
        store.put(inner(number * KEYS_PER_MESSAGE, b"x" * 100))
        if number % PER_TURN == 0:
            store.write_staged()
            await asyncio.sleep(0)
    store.write_staged()
    store.close()
    (folder / "dispatchCheckpoint.json").unlink()


def build_index(folder: Path, count: int) -> None:
    """Index all keys with the store's own index, as if each key had a message."""
    config = store_config(folder)
    files = DiskFiles()
    index = KeyIndex(files, folder / "index", config.max_hash_slot_num, config.max_index_num)
    hasher = KeyHasher()
    store = MessageStore(config)
    store.load()
    places = [
        unit.offset_physical
        for queue in range(QUEUES)
        for unit in store.queue_units(TOPIC, queue, 0, count)
    ]
    now_ms = store.stats().earliest_message_timestamp + 3_600_000
    store.close()
    shutil.rmtree(folder / "index", ignore_errors=True)
    (folder / "dispatchCheckpoint.json").unlink()
    entries: IndexEntries = array("q")
    for number, place in enumerate(sorted(places)):
        first = number * KEYS_PER_MESSAGE
        for key in range(first, first + KEYS_PER_MESSAGE):
            entries.extend((hasher.key_hash(TOPIC, f"key-{key}"), place, now_ms))
        if len(entries) >= ENTRY_NUMBERS * PER_TURN * KEYS_PER_MESSAGE or number == count - 1:
            index.add(entries)
            index.write_full_tail()
    flushes = index.take_flushes()
    for flush in flushes:
        flush.run()
    index.flushed(flushes, is_done=True)
    index.close()


async def query(store: MessageStore, number: int) -> int:
    """Query one message by its key; returns nanoseconds."""
    began = time.perf_counter_ns()
    found = await store.query(TOPIC, f"key-{number * KEYS_PER_MESSAGE}", 32, 0, 1 << 62)
    took = time.perf_counter_ns() - began
    if len(found.records) != 1:
        raise SystemExit(f"{len(found.records)} messages have the key of message {number}")
    return took


def drop_from_memory(path: Path) -> None:
    """Evict a file from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a scenario."""

    scenario: str
    folder: Path
    seconds: float
    #: Log size of store-recovery, MiB.
    log_mib: int
    #: Indexed messages of store-key-query.
    keys: int


def run(options: Options) -> dict[str, Any]:
    """Run one scenario."""
    folder, seconds = options.folder, options.seconds
    match options.scenario:
        case "store-append-100":
            return asyncio.run(measure_append(folder, 100, seconds))
        case "store-append-1024":
            return asyncio.run(measure_append(folder, 1024, seconds))
        case "store-group-commit":
            return asyncio.run(measure_group_commit(folder, seconds / len(CLIENTS)))
        case "store-recovery":
            return measure_recovery(folder, options.log_mib)
        case "store-key-query":
            return asyncio.run(measure_key_query(folder, options.keys))
        case _:
            asyncio.run(fill(folder, options.log_mib))
            return {}


SCENARIOS = (
    "store-append-100",
    "store-append-1024",
    "store-group-commit",
    "store-recovery",
    "store-key-query",
)


def lines(name: str, figures: dict[str, Any]) -> list[str]:
    """The metrics of a scenario as text lines."""
    match name:
        case "store-group-commit":
            return [
                f"{clients:>4} clients: {each['rate']:,} msg/s, p50 {each['p50_us']:,} us,"
                f" p99 {each['p99_us']:,} us"
                for clients, each in figures["clients"].items()
            ]
        case "store-recovery":
            return [
                f"{figures['log_mib']} MiB of log: {figures['after_kill_seconds']} s after a kill,"
                f" {figures['rebuild_seconds']} s with queues and index built again"
                f" ({figures['rebuild_seconds_per_gib']} s per GiB)"
            ]
        case "store-key-query":
            return [
                f"{figures['indexed']:,} messages indexed, {where}: p50 {each['p50_us']:,} us,"
                f" p99 {each['p99_us']:,} us"
                for where, each in (
                    ("from memory", figures["from_memory"]),
                    ("from disk", figures["from_disk"]),
                )
            ]
        case _:
            return [
                f"{figures['rate']:,} msg/s, bodies {figures['body_mb_per_second']} MB/s, log"
                f" {figures['log_mb_per_second']} MB/s, {figures['cpu_us_per_message']} us of CPU"
            ]


def store_options(command: click.decorators.FC) -> click.decorators.FC:
    """The options of the store scenarios."""
    command = click.option(
        "--keys", type=int, default=10_000_000, help="Indexed messages of store-key-query."
    )(command)
    return click.option(
        "--log-mib", type=int, default=1024, help="Log size of store-recovery, MiB."
    )(command)


@click.command(context_settings={"show_default": True})
@click.argument("scenario", type=click.Choice([*SCENARIOS, "fill"]))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seconds", type=float, default=5)
@store_options
def main(**options: Any) -> None:
    """Run one scenario of the store, and print one JSON object."""
    print(json.dumps(run(Options(**options))))


if __name__ == "__main__":
    main()
