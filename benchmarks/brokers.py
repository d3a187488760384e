"""One broker per core: the same load on one broker and on two, and the cost of a further broker.

64 connections with one request in flight send to one broker, then 32 connections to each of two
brokers. All load generators run on the last CPU, the brokers wherever the system puts them. The
idle broker of a run with one broker is stopped (SIGSTOP).
"""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.ballast import Ballast
from benchmarks.load import SCENARIOS, begin
from benchmarks.processes import Cluster, running_brokers

BROKERS: Final = (1, 2)
#: Rounds that count; an uncounted round comes first.
ROUNDS: Final = 3
LOAD: Final = SCENARIOS["send-64x1"]
#: Wait before the CPU time of idle brokers is measured, seconds.
IDLE_SECONDS: Final = 5.0


def one_per_core(folder: Path, seconds: float) -> dict[str, Any]:
    """Measure rates, CPU time, memory and start; `ratio` is the rate of two brokers to one."""
    with (
        closing(Ballast(folder)) as ballast,
        running_brokers(folder, max(BROKERS)) as clusters,
    ):
        figures = _cost(clusters)
        rates: dict[int, list[dict[str, float]]] = {count: [] for count in BROKERS}
        for _ in range(ROUNDS + 1):
            for count in BROKERS:
                ballast.fill()
                rates[count].append(_round(clusters, count, seconds))
        figures["anon_mb_after_load"] = clusters[-1].broker.memory_mb()["anon"]
    for count, rounds in rates.items():
        counted = rounds[1:]
        for name in counted[0]:
            figures[f"brokers_{count}_{name}"] = round(median(each[name] for each in counted), 2)
    one, two = (figures[f"brokers_{count}_per_second"] for count in BROKERS)
    figures["ratio"] = round(two / one, 3)
    return figures


def _cost(clusters: Sequence[Cluster]) -> dict[str, Any]:
    """Start, memory and CPU time of a further broker without load."""
    further = clusters[-1].broker
    before = further.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    idle = further.cpu_seconds() - before
    memory = further.memory_mb()
    return {
        "start_seconds": round(further.start_seconds, 2),
        "anon_mb_fresh": memory["anon"],
        "resident_mb_fresh": memory["total"],
        "idle_cpu_percent": round(100 * idle / IDLE_SECONDS, 2),
    }


def _round(clusters: Sequence[Cluster], count: int, seconds: float) -> dict[str, float]:
    """Send to the first `count` brokers at the same time; return sums and CPU time per message."""
    busy, idle = clusters[:count], clusters[count:]
    scenario = replace(LOAD, connections=LOAD.connections // count)
    cpu = max(os.sched_getaffinity(0))
    os.sync()
    for each in idle:
        each.broker.pause()
    try:
        before = sum(each.broker.cpu_seconds() for each in busy)
        loads = [begin(scenario, each.broker_addr, seconds=seconds) for each in busy]
        for load in loads:
            load.pin(cpu)
        found = [load.figures() for load in loads]
        used = sum(each.broker.cpu_seconds() for each in busy) - before
    finally:
        for each in idle:
            each.broker.resume()
    messages = sum(each["messages"] for each in found)
    return {
        "per_second": sum(each["rate"] for each in found),
        "cpu_us_per_message": used * 1e6 / max(1, messages),
        "p99_us": max(each["latency_us"]["p99"] for each in found),
    }
