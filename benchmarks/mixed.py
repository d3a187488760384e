"""Producers at 70 % of their peak rate, with consumers that keep up, for any duration.

The peak is the rate of 64 connections with one request in flight each, measured first and beside
consumers. The same number of connections then send in an open loop, so a latency starts when its
request is due. The time from there to the consumer is measured, too. Bodies have 1 KiB; the store
deletes segments as early as possible (`fileReservedTime` 0, at every hour), so a run of ten minutes
needs some 3 GiB of disk, and includes segments that end, begin and are deleted.
"""

import time
from pathlib import Path
from typing import Any, Final

from benchmarks.load import SCENARIOS, Scenario, begin, run
from benchmarks.processes import Cluster, running
from benchmarks.requests import QUEUES, send_template, tail_template

PEAK_SECONDS: Final = 10
PEAK_SHARE: Final = 0.7
POLL_SECONDS: Final = 5
#: Times of memory samples, percent of the run; endless growth is visible at the end.
MEMORY_AT: Final = (0, 25, 50, 75, 100)
#: Maximum requests in flight per connection.
IN_FLIGHT: Final = 64
SEGMENT_BYTES: Final = 1024**3
SETTINGS: Final = (
    f"fileReservedTime=0\ndeleteWhen={';'.join(f'{hour:02d}' for hour in range(24))}\n"
)

PEAK: Final = SCENARIOS["send-64x1"]
MIXED: Final = Scenario(PEAK.connections, IN_FLIGHT, send_template)
FOLLOWING: Final = Scenario(QUEUES, 1, tail_template)
#: The same on a topic without a backlog.
ALONE: Final = "BenchMixed"
CREATION: Final = Scenario(QUEUES, 1, lambda number: send_template(number, ALONE))
MIXED_ALONE: Final = Scenario(PEAK.connections, IN_FLIGHT, CREATION.template)
FOLLOWING_ALONE: Final = Scenario(QUEUES, 1, lambda number: tail_template(number, ALONE))


def mixed(folder: Path, seconds: float) -> dict[str, Any]:
    """Send at 70 % of the peak beside consumers; measures latencies and memory."""
    with running(folder, SETTINGS) as cluster:
        run(PEAK, cluster.broker_addr, seconds=PEAK_SECONDS, messages_max=1)  # creates the topic
        following = begin(FOLLOWING, cluster.broker_addr, seconds=PEAK_SECONDS)
        peak = run(PEAK, cluster.broker_addr, seconds=PEAK_SECONDS)["rate"]
        following.figures()
        # Late consumers read the backlog first, so their lag is temporary.
        following = begin(FOLLOWING, cluster.broker_addr, seconds=seconds + POLL_SECONDS)
        time.sleep(POLL_SECONDS)
        before = cluster.store_figures()
        rate = int(peak * PEAK_SHARE)
        sending = begin(MIXED, cluster.broker_addr, seconds=seconds, rate=rate)
        memory = _memory_meanwhile(cluster, seconds)
        sent, received = sending.figures(), following.figures()
        after = cluster.store_figures()
    return {
        "peak_per_second": int(peak),
        "sent_per_second": sent["rate"],
        **{f"{name}_us": value for name, value in sent["latency_us"].items()},
        **{f"end_to_end_{name}_us": each for name, each in received["end_to_end_us"].items()},
        **{
            f"memory_mb_at_{percent}": memory[(len(memory) - 1) * percent // 100]
            for percent in MEMORY_AT
        },
        "memory_mb_max": max(memory),
        "flushes": after["flush_times"] - before["flush_times"],
        "segments_begun": after["commit_log_max_offset"] // SEGMENT_BYTES
        - before["commit_log_max_offset"] // SEGMENT_BYTES,
        "segments_removed": (after["commit_log_min_offset"] - before["commit_log_min_offset"])
        // SEGMENT_BYTES,
        "seconds": seconds,
    }


def beside_consumers(cluster: Cluster, rate: int, seconds: float) -> dict[str, Any]:
    """Send at a given rate beside consumers that keep up, on a topic of its own."""
    run(CREATION, cluster.broker_addr, seconds=PEAK_SECONDS, messages_max=1)
    following = begin(FOLLOWING_ALONE, cluster.broker_addr, seconds=seconds + POLL_SECONDS)
    cpu_seconds = cluster.broker.cpu_seconds()
    sending = begin(MIXED_ALONE, cluster.broker_addr, seconds=seconds, rate=rate)
    memory = _memory_meanwhile(cluster, seconds)
    try:
        sent, received = sending.figures(), following.figures()
    finally:
        following.stop()
    cpu_seconds = cluster.broker.cpu_seconds() - cpu_seconds
    arrivals = received.get("end_to_end_us", {})  # absent when nothing arrived in time
    return {
        "rate": sent["rate"],
        "received_rate": round(received["messages"] / sent["seconds"]),
        "cpu_us_per_message": round(cpu_seconds * 1e6 / max(1, sent["messages"]), 2),
        **{f"{name}_us": value for name, value in sent["latency_us"].items()},
        **{f"end_to_end_{name}_us": each for name, each in arrivals.items()},
        "memory_mb_first": memory[0],
        "memory_mb_last": memory[-1],
        "seconds": seconds,
    }


def _memory_meanwhile(cluster: Cluster, seconds: float) -> list[float]:
    """Sample the broker's own memory until the end of the load."""
    seen = []
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(POLL_SECONDS, left))
        seen.append(cluster.broker.memory_mb()["anon"])
    return seen
