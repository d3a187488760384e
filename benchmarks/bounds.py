"""`.venv/bin/python -m benchmarks.bounds`: the broker beside servers that do less.

    null      receives requests and sends fixed answers (null_loop.c): the rate of the system's TCP
              with one server thread and this load generator
    thread    the null server, with the flushes in a thread, as in Gantry
    copy      the null server, with one copy of each message through a mapped file
    bare      the broker's kernel under a bare loop in C (bare.py): a broker without Python code
    broker    Gantry

No broker with one thread exceeds the null server, so the null server bounds a ratio to a peer. All
servers of a load run side by side with their files on a memory file system where available (the
disk is under test with SYNC_FLUSH only), and get the same number of messages from the same
generator. The servers alternate, and the order changes every round. The results are medians, and
the ratio is the median of the ratios of all rounds.

When the generator uses more CPU than a server, the server waits for the generator, and CPU time per
message is the better measure.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import click

from benchmarks.bare import BUILD, compile_loop, running_bare
from benchmarks.load import MESSAGES_MAX, SCENARIOS, Scenario, run
from benchmarks.null_loop import Answer, Flushing, pull_answer, running_null, send_answer
from benchmarks.processes import Measured, running

NULL: Final = "null"
THREAD: Final = "thread"
COPY: Final = "copy"
BARE: Final = "bare"
BROKER: Final = "broker"
ROUNDS: Final = 7
RUN_SECONDS_MAX: Final = 60
OFFERED_SECONDS: Final = 4
#: Memory file system.
MEMORY: Final = Path("/dev/shm")
SYNC: Final = "flushDiskType=SYNC_FLUSH\n"
#: Messages that pulls read; the log of the bare loop must not wrap.
BACKLOG_MESSAGES: Final = 150_000


class Load(NamedTuple):
    """One load, and the servers that get the load."""

    scenario: Scenario
    #: Messages per server and round, one or two seconds of load.
    messages: int
    servers: tuple[str, ...] = (NULL, COPY, BARE, BROKER)
    #: Messages stored first.
    backlog: int = 0
    #: The disk has each message before its answer.
    is_sync: bool = False
    #: At a given rate, in an open loop.
    is_offered: bool = False


LOADS: Final = {
    "send-64x1": Load(SCENARIOS["send-64x1"], 200_000),
    "send-1x64": Load(SCENARIOS["send-1x64"], 400_000),
    "send-16x16": Load(SCENARIOS["send-16x16"], 400_000),
    "batch-32": Load(SCENARIOS["batch-32"], 400_000),
    "pull-32": Load(SCENARIOS["pull-32"], 2_000_000, backlog=BACKLOG_MESSAGES),
    "sync-64x1": Load(SCENARIOS["send-64x1"], 60_000, (NULL, THREAD, BROKER), is_sync=True),
    "offered": Load(SCENARIOS["send-64x1"], MESSAGES_MAX, (NULL, BROKER), is_offered=True),
}
NAMES: Final = tuple(LOADS)
#: The loads of the comparison with peers.
COMPARED: Final = tuple(name for name in NAMES if name != "send-16x16")


class Figures(NamedTuple):
    """The metrics of one run."""

    #: Messages per second.
    rate: float
    #: CPU time of server and generator per message, µs; `generator_own_us` without the system's.
    cpu_us: float
    generator_us: float
    generator_own_us: float
    #: Shares of a core, %.
    cpu_share: float
    generator_share: float
    p99_us: float


def measure(server: Measured, load: Load, addr: str, rate: int = 0) -> Figures:
    """Run the load generator against a server once."""
    before = server.cpu_seconds()
    seconds = OFFERED_SECONDS if load.is_offered else RUN_SECONDS_MAX
    figures = run(load.scenario, addr, seconds=seconds, messages_max=load.messages, rate=rate)
    cpu_s, count = server.cpu_seconds() - before, max(1, figures["messages"])
    generator_s, own_s = figures["generator_cpu_seconds"], figures["generator_own_seconds"]
    return Figures(
        rate=figures["rate"],
        cpu_us=cpu_s * 1e6 / count,
        generator_us=generator_s * 1e6 / count,
        generator_own_us=own_s * 1e6 / count,
        cpu_share=cpu_s * 100 / figures["seconds"],
        generator_share=generator_s * 100 / figures["seconds"],
        p99_us=figures["latency_us"]["p99"],
    )


def compare(
    folder: Path,
    rounds: int = ROUNDS,
    names: Sequence[str] = NAMES,
    offered_rate: int = 0,
) -> dict[str, Any]:
    """Measure the servers of each load alternately; without a rate, no load has an open loop."""
    compile_loop()
    return {
        name: _compare(folder, name, rounds, offered_rate if LOADS[name].is_offered else 0)
        for name in names
        if offered_rate or not LOADS[name].is_offered
    }


def _compare(folder: Path, name: str, rounds: int, rate: int) -> dict[str, Any]:
    load = LOADS[name]
    home = MEMORY if os.access(MEMORY, os.W_OK) and not load.is_sync else folder
    runs: dict[str, list[Figures]] = {kind: [] for kind in load.servers}
    with _running(name, load, home) as servers:
        for _, addr in [servers[kind] for kind in (BARE, BROKER) if load.backlog]:
            batches = SCENARIOS["batch-32"]
            run(batches, addr, seconds=RUN_SECONDS_MAX, messages_max=load.backlog)
        for number in range(rounds + 1):
            for kind in reversed(load.servers) if number % 2 else load.servers:
                server, addr = servers[kind]
                figures = measure(server, load, addr, rate)
                if number:  # the first round is a warm-up
                    runs[kind].append(figures)
    found: dict[str, Any] = {
        kind: {
            field: round(median(getattr(each, field) for each in all_of_it), 2)
            for field in Figures._fields
        }
        for kind, all_of_it in runs.items()
    }
    return {"files_in": str(home), **_ratio_to_bare(runs), **found}


def _ratio_to_bare(runs: dict[str, list[Figures]]) -> dict[str, float]:
    if BARE not in runs:
        return {}
    pairs = list(zip(runs[BROKER], runs[BARE], strict=True))
    ratios = [mine.rate / bare.rate for mine, bare in pairs]
    return {
        "ratio": round(median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
        "cpu_ratio": round(median(bare.cpu_us / mine.cpu_us for mine, bare in pairs), 2),
    }


@contextmanager
def _running(name: str, load: Load, home: Path) -> Iterator[dict[str, tuple[Measured, str]]]:
    """Start the servers of a load, each with a folder of its own."""
    with ExitStack() as stack:

        def new_folder() -> Path:
            return Path(stack.enter_context(tempfile.TemporaryDirectory(dir=home)))

        def server(kind: str) -> tuple[Measured, str]:
            if kind == BARE:
                return stack.enter_context(running_bare(new_folder()))
            if kind == BROKER:
                settings = SYNC if load.is_sync else ""
                cluster = stack.enter_context(running(new_folder(), settings))
                return cluster.broker, cluster.broker_addr
            log = new_folder() if kind == COPY or load.is_sync else None
            by_loop: Flushing = "loop" if load.is_sync else "later"
            flushing = "thread" if kind == THREAD else by_loop
            return stack.enter_context(running_null(_answer(name), log, flushing=flushing))

        yield {kind: server(kind) for kind in load.servers}


def _answer(name: str) -> Answer:
    if name == "pull-32":
        return pull_answer()
    return send_answer(SCENARIOS["batch-32"].template(0).messages if name == "batch-32" else 1)


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The results as text lines."""
    for name, each in figures.items():
        for kind in LOADS[name].servers:
            server = each[kind]
            yield (
                f"{name:<12}{kind:<8}{server['rate']:>10,.0f}/s {server['cpu_us']:>6.2f} us,"
                f" {server['cpu_share']:>3.0f} % of a core; generator"
                f" {server['generator_us']:>5.2f} us ({server['generator_own_us']:.2f} its own),"
                f" {server['generator_share']:>3.0f} %; p99 {server['p99_us']:,.0f} us"
            )
        if "ratio" in each:
            yield (
                f"{name:<12}broker / bare {each['ratio']:.2f}"
                f" [{each['ratio_min']:.2f}..{each['ratio_max']:.2f}], of CPU"
                f" {each['cpu_ratio']:.2f}"
            )


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=int, default=ROUNDS)
@click.option("--only", type=click.Choice(NAMES), multiple=True, help="Repeatable; default: all.")
@click.option("--rate", type=int, default=0, help="Requests per second of the load `offered`.")
def main(rounds: int, only: tuple[str, ...], rate: int) -> None:
    """Measure all servers alternately and print rates, CPU time and ratios."""
    BUILD.mkdir(parents=True, exist_ok=True)
    figures = compare(BUILD, rounds, only or NAMES, rate)
    sys.stdout.write("\n".join((*lines(figures), json.dumps(figures))) + "\n")


if __name__ == "__main__":
    main()
