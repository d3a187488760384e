"""`make bench`: measure the broker from outside and its store alone; writes a table and bench.json.

The load generator is a process of its own. CPU time is that of the broker alone, from /proc. Data
lie on disk under ./var/bench and are removed afterwards. Figures, not assertions: the exit code is
0 unless something breaks.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import store
from benchmarks.load import MESSAGES_MAX, SCENARIOS, VARIANTS, run
from benchmarks.machine import facts
from benchmarks.processes import Cluster, running

ROOT = Path(__file__).resolve().parents[1]
STARTS = 5
# What the foundation promises; shown beside the figures.
AIMS = {
    "send-64x1": "at least 20,000/s",
    "start": "under 1.5 s",
    "memory": "under 150 MB",
}


def main() -> None:
    """Run all scenarios, or those that the command line names."""
    options = parse_options()
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    began = time.perf_counter()
    try:
        figures = {"machine": facts(folder), **measure(folder, options)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures["seconds"] = round(time.perf_counter() - began, 1)
    options.json.write_text(json.dumps(figures, indent=2) + "\n")
    print_table(figures)
    print(f"\nwritten to {options.json}")


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="per scenario (%(default)s)")
    parser.add_argument(
        "--messages",
        type=int,
        default=1_000_000,
        help="messages stored before memory is read (%(default)s)",
    )
    choices = [*SCENARIOS, *VARIANTS, "start", *store.SCENARIOS]
    parser.add_argument("--only", choices=choices, nargs="+", help="leave others out")
    store.add_options(parser)
    parser.add_argument("--json", type=Path, default=ROOT / "bench.json", help="(%(default)s)")
    return parser.parse_args()


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures that are asked for."""
    wanted = set(options.only or [*SCENARIOS, *VARIANTS, "start", *store.SCENARIOS])
    figures: dict[str, Any] = {"scenarios": {}}
    if "start" in wanted:
        figures["start"] = measure_start(folder)
    if not wanted.isdisjoint(SCENARIOS):
        figures |= measure_broker(folder, wanted, options)
    for name, (asked, settings) in VARIANTS.items():
        if name in wanted:
            data = folder / name
            data.mkdir()
            with running(data, settings) as cluster:
                say(name)
                figures["scenarios"][name] = load(cluster, asked, MESSAGES_MAX, options.seconds)
            shutil.rmtree(data)
    figures["store"] = {
        name: measure_store(name, folder / name, options)
        for name in store.SCENARIOS
        if name in wanted
    }
    return figures


def measure_broker(folder: Path, wanted: set[str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a running broker."""
    figures: dict[str, Any] = {"scenarios": {}}
    data = folder / "data"
    data.mkdir()
    with running(data) as cluster:
        figures["memory_fresh_mb"] = memory(cluster)
        stored = 0
        for name in ("send-64x1", "send-1x64", "send-16x16", "batch-32"):
            if name in wanted:
                say(name)
                figures["scenarios"][name] = load(cluster, name, MESSAGES_MAX, options.seconds)
                stored += figures["scenarios"][name]["messages"]
        if stored < options.messages:
            say(f"storing {options.messages - stored:,} more messages")
            stored += load(cluster, "batch-32", options.messages - stored, 600)["messages"]
        figures["memory_mb"] = {"after_messages": stored, **memory(cluster)}
        for name in ("pull-32", "topics-1000"):
            if name in wanted:
                say(name)
                figures["scenarios"][name] = load(cluster, name, MESSAGES_MAX, options.seconds)
    return figures


def measure_store(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run one scenario of the store in a process of its own."""
    say(name)
    command = ["-m", "benchmarks.store", name, str(folder), "--seconds", str(options.seconds)]
    command += ["--log-mib", str(options.log_mib), "--keys", str(options.keys)]
    done = subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True)
    shutil.rmtree(folder, ignore_errors=True)
    if done.returncode != 0:
        raise SystemExit(f"{name} broke:\n{done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure_start(folder: Path) -> dict[str, float]:
    """Start both processes on empty folders several times."""
    say(f"starting {STARTS} times")
    both, namesrv = [], []
    for number in range(STARTS):
        empty = folder / f"start-{number}"
        empty.mkdir()
        with running(empty) as cluster:
            both.append(cluster.start_seconds)
            namesrv.append(cluster.namesrv.start_seconds)
    return {
        "median_seconds": round(median(both), 3),
        "max_seconds": round(max(both), 3),
        "namesrv_median_seconds": round(median(namesrv), 3),
    }


def load(cluster: Cluster, name: str, messages: int, seconds: float) -> dict[str, Any]:
    """Run the load generator once, and add what it cost the broker."""
    before = cluster.broker.cpu_seconds()
    figures = run(SCENARIOS[name], cluster.broker_addr, seconds=seconds, messages_max=messages)
    cpu = cluster.broker.cpu_seconds() - before
    figures["broker_cpu_us_per_message"] = round(cpu * 1e6 / max(1, figures["messages"]), 2)
    figures["broker_cpu_share"] = round(cpu / figures["seconds"], 2)
    return figures


def memory(cluster: Cluster) -> dict[str, dict[str, float]]:
    """Return the resident memory of both processes and of both together."""
    each = {"namesrv": cluster.namesrv.memory_mb(), "broker": cluster.broker.memory_mb()}
    both = {
        kind: round(sum(process[kind] for process in each.values()), 1)
        for kind in ("anon", "file", "total")
    }
    return {**each, "both": both}


def print_table(figures: dict[str, Any]) -> None:
    """Print what bench.json says, for people."""
    if "scenarios" in figures:
        print_scenarios(figures["scenarios"])
    if "start" in figures:
        start = figures["start"]
        print(f"\nstart of name server and broker: {start['median_seconds']} s ({AIMS['start']})")
    if "memory_mb" in figures:
        print_memory(figures)
    if figures["store"]:
        print("\nstore alone")
    for name, each in figures["store"].items():
        for line in store.lines(name, each):
            print(f"{name:<20}{line}")


def print_scenarios(scenarios: dict[str, Any]) -> None:
    """Print what a broker did under load."""
    print(
        f"\n{'scenario':<12}{'msg/s':>10}{'us/msg':>9}{'p50 us':>9}{'p99 us':>9}{'broker':>8}  aim"
    )
    for name, each in scenarios.items():
        latency = each["latency_us"]
        print(
            f"{name:<12}{each['rate']:>10,}{each['broker_cpu_us_per_message']:>9}"
            f"{latency['p50']:>9,}{latency['p99']:>9,}{each['broker_cpu_share']:>8.0%}"
            f"  {AIMS.get(name, '')}"
        )


def print_memory(figures: dict[str, Any]) -> None:
    """Print what both processes took."""
    print(f"\n{'memory, MB':<36}{'anon':>8}{'file':>8}{'total':>8}")
    stored = figures["memory_mb"]["after_messages"]
    for title, memories in (
        ("at the start", figures["memory_fresh_mb"]),
        (f"after {stored:,} messages", figures["memory_mb"]),
    ):
        for process in ("namesrv", "broker", "both"):
            each = memories[process]
            aim = f"  {AIMS['memory']}" if process == "both" and title != "at the start" else ""
            print(
                f"{title + ', ' + process:<36}{each['anon']:>8}{each['file']:>8}"
                f"{each['total']:>8}{aim}"
            )


def say(line: str) -> None:
    """Tell on the error output what is going on."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
