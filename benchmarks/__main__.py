"""`make bench`: measure the broker from outside and its store alone; writes a table and bench.json.

The load generator is a separate process. CPU time is the broker's alone, from /proc. Data lie on
disk under ./var/bench and are removed afterwards. The benchmark measures and asserts nothing: the
exit code is 0 unless a scenario fails.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import bounds, many_peers, store, traces
from benchmarks.access import signed_sends
from benchmarks.brokers import one_per_core
from benchmarks.cold import cold_pull
from benchmarks.load import SCENARIOS, VARIANTS
from benchmarks.machine import facts
from benchmarks.measuring import measure
from benchmarks.mixed import mixed
from benchmarks.processes import running
from benchmarks.tables import print_table

ROOT = Path(__file__).resolve().parents[1]
STARTS = 5
#: Scenarios that start their own brokers: folder and seconds in, metrics out.
OWN = {
    "mixed": mixed,
    "cold-pull": cold_pull,
    "signed": signed_sends,
    "brokers": one_per_core,
    **many_peers.BY_NAME,
}


CHOICES = (*SCENARIOS, *VARIANTS, "start", *OWN, "bounds", "traces", *store.SCENARIOS)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    #: Duration of a scenario.
    seconds: float
    #: Messages stored before the memory is measured.
    messages: int
    #: Scenarios to run; all when empty.
    only: tuple[str, ...]
    #: Log size of store-recovery, MiB.
    log_mib: int
    #: Indexed messages of store-key-query.
    keys: int


@click.command(context_settings={"show_default": True})
@click.option("--seconds", type=float, default=10, help="Duration of a scenario.")
@click.option(
    "--messages", type=int, default=1_000_000, help="Messages stored before memory is measured."
)
@click.option(
    "--only", type=click.Choice(CHOICES), multiple=True, help="Run this scenario only; repeatable."
)
@store.store_options
@click.option("--json", "output", type=click.Path(path_type=Path), default=ROOT / "bench.json")
def main(output: Path, **options: Any) -> None:
    """Run all scenarios, or the scenarios of --only."""
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    began = time.perf_counter()
    try:
        figures = {"machine": facts(folder), **measure_all(folder, Options(**options))}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures["seconds"] = round(time.perf_counter() - began, 1)
    output.write_text(json.dumps(figures, indent=2) + "\n")
    print_table(figures)
    print(f"\nwritten to {output}")


def measure_all(folder: Path, options: Options) -> dict[str, Any]:
    """Run the selected scenarios; returns their metrics."""
    wanted = set(options.only or CHOICES)
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
                figures["scenarios"][name] = measure(
                    cluster, SCENARIOS[asked], seconds=options.seconds
                )
            shutil.rmtree(data)
    figures["own"] = {}
    for name in filter(wanted.__contains__, OWN):
        say(name)
        data = folder / name
        data.mkdir()
        figures["own"][name] = OWN[name](data, options.seconds)
        shutil.rmtree(data)
    if "bounds" in wanted:
        say("bounds")
        figures["bounds"] = bounds.compare(folder)
    if "traces" in wanted:
        say("traces")
        data = folder / "traces"
        data.mkdir()
        figures["traces"] = traces.measure(data)
        shutil.rmtree(data)
    figures["store"] = {
        name: measure_store(name, folder / name, options)
        for name in store.SCENARIOS
        if name in wanted
    }
    return figures


def measure_broker(folder: Path, wanted: set[str], options: Options) -> dict[str, Any]:
    """Run the scenarios on one running broker; returns their metrics."""
    figures: dict[str, Any] = {"scenarios": {}}
    data = folder / "data"
    data.mkdir()
    with running(data) as cluster:
        figures["memory_fresh_mb"] = cluster.memory_mb()
        stored = 0
        for name in ("send-64x1", "send-1x64", "send-16x16", "batch-32"):
            if name in wanted:
                say(name)
                figures["scenarios"][name] = measure(
                    cluster, SCENARIOS[name], seconds=options.seconds
                )
                stored += figures["scenarios"][name]["messages"]
        if stored < options.messages:
            say(f"storing {options.messages - stored:,} more messages")
            left = options.messages - stored
            filling = measure(cluster, SCENARIOS["batch-32"], seconds=600, messages_max=left)
            stored += filling["messages"]
        figures["memory_mb"] = {"after_messages": stored, **cluster.memory_mb()}
        for name in ("pull-32", "topics-1000"):
            if name in wanted:
                say(name)
                figures["scenarios"][name] = measure(
                    cluster, SCENARIOS[name], seconds=options.seconds
                )
    return figures


def measure_store(name: str, folder: Path, options: Options) -> dict[str, Any]:
    """Run one scenario of the store in a separate process."""
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
    """Start name server and broker on empty folders several times."""
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


def say(line: str) -> None:
    """Report progress on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
