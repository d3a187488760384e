"""Pulls from disk, and their effect on sends and pulls from memory.

A data set larger than the machine's memory would need a large disk and much time, so the benchmark
makes the memory small instead. `accessMessageInMemoryMaxRatio` limits the broker to half a GiB, an
eighth of the stored data, as on a machine of that size: older messages are returned in smaller
batches. The benchmark also evicts the pages of all segments but the newest again and again
(posix_fadvise, POSIX_FADV_DONTNEED), so that pulls wait for the disk; the metrics include the bytes
read from disk, from /proc.

Eight consumers pull the old messages at full speed. Sends to another topic and pulls of its
messages run at a steady rate in an open loop: first without the eight consumers, then beside them.
"""

import os
import threading
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.load import SCENARIOS, Scenario, begin, run
from benchmarks.processes import Cluster, running
from benchmarks.requests import QUEUES, batch_template, pull_template, send_template

COLD_BYTES: Final = 4 * 1024**3
MEMORY_BYTES: Final = 512 * 1024**2
FORGET_SECONDS: Final = 0.3
HOT_TOPIC: Final = "Bench-hot"
SENDS_PER_SECOND: Final = 2_000
PULLS_PER_SECOND: Final = 500
#: Minimum size of a load generator's message in the log, bytes.
RECORD_BYTES: Final = 1_150
FILL_SECONDS_MAX: Final = 600

COLD: Final = Scenario(QUEUES, 1, pull_template)
FILLING: Final = Scenario(16, 1, lambda number: batch_template(number, 32, topic=HOT_TOPIC))
HOT_SENDS: Final = Scenario(16, 4, lambda number: send_template(number, HOT_TOPIC))
HOT_PULLS: Final = Scenario(16, 1, lambda number: pull_template(number, HOT_TOPIC))


class PageEviction:
    """A context that keeps evicting the older segments of a store from the page cache."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        os.sync()  # dirty pages cannot be evicted
        self._forget()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(FORGET_SECONDS):
            self._forget()

    def _forget(self) -> None:
        # all but the newest segment and the prepared next segment
        old = sorted(self._log.iterdir())[:-2]
        for path in old:
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def cold_pull(folder: Path, seconds: float) -> dict[str, Any]:
    """Measure hot sends and pulls, first alone, then beside consumers of cold messages."""
    memory = psutil.virtual_memory().total
    ratio = max(1, round(MEMORY_BYTES * 100 / memory))
    with running(folder, f"accessMessageInMemoryMaxRatio={ratio}\n") as cluster:
        for scenario, size in ((SCENARIOS["batch-32"], COLD_BYTES), (FILLING, MEMORY_BYTES)):
            count = size // RECORD_BYTES
            run(scenario, cluster.broker_addr, seconds=FILL_SECONDS_MAX, messages_max=count)
        with PageEviction(folder / "store" / "commitlog"):
            alone = _hot(cluster, seconds)
            before = cluster.broker.disk_bytes_read()
            cold = begin(COLD, cluster.broker_addr, seconds=seconds)
            beside = _hot(cluster, seconds)
            pulled = cold.figures()
            read = cluster.broker.disk_bytes_read() - before
    took = pulled["seconds"]
    return {
        "cold_pulls_per_second": round(pulled["requests"] / took),
        "cold_messages_per_second": pulled["rate"],
        "cold_mb_per_second": round(pulled["messages"] * RECORD_BYTES / took / 1e6, 1),
        "read_from_disk_mb_per_second": round(read / took / 1e6, 1),
        **{f"cold_pull_{name}_us": pulled["latency_us"][name] for name in ("p50", "p99")},
        **{f"{name}_alone_us": value for name, value in alone.items()},
        **{f"{name}_beside_us": value for name, value in beside.items()},
    }


def _hot(cluster: Cluster, seconds: float) -> dict[str, float]:
    sending = begin(HOT_SENDS, cluster.broker_addr, seconds=seconds, rate=SENDS_PER_SECOND)
    pulling = begin(HOT_PULLS, cluster.broker_addr, seconds=seconds, rate=PULLS_PER_SECOND)
    both = {"hot_send": sending.figures(), "hot_pull": pulling.figures()}
    return {
        f"{kind}_{name}": figures["latency_us"][name]
        for kind, figures in both.items()
        for name in ("p50", "p99")
    }
