"""`make bench-peers`: Gantry beside Apache RocketMQ, alternating on one machine in one run.

Each scenario runs on the brokers in turn, several rounds; the comparison uses medians without the
first round. All brokers but the measured one are stopped (SIGSTOP) meanwhile. The JVMs get a
warm-up, and each measurement starts without free memory (ballast.py). Writes bench-peers.json,
prints the ratios, and renders docs/performance.md.

    load scenarios      64 x 1, 1 x 64, batches of 32, pulls of 32; 1 KiB; closed loop
    offered load        latencies at half the rate of Java 5.3 with 64 x 1; open loop
    Java client         64 threads with a shared producer, then a consumer of the backlog
    memory              after ten million messages; name server and broker, without page cache
    SYNC_FLUSH          64 x 1, with separate brokers
    access control      signed sends, 64 x 1 and 1 x 64, without and with TLS, with separate brokers
    TLS                 64 x 1 and 1 x 64, with separate brokers
    bare loop           64 x 1, Gantry alone beside its kernel under a loop in C (bare.py)

With --only, only the ratios of these parts are printed, and docs/performance.md stays.
"""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from benchmarks import bare, java_clients, page
from benchmarks.access import (
    ACL_1,
    ACL_2,
    ACL_2_LINES,
    PLAIN_ACL,
    check_access_control,
    create_account,
    sign_as_admin,
)
from benchmarks.ballast import PAGE_BYTES, Ballast
from benchmarks.java_brokers import running_java
from benchmarks.load import SCENARIOS, SIGNED, TLS, TLS_SIGNED, Scenario
from benchmarks.machine import facts
from benchmarks.measuring import measure
from benchmarks.processes import Cluster, alone, running
from benchmarks.requests import batch_template, send_template
from tests.compat.installing import JAVA_BROKER_VERSIONS, CannotInstall

ROOT: Final = Path(__file__).resolve().parents[1]
OURS, PLAIN = "gantry", "gantry-plain"
JAVA_VERSIONS: Final = {f"java-{version}": version for version in JAVA_BROKER_VERSIONS}
OLD, NEW = JAVA_VERSIONS
STARTS: Final = 3
FREE_BYTES_MIN: Final = 28 * 1024**3
MEMORY_MESSAGES: Final = 10_000_000
#: Maximum messages of a batch run: more would exceed the page cache and fill the disk.
MESSAGES_OF_A_RUN: Final = 700_000
SMALL_BYTES: Final = 128
WARM_UP: Final = (
    (Scenario(64, 1, lambda number: send_template(number, body_bytes=SMALL_BYTES)), 0.4),
    (Scenario(1, 64, lambda number: send_template(number, body_bytes=SMALL_BYTES)), 0.25),
    (SCENARIOS["batch-32"], 0.1),
    (SCENARIOS["pull-32"], 0.25),
)
FILLING: Final = Scenario(16, 1, lambda number: batch_template(number, 32, SMALL_BYTES))
COMPARED: Final = ("send-64x1", "send-1x64", "batch-32", "pull-32")
SYNC: Final[dict[str, Any]] = {"flush_disk_type": "SYNC_FLUSH"}
ALL_SCENARIOS: Final = SCENARIOS | SIGNED | TLS | TLS_SIGNED
#: Parts of the benchmark, in order.
PARTS: Final = ("starts", "main", "sync", "signed", "tls", "bare-loop")

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a measurement."""

    #: Duration of a run.
    seconds: float
    #: Rounds of each scenario.
    rounds: int
    warm_up_seconds: float
    #: Duration of a run of the Java client.
    client_seconds: int
    #: Messages stored before the memory is measured.
    messages: int
    #: Each measurement starts without free memory (ballast.py).
    fill_memory: bool


@click.command(context_settings={"show_default": True})
@click.option("--seconds", type=float, default=4, help="Duration of a run.")
@click.option("--rounds", type=int, default=3, help="Rounds of each scenario.")
@click.option("--warm-up", "warm_up_seconds", type=float, default=60, help="Seconds.")
@click.option("--client-seconds", type=int, default=40, help="Duration of a Java client's run.")
@click.option(
    "--messages", type=int, default=MEMORY_MESSAGES, help="Messages before memory is measured."
)
@click.option(
    "--fill-memory/--no-fill-memory", default=True, help="Fill free memory before each run."
)
@click.option(
    "--only", type=click.Choice(PARTS), multiple=True, help="Run this part only; repeatable."
)
@click.option("--home", type=click.Path(path_type=Path), default=ROOT / "var" / "bench")
@click.option(
    "--json", "output", type=click.Path(path_type=Path), default=ROOT / "bench-peers.json"
)
@click.option(
    "--page",
    "page_path",
    type=click.Path(path_type=Path),
    default=ROOT / "docs" / "performance.md",
)
def main(home: Path, output: Path, page_path: Path, only: tuple[str, ...], **given: Any) -> None:
    """Measure Gantry beside Apache RocketMQ; writes the results and docs/performance.md."""
    options = Options(**given)
    home.mkdir(parents=True, exist_ok=True)
    if not only and shutil.disk_usage(home).free < FREE_BYTES_MIN:
        sys.exit(f"Less than 28 GiB are free below {home}; set --home to a folder with more space.")
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        figures: Figures = {"machine": facts(folder), "options": asdict(options)}
        with closing(Ballast(folder)) as ballast:
            figures |= parts(folder, set(only or PARTS), options, ballast)
    except CannotInstall as reason:
        sys.exit(f"Java's brokers cannot be installed: {reason}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    output.write_text(json.dumps(figures, indent=2) + "\n")
    written = str(output)
    if not only:
        page_path.write_text(page.render(figures))
        written += f" and {page_path}"
    print(page.ratios(figures))
    print(f"\nwritten to {written}")


def parts(folder: Path, wanted: set[str], options: Options, ballast: Ballast) -> Figures:
    """The results of the wanted parts."""
    figures: Figures = {"free_page_us": fill(ballast)} if options.fill_memory else {}
    if "starts" in wanted:
        figures["start_seconds"] = starts(folder / "starts")
    if "main" in wanted:
        figures |= side_by_side(folder / "main", options, ballast)
    if "sync" in wanted:
        figures |= synchronous(folder / "sync", options, ballast)
    if "signed" in wanted:
        figures["signed"] = signed(folder / "signed", options, ballast)
    if "tls" in wanted:
        figures["tls"] = tls(folder / "tls", options, ballast)
    if "bare-loop" in wanted:
        say("the kernel under a bare loop")
        if options.fill_memory:
            ballast.fill()
        figures["bare_loop"] = bare.compare(folder, names=["send-64x1"])["send-64x1"]
    return figures


def fill(ballast: Ballast) -> float:
    """Fill all free memory; returns the cost per page, µs."""
    say("filling the memory")
    began = time.perf_counter()
    pages = ballast.fill() / PAGE_BYTES
    return round((time.perf_counter() - began) * 1e6 / pages, 1)


def starts(folder: Path) -> dict[str, float]:
    """Seconds from the start of name server and broker to ready, for each broker; medians."""
    say(f"starting each {STARTS} times")
    seconds: dict[str, list[float]] = {OURS: [], PLAIN: [], OLD: [], NEW: []}
    for number in range(STARTS):
        for who, each in seconds.items():
            with _started(who, _new(folder, f"{who}-{number}")) as cluster:
                each.append(cluster.start_seconds)
    shutil.rmtree(folder)
    return {who: round(median(each), 2) for who, each in seconds.items()}


def _started(who: str, folder: Path) -> AbstractContextManager[Cluster]:
    if who == OURS:
        return running(folder)
    if who == PLAIN:
        return running(folder, "kernelEnable=false\n")
    return running_java(JAVA_VERSIONS[who], folder)


def side_by_side(folder: Path, options: Options, ballast: Ballast) -> Figures:
    """All scenarios with ASYNC_FLUSH."""
    with ExitStack() as stack:
        clusters = {
            who: stack.enter_context(_started(who, _new(folder, who)))
            for who in (OURS, PLAIN, OLD, NEW)
        }
        figures: Figures = {}
        everybody = list(clusters.values())
        for name in (OLD, NEW):
            with alone(clusters[name], everybody):
                warm_up(name, clusters[name], options.warm_up_seconds)
        figures["scenarios"] = {
            name: alternate(
                name,
                {who: each for who, each in clusters.items() if _takes_part(who, name)},
                everybody,
                options,
                ballast,
            )
            for name in COMPARED
        }
        both = {who: clusters[who] for who in (OURS, NEW)}
        rate = int(figures["scenarios"]["send-64x1"][NEW]["rate"] / 2)
        figures["offered"] = alternate("send-64x1", both, everybody, options, ballast, rate)
        figures["java_client"], figures["memory"] = {}, {}
        for who, each in both.items():
            with alone(each, everybody):
                figures["java_client"][who] = clients(who, each, options)
                figures["memory"][who] = memory(who, each, options.messages)
    shutil.rmtree(folder)
    return figures


def synchronous(folder: Path, options: Options, ballast: Ballast) -> Figures:
    """The scenarios with SYNC_FLUSH, on separate brokers."""
    with ExitStack() as stack:
        ours = running(_new(folder, OURS), "flushDiskType=SYNC_FLUSH\n")
        java = running_java(JAVA_BROKER_VERSIONS[-1], _new(folder, NEW), **SYNC)
        clusters = {OURS: stack.enter_context(ours), NEW: stack.enter_context(java)}
        warm_up(f"{NEW} with SYNC_FLUSH", clusters[NEW], options.warm_up_seconds)
        everybody = list(clusters.values())
        figures = {"sync-64x1": alternate("send-64x1", clusters, everybody, options, ballast)}
    shutil.rmtree(folder)
    return figures


def signed(folder: Path, options: Options, ballast: Ballast) -> Figures:
    """Signed sends to brokers with access control, by an account that may send to one topic."""
    with ExitStack() as stack:
        plain_acl = {"plain_acl.yml": PLAIN_ACL}
        clusters = {
            OURS: stack.enter_context(running(_new(folder, OURS), ACL_2_LINES)),
            OLD: stack.enter_context(
                running_java(JAVA_VERSIONS[OLD], _new(folder, OLD), plain_acl, **ACL_1)
            ),
            NEW: stack.enter_context(running_java(JAVA_VERSIONS[NEW], _new(folder, NEW), **ACL_2)),
        }
        sign_as_admin(clusters[OLD])
        for who in (OURS, NEW):
            asyncio.run(create_account(clusters[who]))
        for each in clusters.values():
            check_access_control(each)
        scenarios = SIGNED | TLS_SIGNED
        figures = beside_java("access control", scenarios, clusters, options, ballast)
    shutil.rmtree(folder)
    return figures


def tls(folder: Path, options: Options, ballast: Ballast) -> Figures:
    """Sends with TLS, which all brokers accept with a certificate of their test mode."""
    with ExitStack() as stack:
        clusters = {
            who: stack.enter_context(_started(who, _new(folder, who))) for who in (OURS, OLD, NEW)
        }
        figures = beside_java("TLS", TLS, clusters, options, ballast)
    shutil.rmtree(folder)
    return figures


def beside_java(
    what: str,
    scenarios: dict[str, Scenario],
    clusters: dict[str, Cluster],
    options: Options,
    ballast: Ballast,
) -> Figures:
    """Warm up the JVMs with the scenarios, then measure the scenarios on all clusters."""
    everybody = list(clusters.values())
    for name in (OLD, NEW):
        with alone(clusters[name], everybody):
            say(f"warming up {name} with {what}")
            for scenario in scenarios.values():
                measure(clusters[name], scenario, seconds=max(1, options.warm_up_seconds / 2))
    return {name: alternate(name, clusters, everybody, options, ballast) for name in scenarios}


def alternate(
    name: str,
    clusters: dict[str, Cluster],
    everybody: list[Cluster],
    options: Options,
    ballast: Ballast,
    rate: int = 0,
) -> Figures:
    """Measure the brokers in turn, several rounds; returns medians without the first round.

    The first round pays one-time costs of a scenario: JIT compilation, memory mapping.
    """
    say(f"{name}{f' at {rate:,} a second' if rate else ''}: {', '.join(clusters)}")
    runs: dict[str, list[Figures]] = {who: [] for who in clusters}
    for _ in range(1 + options.rounds):
        for who, cluster in clusters.items():
            with alone(cluster, everybody):
                if options.fill_memory:
                    ballast.fill()
                figures = measure(
                    cluster,
                    ALL_SCENARIOS[name],
                    seconds=options.seconds,
                    messages_max=MESSAGES_OF_A_RUN if name == "batch-32" else 10**12,
                    rate=rate,
                )
            runs[who].append(figures)
    return {who: _medians(each[1:]) for who, each in runs.items()}


def warm_up(name: str, cluster: Cluster, seconds: float) -> None:
    """Let a JVM compile the code of the scenarios."""
    say(f"warming up {name} for {seconds:.0f} s")
    for scenario, share in WARM_UP:
        measure(cluster, scenario, seconds=max(1, seconds * share))


def clients(who: str, cluster: Cluster, options: Options) -> Figures:
    """Run the Java client's producer, then its consumer on the backlog."""
    say(f"the Java client against {who}")
    topic = f"Load{int(time.time())}"
    sent = java_clients.produce(cluster.namesrv_addr, topic, options.client_seconds)
    received = java_clients.consume(cluster.namesrv_addr, topic, options.client_seconds // 2)
    return {"sent_per_second": sent, "received_per_second": received}


def memory(who: str, cluster: Cluster, messages: int) -> Figures:
    """Resident memory after another `messages` messages."""
    say(f"{messages:,} messages into {who}")
    measure(cluster, FILLING, seconds=3_600, messages_max=messages)
    return cluster.memory_mb()


def _takes_part(who: str, scenario: str) -> bool:
    return who != PLAIN or scenario == "send-64x1"


def _medians(runs: list[Figures]) -> Figures:
    return {
        "rate": int(median(each["rate"] for each in runs)),
        "answered_rate": int(median(each["answered_rate"] for each in runs)),
        "cpu_us_per_message": round(median(each["broker_cpu_us_per_message"] for each in runs), 2),
        **{
            f"{name}_us": int(median(each["latency_us"][name] for each in runs))
            for name in ("p50", "p99", "p99.9")
        },
        "rates": [int(each["rate"]) for each in runs],
    }


def _new(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    return path


def say(line: str) -> None:
    """Report progress on stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
