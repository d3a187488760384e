"""`make trace-truth`: does the lake say what really happened?

A seeded world (`benchmarks.trace_world`) writes its traces into a store folder. They go into lakes
in three ways, and each lake must have exactly the known counts, and percentiles within 1 %:

    batch    one run of the job over the store folder, without a broker
    stream   `ingest --follow` from a broker that serves the folder
    kill     runs of `ingest` from the broker that are killed at random points, until one ends

Exit code 0 when all lakes are right.
"""

import argparse
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
from pathlib import Path

from benchmarks.processes import Cluster, running
from benchmarks.trace_check import differences
from benchmarks.trace_store import fill
from benchmarks.trace_world import HOUR_MS, LIMITS, RECORDS_PER_MESSAGE, World
from core_broker.client import AdminClient, SubscriptionGroupConfig
from trace.lake import Lake, LakeError

ROOT = Path(__file__).resolve().parents[1]
HOURS = 6
WAYS = ("batch", "stream", "kill")
STREAM_SECONDS_MAX = 1800.0
LINES_BEFORE_KILL_MAX = 12


def main() -> int:
    """Run the ways that the command line names."""
    options = parse_options()
    home = ROOT / "var" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        return run(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace_truth", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="at least (%(default)s)")
    parser.add_argument("--seed", type=int, default=20261121, help="of the world (%(default)s)")
    parser.add_argument("--kills", type=int, default=4, help="before a run may end (%(default)s)")
    parser.add_argument("--only", choices=WAYS, nargs="+", default=WAYS, help="leave others out")
    parser.add_argument("--master", default="local[2]", help="of Spark (%(default)s)")
    return parser.parse_args()


def run(folder: Path, options: argparse.Namespace) -> int:
    """Make the world and the lakes; tells what is wrong."""
    world = make_world(options.seed, options.records)
    began = time.monotonic()
    fill(folder / "store", world)
    truth = world.truth
    say(f"{truth.records:,} records in {truth.bodies:,} messages", began)
    ways: dict[str, Callable[[Path, Path, argparse.Namespace, World], None]] = {
        "batch": batch,
        "stream": stream,
        "kill": kill,
    }
    is_right = True
    for name in options.only:
        began = time.monotonic()
        lake = folder / f"lake-{name}"
        ways[name](folder, lake, options, world)
        wrong = differences(lake, truth)
        say(f"{name}: {'right' if not wrong else 'WRONG'}", began)
        print(*(f"    {line}" for line in wrong), sep="\n", end="\n" if wrong else "")
        is_right = is_right and not wrong
        shutil.rmtree(lake)
    return 0 if is_right else 1


def make_world(seed: int, records: int) -> World:
    """A world with at least so many records, over the last hours."""
    begin_ms = (time.time_ns() // 1_000_000 // HOUR_MS - HOURS - 1) * HOUR_MS
    return World(seed, -(-records // int(RECORDS_PER_MESSAGE)), begin_ms, HOURS * HOUR_MS)


def batch(folder: Path, lake: Path, options: argparse.Namespace, _: World) -> None:
    """One run over the store folder."""
    limits = [f"--retry-times-max={group}={times}" for group, times in LIMITS.items()]
    source = ["--store", str(folder / "store"), *limits]
    subprocess.run(command(folder, lake, options, source), check=True, cwd=ROOT)


def stream(folder: Path, lake: Path, options: argparse.Namespace, world: World) -> None:
    """Follow the topic until everything is in the lake."""
    with serving(folder) as cluster:
        source = ["-n", cluster.namesrv_addr, "--follow", "1", "--messages-per-round", "50000"]
        with subprocess.Popen(
            command(folder, lake, options, source), cwd=ROOT, start_new_session=True
        ) as job:
            deadline = time.monotonic() + STREAM_SECONDS_MAX
            while not is_complete(lake, world.truth.bodies):
                if job.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the stream did not bring everything into the lake")
                time.sleep(1)
            os.killpg(job.pid, signal.SIGKILL)


def kill(folder: Path, lake: Path, options: argparse.Namespace, world: World) -> None:
    """Kill runs after a random number of the lines they say, and let the last one end."""
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
    """Start a job and kill it when it has said so many lines."""
    with subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        assert job.stdout is not None
        for number, line in enumerate(job.stdout, 1):
            if number == lines:
                say(f"    killed at: {line.strip()}", None)
                os.killpg(job.pid, signal.SIGKILL)


def command(
    folder: Path, lake: Path, options: argparse.Namespace, source: Sequence[str]
) -> list[str]:
    """The job as a program."""
    return [
        *(sys.executable, "-m", "spark_jobs", "ingest", *source, "--lake", str(lake)),
        *("--run-dir", str(folder / "run"), "--master", options.master),
        *("--conf", "spark.ui.enabled=false"),
    ]


@contextmanager
def serving(folder: Path, settings: str = "") -> Iterator[Cluster]:
    """A broker on the store folder, that knows the world's groups."""

    async def tell(cluster: Cluster) -> None:
        async with AdminClient(cluster.namesrv_addr) as admin:
            for group, times in LIMITS.items():
                wanted = SubscriptionGroupConfig(group_name=group, retry_max_times=times)
                await admin.create_group(cluster.broker_addr, wanted)

    with running(folder, f"traceTopicEnable=true\n{settings}") as cluster:
        asyncio.run(tell(cluster))
        yield cluster


def is_complete(lake: Path, messages: int) -> bool:
    """Whether all messages are in the lake, and all tables made."""
    try:
        snapshot = Lake(lake).snapshot()
    except LakeError:
        return False
    return snapshot.messages >= messages and not any(snapshot.stale.values())


def say(line: str, began: float | None) -> None:
    """Tell what was done, and how long it took."""
    took = "" if began is None else f"  ({time.monotonic() - began:.0f} s)"
    print(line + took, flush=True)


if __name__ == "__main__":
    sys.exit(main())
