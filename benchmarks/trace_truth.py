"""`make trace-truth`: compare lakes with a world of known truth.

A seeded world (`benchmarks.trace_world`) writes its traces into a store folder. Three modes bring
the traces into lakes, and each lake must have exactly the known counts, and percentiles within 1 %:

    batch    one run of the job over the store folder, without a broker
    stream   `ingest --follow` from a broker with the store folder
    kill     runs of `ingest` from the broker, killed at random points, and a last complete run

Exit code 0 when all lakes are right.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.processes import Cluster, running
from benchmarks.trace_check import differences
from benchmarks.trace_store import fill
from benchmarks.trace_world import HOUR_MS, LIMITS, RECORDS_PER_MESSAGE, World
from core_broker.client import AdminClient, SubscriptionGroupConfig
from trace.lake import Lake, LakeError

ROOT = Path(__file__).resolve().parents[1]
HOURS = 6
MODES = ("batch", "stream", "kill")
STREAM_SECONDS_MAX = 1800.0
LINES_BEFORE_KILL_MAX = 12


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    records: int
    seed: int
    #: Killed runs before the last run.
    kills: int
    #: Modes to run; all when empty.
    only: tuple[str, ...]
    #: Spark master.
    master: str


@click.command(context_settings={"show_default": True})
@click.option("--records", type=int, default=5_000_000, help="Minimum number of trace records.")
@click.option("--seed", type=int, default=20261121, help="Seed of the world.")
@click.option("--kills", type=int, default=4, help="Killed runs before the last run.")
@click.option(
    "--only", type=click.Choice(MODES), multiple=True, help="Run this mode only; repeatable."
)
@click.option("--master", default="local[2]", help="Spark master.")
def main(**options: Any) -> None:
    """Compare lakes with a world of known truth; exit code 0 when all lakes are right."""
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        sys.exit(run(folder, Options(**options)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, options: Options) -> int:
    """Create the world and the lakes; reports differences. Returns the exit code."""
    world = make_world(options.seed, options.records)
    began = time.monotonic()
    fill(folder / "store", world)
    truth = world.truth
    say(f"{truth.records:,} records in {truth.bodies:,} messages", began)
    modes: dict[str, Callable[[Path, Path, Options, World], None]] = {
        "batch": batch,
        "stream": stream,
        "kill": kill,
    }
    is_right = True
    for name in options.only or MODES:
        began = time.monotonic()
        lake = folder / f"lake-{name}"
        modes[name](folder, lake, options, world)
        wrong = differences(lake, truth)
        say(f"{name}: {'right' if not wrong else 'WRONG'}", began)
        print(*(f"    {line}" for line in wrong), sep="\n", end="\n" if wrong else "")
        is_right = is_right and not wrong
        shutil.rmtree(lake)
    return 0 if is_right else 1


def make_world(seed: int, records: int) -> World:
    """A world with at least `records` records, over the last hours."""
    begin_ms = (time.time_ns() // 1_000_000 // HOUR_MS - HOURS - 1) * HOUR_MS
    return World(seed, -(-records // int(RECORDS_PER_MESSAGE)), begin_ms, HOURS * HOUR_MS)


def batch(folder: Path, lake: Path, options: Options, _: World) -> None:
    """One run over the store folder."""
    limits = [f"--retry-times-max={group}={times}" for group, times in LIMITS.items()]
    source = ["--store", str(folder / "store"), *limits]
    subprocess.run(command(folder, lake, options, source), check=True, cwd=ROOT)


def stream(folder: Path, lake: Path, options: Options, world: World) -> None:
    """Follow the topic until the lake is complete."""
    with serving(folder) as cluster:
        source = ["-n", cluster.namesrv_addr, "--follow", "1", "--messages-per-round", "50000"]
        with subprocess.Popen(
            command(folder, lake, options, source), cwd=ROOT, start_new_session=True
        ) as job:
            deadline = time.monotonic() + STREAM_SECONDS_MAX
            while not is_complete(lake, world.truth.bodies):
                if job.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(
                        "the lake of the stream is incomplete after STREAM_SECONDS_MAX"
                    )
                time.sleep(1)
            os.killpg(job.pid, signal.SIGKILL)


def kill(folder: Path, lake: Path, options: Options, world: World) -> None:
    """Kill runs after a random number of output lines, then let a run finish."""
    luck = random.Random(options.seed)
    with serving(folder) as cluster:
        rounds = str(world.truth.bodies // 5 + 1)
        source = ["-n", cluster.namesrv_addr, "--messages-per-round", rounds]
        for _ in range(options.kills):
            kill_after(
                command(folder, lake, options, source), luck.randint(2, LINES_BEFORE_KILL_MAX)
            )
        subprocess.run(command(folder, lake, options, source), check=True, cwd=ROOT)


def kill_after(arguments: Sequence[str], lines: int) -> None:
    """Start a job and kill it after `lines` lines of output."""
    with subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        assert job.stdout is not None
        for number, line in enumerate(job.stdout, 1):
            if number == lines:
                say(f"    killed at: {line.strip()}", None)
                os.killpg(job.pid, signal.SIGKILL)


def command(folder: Path, lake: Path, options: Options, source: Sequence[str]) -> list[str]:
    """The command line of the job."""
    return [
        *(sys.executable, "-m", "spark_jobs", "ingest", *source, "--lake", str(lake)),
        *("--run-dir", str(folder / "run"), "--master", options.master),
        *("--conf", "spark.ui.enabled=false"),
    ]


@contextmanager
def serving(folder: Path, settings: str = "") -> Iterator[Cluster]:
    """A broker on the store folder, with the groups of the world."""

    async def create_groups(cluster: Cluster) -> None:
        async with AdminClient(cluster.namesrv_addr) as admin:
            for group, times in LIMITS.items():
                wanted = SubscriptionGroupConfig(group_name=group, retry_max_times=times)
                await admin.create_group(cluster.broker_addr, wanted)

    with running(folder, f"traceTopicEnable=true\n{settings}") as cluster:
        asyncio.run(create_groups(cluster))
        yield cluster


def is_complete(lake: Path, messages: int) -> bool:
    """Whether the lake has all messages and all tables."""
    try:
        snapshot = Lake(lake).snapshot()
    except LakeError:
        return False
    is_derived = not snapshot.pending and not any(snapshot.stale.values())
    return snapshot.messages >= messages and is_derived


def say(line: str, began: float | None) -> None:
    """Report a step and its duration."""
    took = "" if began is None else f"  ({time.monotonic() - began:.0f} s)"
    print(line + took, flush=True)


if __name__ == "__main__":
    main()
