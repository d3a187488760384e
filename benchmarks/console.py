"""`make bench-console`: the console with thousands of topics and groups and 30 days of history.

Starts a complete Gantry in a temporary folder, whose broker has access control with thousands of
users and accounts (`access_load.py`), and fills it (`big_cluster.py`), its history
(`history_load.py`), the labels of all topics and groups (`label_load.py`) and the records of months
(`records_load.py`). Requests every page and API list repeatedly as a signed-in administrator
(`console_pages.py`). Chromium, where installed, measures the first paint. The sampler and the
evaluation of findings and alarms run beside the requests, and at the end alone, one after the other
(`console_workers.py`).

Prints tables beside the targets: p95 under 200 ms, first paint under 1 s, sampler under 5 % of a
core, history under 2 GiB. Downloads (`file`) have no target. The column `cpu` is the CPU time of
the console's process per request: unlike wall time, CPU time holds on a busy machine too. The
benchmark measures and asserts nothing: the exit code is 0 unless a step fails, or no address was
measured.
"""

import asyncio
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import click
import psutil

from benchmarks.access_load import SIGNING, write_access
from benchmarks.big_clients import clients
from benchmarks.big_cluster import Size, send_messages, write_tables
from benchmarks.console_objects import CLUSTER
from benchmarks.console_pages import (
    GROUP,
    LEFT_OUT,
    PAINTED,
    SIGNED_OUT,
    TOPIC,
    check_chosen,
    chosen,
    pages,
)
from benchmarks.console_workers import WORKS
from benchmarks.history_load import DAYS, Load, write_days
from console.services.history.files import FilePlace, path_of
from tests.support.console_session import ConsoleSession
from tests.support.postgres import PostgreSql

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 60
P95_MS_AIM = 200
#: A row has fewer requests than asked for when they take longer: a download of many rows.
ROW_SECONDS_MAX = 20
PAINT_MS_AIM = 1_000
HISTORY_MIB_AIM = 2_048
SAMPLER_PERCENT_AIM = 5
MEBIBYTE = 1 << 20

#: Consume queue files of 1,000 units, since there are tens of thousands of queues. Sends may wait
#: when the machine is busy.
BROKER_CONF = """\
brokerName=broker-a
mappedFileSizeConsumeQueue=20000
traceTopicEnable=true
waitTimeMillsInSendQueue=60000
"""
#: A form of a message.
MESSAGE = {"topic": TOPIC, "type": "normal", "body": "benchmark", "producer_group": "benchmark"}
FIRST_PAINT = """new Promise(tell => new PerformanceObserver(seen => {
  for (const each of seen.getEntriesByName("first-contentful-paint")) tell(each.startTime);
}).observe({type: "paint", buffered: true}))"""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a measurement."""

    #: Requests per page.
    rounds: int
    #: Seconds between two requests.
    pause: float
    #: Whether Gantry keeps running until Ctrl-C.
    stay: bool
    #: Only addresses with this text; all if empty.
    only: str
    #: Seconds of each measurement of the worker's threads; 0 for none.
    worker_seconds: float


@dataclass(frozen=True, slots=True)
class Gantry:
    """A running Gantry."""

    #: Address of the console.
    url: str
    namesrv_addr: str
    broker_addr: str
    #: Password of the user `admin`.
    password: str
    home: Path
    #: Process id of the launcher.
    pid: int
    #: Variables of the console and the worker.
    variables: Mapping[str, str]


@click.command(context_settings={"show_default": True})
@click.option("--topics", type=int, default=Size().topics)
@click.option("--groups", type=int, default=Size().groups)
@click.option("--messages", type=int, default=Size().messages)
@click.option("--users", default=5_000, help="Users of ACL 2.0, and as many accounts of ACL 1.0.")
@click.option("--rounds", type=click.IntRange(2), default=40, help="Requests per page.")
@click.option("--pause", type=float, default=0.1, help="Seconds between two requests.")
@click.option("--stay", is_flag=True, help="Keep Gantry running until Ctrl-C.")
@click.option("--only", default="", help="Only addresses with this text, such as /groups/.")
@click.option("--active", default=0.2, help="Share of the names with traffic in the history.")
@click.option("--worker-seconds", default=120.0, help="Measure sampler and evaluation for N s.")
@click.option("--postgres", is_flag=True, help="Database and history in a PostgreSQL.")
def main(
    topics: int,
    groups: int,
    messages: int,
    users: int,
    active: float,
    postgres: bool,
    **more: Any,
) -> None:
    """Fill a Gantry and measure its console."""
    options = Options(**more)
    size = Size(topics, groups, messages)
    parent = ROOT / "var" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=parent))
    try:
        check_only(home, options.only)
        write_tables(home / "store", size)
        print_history(path_of(home, "local"), Load(min(topics, groups), active))
        with ExitStack() as stack:
            access, signing = write_access(home, users)
            variables = {"CONSOLE_CLUSTER_CREDENTIALS": f"local={signing}"}
            if postgres:
                variables["DATABASE_URL"] = stack.enter_context(PostgreSql()).url
            gantry = stack.enter_context(
                running(home, "--no-worker", settings=access, variables=variables)
            )
            if postgres:
                run_beside(gantry, "history_import", home, "local")
            run_beside(gantry, "label_load", topics, groups)
            run_beside(gantry, "records_load", GROUP, TOPIC)
            asyncio.run(fill_and_measure(gantry, size, options))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run_beside(gantry: Gantry, module: str, *arguments: object) -> None:
    """Run a program of the benchmarks with the database of the console."""
    subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **gantry.variables, "GANTRY_HOME": str(gantry.home)},
        check=True,
    )


def check_only(home: Path, text: str) -> None:
    """Refuse an option `--only` that selects nothing, before minutes of work."""
    try:
        check_chosen(home, text)
    except ValueError as fault:
        raise click.BadParameter(str(fault), param_hint="--only") from fault


def print_history(path: Path, load: Load) -> None:
    """Write 30 days of history and print their size."""
    began = time.perf_counter()
    store = FilePlace(path).writer()
    used = write_days(store, load, time.time_ns() // 1_000_000)
    store.close()
    took = time.perf_counter() - began
    aim = f"aim: under {HISTORY_MIB_AIM:,} MiB"
    print(f"{DAYS} days of history: {used / MEBIBYTE:,.0f} MiB ({aim}), written in {took:.0f} s")


async def fill_and_measure(gantry: Gantry, size: Size, options: Options) -> None:
    """Send the messages, connect the clients, and request every page."""
    began = time.perf_counter()
    await send_messages(gantry.broker_addr, size, SIGNING)
    print(f"{size.messages:,} messages sent in {time.perf_counter() - began:.0f} s")
    async with clients(gantry.broker_addr, size, SIGNING):
        with working(gantry, *WORKS):
            await asyncio.to_thread(measure, gantry, options)
        print(f"\n aim: sampler under {SAMPLER_PERCENT_AIM} % of a core")
        for name in WORKS if options.worker_seconds else ():
            with working(gantry, name):
                await asyncio.sleep(options.worker_seconds)
        if options.stay:
            print(f"{gantry.url}  admin / {gantry.password}", flush=True)
            await asyncio.Event().wait()


def measure(gantry: Gantry, options: Options) -> None:
    """Print response and CPU times of the pages, and their first paint in Chromium."""
    session = ConsoleSession(gantry.url, gantry.password)
    console = program(gantry.pid, "uvicorn")
    print(f"\n{'ms':>9} {'p50':>7} {'p95':>7} {'max':>7} {'cpu':>7}   p95 under {P95_MS_AIM} ms")
    session.post(f"{CLUSTER}/messages/send/", MESSAGE)  # the page of sent messages shows it
    found = chosen(pages(gantry.home, lambda path: session.api("GET", path)[1]), options.only)
    stranger = ConsoleSession.with_cookies(gantry.url, {})
    unmeasured = [
        path
        for path in found
        if not print_times(stranger if path in SIGNED_OUT else session, console, path, options)
    ]
    print(f"\nnot measured, because the answer is no 200: {' '.join(unmeasured) or 'none'}")
    print("left out:", *(f"\n  {name}: {reason}" for name, reason in LEFT_OUT.items()))
    if len(unmeasured) == len(found):
        raise click.ClickException("no address was measured")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("\nno Chromium on the path: first paint is not measured")
        return
    print(f"\n first paint, ms; aim: under {PAINT_MS_AIM}")
    painted = chosen(PAINTED, options.only)
    for path, painted_ms in first_paints(browser, gantry.url, session.cookies, painted):
        print(f"{painted_ms:9.0f}   {path}", flush=True)


def print_times(
    session: ConsoleSession, console: psutil.Process, path: str, options: Options
) -> bool:
    """Print the times of one address; return False for an answer that is no 200."""
    first_ms, response = timed(session, path, 0)
    if response.status != HTTPStatus.OK:
        return False
    before_s, until_s = cpu_seconds(console), time.monotonic() + ROW_SECONDS_MAX
    times: list[float] = []
    while len(times) < options.rounds and (len(times) < 2 or time.monotonic() < until_s):
        times.append(timed(session, path, options.pause)[0])
    cpu_ms = (cpu_seconds(console) - before_s) * 1000 / len(times)
    p95 = quantiles(times, n=20)[-1]
    mark = mark_of(p95, response.headers.get("Content-Disposition", ""))
    row = f"{first_ms:9.0f} {median(times):7.0f} {p95:7.0f} {max(times):7.0f} {cpu_ms:7.1f}"
    print(f"{row} {mark:4} {path}", flush=True)
    return True


def mark_of(p95_ms: float, disposition: str) -> str:
    """The mark of a row: `file` for a download, whose time grows with its content, `!` for a page
    or a list that takes too long.
    """
    if disposition.startswith("attachment"):
        return "file"
    return "" if p95_ms < P95_MS_AIM else "!"


def timed(session: ConsoleSession, path: str, pause_s: float) -> tuple[float, HTTPResponse]:
    """Response time of an address, ms, and the response."""
    time.sleep(pause_s)
    began = time.perf_counter()
    response, _answer = session.ask("GET", path)
    return (time.perf_counter() - began) * 1000, response


def program(launcher: int, word: str) -> psutil.Process:
    """The program of the launcher with a word in its command line."""
    programs = psutil.Process(launcher).children()
    found = [each for each in programs if word in " ".join(each.cmdline())]
    if not found:  # no StopIteration: a future cannot carry one, and its waiter would not end
        raise click.ClickException(f"no program of Gantry has {word} in its command line")
    return found[0]


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def working(gantry: Gantry, *names: str) -> Iterator[None]:
    """Run periodic work of a worker; print its CPU time at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.console_workers", *names],
        cwd=ROOT,
        env={
            **os.environ,
            "GANTRY_HOME": str(gantry.home),
            "NAMESRV_ADDR": gantry.namesrv_addr,
            **gantry.variables,
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield
    finally:
        process.send_signal(signal.SIGINT)
        print(process.stdout.read(), end="", flush=True)
        process.wait(STOP_SECONDS_MAX)


def first_paints(
    browser: str, url: str, cookies: dict[str, str], paths: Iterable[str]
) -> Iterator[tuple[str, float]]:
    """First contentful paint of each page, ms after the start of the navigation."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": k, "value": v, "url": url} for k, v in cookies.items()])
        for path in paths:
            page = context.new_page()
            page.goto(f"{url}/{path}")
            yield path, float(page.evaluate(FIRST_PAINT))
            page.close()
        chromium.close()


@contextmanager
def running(
    home: Path, *options: str, settings: str = "", variables: Mapping[str, str] | None = None
) -> Iterator[Gantry]:
    """A complete Gantry without scheduled trace jobs; `options` of `manage.py up`, and further
    settings of the broker.
    """
    (home / "conf").mkdir(parents=True, exist_ok=True)
    (home / "conf" / "broker.conf").write_text(BROKER_CONF + settings)
    password = secrets.token_urlsafe(12)
    ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--home", str(home), *options, *ports],
        cwd=ROOT,
        env={
            **os.environ,
            "GANTRY_ADMIN_PASSWORD": password,
            "CONSOLE_INGEST_MINUTES": "0",
            **(variables or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Gantry(*addresses(process), password, home, process.pid, variables or {})
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_SECONDS_MAX)


def addresses(process: "subprocess.Popen[str]") -> tuple[str, str, str]:
    """Read the launcher's output until the ready line; returns the addresses of console, name
    server and broker.
    """
    assert process.stdout is not None
    said, namesrv_addr, broker_addr = [], "", ""
    deadline = time.monotonic() + START_SECONDS_MAX
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"\bname server +([^ ,]+:\d+)", line):
            namesrv_addr = found[1]
        if found := re.search(r"\bbroker\s+(\S+:\d+)", line):
            broker_addr = found[1].rstrip(",")
        if found := re.search(r"Gantry is ready: (http://\S+)", line):
            return found[1].rstrip("/"), namesrv_addr, broker_addr
        if time.monotonic() > deadline:
            break
    raise SystemExit("Gantry did not start:\n" + "".join(said))


if __name__ == "__main__":
    main()
