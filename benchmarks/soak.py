"""Soak of the console: consoles and workers for hours, with traffic, pages and feeds.

    python -m benchmarks.soak --hours 24

Starts a name server and a broker with the traffic of the demo, two consoles and two workers on
PostgreSQL and Valkey (`tests/support/scaled_console.py`), and opens every page and API list at both
consoles in turn, with two live feeds each. Prints the memory of each process every PRINT_SECONDS.
The exit code is 1 when the memory of a console or worker after the warm-up grows by more than 10 %:
the median of the last tenth against the median of the first tenth after the warm-up, which is a
third of the time, at most WARM_UP_HOURS_MAX. Memory is the proportional set size (PSS). The exit
code is 1, too, when no page was opened or no overview heard for PRINT_SECONDS, since memory
without traffic proves nothing.
"""

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from statistics import median
from typing import Final

import click
import psutil
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from benchmarks.console_pages import pages
from tests.support.cluster import Cluster
from tests.support.console_session import ConsoleSession
from tests.support.scaled_console import PASSWORD, Running, ScaledConsole

TOPIC: Final = "payments"
GROUP: Final = "accounting"
FEEDS: Final = ("jobs", "overview")
SAMPLE_SECONDS: Final = 15.0
PRINT_SECONDS: Final = 300.0
WARM_UP_HOURS_MAX: Final = 2.0
GROWTH_MAX: Final = 0.10
MEBIBYTE: Final = 1 << 20
PAGES: Final = "pages"
#: Visitors that have answers all the time; the feed of jobs speaks only when a job changes.
STEADY: Final = (PAGES, "overview")
#: Wait before a feed that broke is opened again, seconds.
FEED_PAUSE_S: Final = 5.0
#: Time for the first messages, the first members of groups and the first samples.
BEGIN_SECONDS: Final = 45.0


class Memory:
    """PSS of the processes by name, one sample every SAMPLE_SECONDS."""

    def __init__(self, processes: dict[str, Running]) -> None:
        self._programs = {name: psutil.Process(each.pid) for name, each in processes.items()}
        self.samples: dict[str, list[float]] = {name: [] for name in processes}

    def sample(self) -> None:
        """Add a sample of each process; the end of a process is an error."""
        for name, program in self._programs.items():
            family = [program, *program.children(recursive=True)]
            pss = sum(each.memory_full_info().pss for each in family)
            self.samples[name].append(pss / MEBIBYTE)

    def line(self) -> str:
        return "  ".join(f"{name} {found[-1]:.0f}" for name, found in self.samples.items())

    def growth(self, name: str, skipped: int) -> tuple[float, float]:
        """The medians of the first and the last tenth after the warm-up, MiB."""
        found = self.samples[name][skipped:]
        part = max(1, len(found) // 10)
        return median(found[:part]), median(found[-part:])


@click.command(help=__doc__)
@click.option("--hours", default=24.0, show_default=True)
@click.option("--pause", default=0.2, show_default=True, help="Seconds between two pages.")
def main(hours: float, pause: float) -> None:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (home / "cluster").mkdir()
        cluster = stack.enter_context(Cluster(home / "cluster", trace_topic_enable=True))
        scaled = stack.enter_context(ScaledConsole(home / "console", cluster.namesrv_addr))
        stack.enter_context(traffic(cluster.namesrv_addr))
        time.sleep(BEGIN_SECONDS)
        is_over = threading.Event()
        answers: Counter[str] = Counter()
        stack.callback(is_over.set)
        for console in scaled.consoles:
            watch(scaled, console, pause, is_over, answers)
        memory = Memory(named(scaled))
        silent = run(memory, hours, answers)
    sys.exit(verdict(memory, hours) or silent)


def named(scaled: ScaledConsole) -> dict[str, Running]:
    """The measured processes."""
    consoles = {f"console-{n}": each for n, each in enumerate(scaled.consoles, 1)}
    workers = {f"worker-{n}": each for n, each in enumerate(scaled.workers, 1)}
    return {**consoles, **workers, "scheduler": scaled.scheduler}


@contextmanager
def traffic(namesrv_addr: str) -> Iterator[None]:
    """The demo's producer and consumers, in a process."""
    command = [sys.executable, "-m", "console.demo", namesrv_addr]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def watch(
    scaled: ScaledConsole,
    console: Running,
    pause_s: float,
    is_over: threading.Event,
    answers: Counter[str],
) -> None:
    """Start the visitors of a console: one that opens pages, and one for each feed."""
    person = ConsoleSession(console.url, PASSWORD)
    found = pages(
        scaled.home,
        lambda path: person.api("GET", path)[1],
        topic=TOPIC,
        group=GROUP,
    )

    def open_pages() -> None:
        while not is_over.is_set():
            for path in random.sample(found, len(found)):
                try:
                    status = person.ask("GET", path)[0].status
                except (OSError, HTTPException) as error:
                    answers[f"{type(error).__name__} {path}"] += 1
                    continue
                answers["failed" if status >= 500 else PAGES] += 1
                if status >= 500:
                    answers[f"{status} {path}"] += 1
                if is_over.wait(pause_s):
                    return

    def hear(feed: str) -> None:
        address = f"{console.url.replace('http://', 'ws://')}/ws/clusters/local/{feed}"
        cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
        origin, headers = Origin(console.url), {"Cookie": cookie}
        while not is_over.is_set():
            try:
                with connect(
                    address, origin=origin, additional_headers=headers, proxy=None
                ) as socket:
                    receive(socket, feed)
            except (OSError, WebSocketException) as error:
                answers[f"{feed} {type(error).__name__}"] += 1
                is_over.wait(FEED_PAUSE_S)

    def receive(socket: ClientConnection, feed: str) -> None:
        while not is_over.is_set():
            with suppress(TimeoutError):
                socket.recv(timeout=1.0)
                answers[feed] += 1

    threading.Thread(target=open_pages, daemon=True).start()
    for feed in FEEDS:
        threading.Thread(target=hear, args=(feed,), daemon=True).start()


def run(memory: Memory, hours: float, answers: Counter[str]) -> int:
    """Sample the memory until the end, and print it; return the exit code.

    The code is 1 when a kind of visitor had no answer between two prints.
    """
    began = time.monotonic()
    printed = 0.0
    is_silent = False
    before: Counter[str] = Counter()
    while (passed := time.monotonic() - began) < hours * 3600:
        memory.sample()
        if passed >= printed:
            counts = "  ".join(f"{name} {count:,}" for name, count in sorted(answers.items()))
            print(f"{passed / 60:6.0f} min  {memory.line()}  MiB; {counts}", flush=True)
            if printed and (silent := without_answers(before, answers)):
                is_silent = True
                print(f"{' ' * 10} no answer since the last line: {', '.join(silent)}", flush=True)
            before = answers.copy()
            printed += PRINT_SECONDS
        time.sleep(SAMPLE_SECONDS)
    return int(is_silent)


def without_answers(before: Counter[str], answers: Counter[str]) -> list[str]:
    """The kinds of visitors whose count of answers did not grow."""
    return [name for name in STEADY if answers[name] <= before[name]]


def verdict(memory: Memory, hours: float) -> int:
    """Print the growth of each process; return the exit code."""
    warm_up_s = min(hours / 3, WARM_UP_HOURS_MAX) * 3600
    is_grown = False
    for name in memory.samples:
        first, last = memory.growth(name, int(warm_up_s // SAMPLE_SECONDS))
        ratio = last / first - 1
        is_grown |= ratio > GROWTH_MAX
        mark = "  !" if ratio > GROWTH_MAX else ""
        print(f"{name:10} {first:7.1f} -> {last:7.1f} MiB, {ratio:+.1%}{mark}")
    return int(is_grown)


if __name__ == "__main__":
    main()
