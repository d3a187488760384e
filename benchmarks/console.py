"""`make bench-console`: the console with thousands of topics and groups.

Starts a complete Gantry in a temporary folder, fills it (`big_cluster.py`), and requests list pages
and API lists repeatedly as a signed-in operator; Chromium, where installed, measures the first
paint. Prints a table beside the targets: lists p95 under 300 ms, first paint under 1 s. The
benchmark measures and asserts nothing: the exit code is 0 unless a step fails.
"""

import asyncio
import http.client
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode, urlsplit

import click

from benchmarks.big_cluster import Size, clients, send_messages, write_tables

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 60
REQUEST_SECONDS_MAX = 60
P95_MS_AIM = 300
PAINT_MS_AIM = 1_000
CSRF_COOKIE = "gantry_csrf"

#: Consume queue files of 1,000 units, since there are tens of thousands of queues.
BROKER_CONF = "brokerName=broker-a\nmappedFileSizeConsumeQueue=20000\ntraceTopicEnable=true\n"
CLUSTER = "clusters/local"
PAGES = (
    f"{CLUSTER}/",
    f"{CLUSTER}/topics/",
    f"{CLUSTER}/topics/?ordering=-stored",
    f"{CLUSTER}/topics/?q=042&page=2",
    f"{CLUSTER}/groups/",
    f"{CLUSTER}/groups/?ordering=-lag&page=3",
    f"{CLUSTER}/groups/?show=behind",
    f"{CLUSTER}/clients/",
    f"{CLUSTER}/producers/",
    f"{CLUSTER}/brokers/",
    f"{CLUSTER}/topics/topic-00042/",
    f"{CLUSTER}/groups/group-00042/",
    f"api/v1/{CLUSTER}/topics?ordering=-stored&limit=50",
    f"api/v1/{CLUSTER}/groups?ordering=-lag&limit=50",
    f"api/v1/{CLUSTER}/clients?limit=50",
    f"api/v1/{CLUSTER}",
)
FIRST_PAINT = """new Promise(tell => new PerformanceObserver(seen => {
  for (const each of seen.getEntriesByName("first-contentful-paint")) tell(each.startTime);
}).observe({type: "paint", buffered: true}))"""
PAINTED = (f"{CLUSTER}/", f"{CLUSTER}/topics/", f"{CLUSTER}/groups/?ordering=-lag")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a measurement."""

    #: Requests per page.
    rounds: int
    #: Seconds between two requests.
    pause: float
    #: Whether Gantry keeps running until Ctrl-C.
    stay: bool


@dataclass(frozen=True, slots=True)
class Gantry:
    """A running Gantry."""

    #: Address of the console.
    url: str
    namesrv_addr: str
    broker_addr: str
    #: Password of the user `admin`.
    password: str


@click.command(context_settings={"show_default": True})
@click.option("--topics", type=int, default=Size().topics)
@click.option("--groups", type=int, default=Size().groups)
@click.option("--messages", type=int, default=Size().messages)
@click.option("--rounds", type=int, default=40, help="Requests per page.")
@click.option("--pause", type=float, default=0.1, help="Seconds between two requests.")
@click.option("--stay", is_flag=True, help="Keep Gantry running until Ctrl-C.")
def main(topics: int, groups: int, messages: int, rounds: int, pause: float, stay: bool) -> None:
    """Fill a Gantry and measure its console."""
    options = Options(rounds, pause, stay)
    size = Size(topics, groups, messages)
    parent = ROOT / "var" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=parent))
    try:
        write_tables(home / "store", size)
        with running(home, "--no-worker") as gantry:
            asyncio.run(fill_and_measure(gantry, size, options))
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def fill_and_measure(gantry: Gantry, size: Size, options: Options) -> None:
    """Send the messages, connect the clients, and request every page."""
    began = time.perf_counter()
    await send_messages(gantry.broker_addr, size)
    print(f"{size.messages:,} messages sent in {time.perf_counter() - began:.0f} s")
    async with clients(gantry.broker_addr, size):
        await asyncio.to_thread(measure, gantry.url, gantry.password, options)
        if options.stay:
            print(f"{gantry.url}  admin / {gantry.password}")
            await asyncio.Event().wait()


def measure(url: str, password: str, options: Options) -> None:
    """Print the response times of the pages, and their first paint in Chromium."""
    session = Session(url, password)
    print(f"\n{'ms':>9} {'p50':>7} {'p95':>7} {'max':>7}   aim: p95 under {P95_MS_AIM} ms")
    for path in PAGES:
        first, *times = [session.timed(path, options.pause) for _ in range(options.rounds + 1)]
        p95 = quantiles(times, n=20)[-1]
        mark = "" if p95 < P95_MS_AIM else "  !"
        row = f"{first:9.0f} {median(times):7.0f} {p95:7.0f} {max(times):7.0f}{mark:3} {path}"
        print(row, flush=True)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("\nno Chromium on the path: first paint is not measured")
        return
    print(f"\n first paint, ms; aim: under {PAINT_MS_AIM}")
    for path, painted_ms in first_paints(browser, url, session.cookies):
        print(f"{painted_ms:9.0f}   {path}", flush=True)


class Session:
    """A signed-in operator with one keep-alive connection."""

    def __init__(self, url: str, password: str) -> None:
        parts = urlsplit(url)
        self.cookies: dict[str, str] = {}
        self._host = f"{parts.hostname}:{parts.port}"
        self._connection = http.client.HTTPConnection(self._host, timeout=REQUEST_SECONDS_MAX)
        sign_in = self._location("")
        self._ask("GET", sign_in)
        form = {
            "username": "admin",
            "password": password,
            "csrfmiddlewaretoken": self.cookies[CSRF_COOKIE],
        }
        self._ask("POST", sign_in, urlencode(form))

    def timed(self, path: str, pause_s: float) -> float:
        """Response time of a page, ms."""
        time.sleep(pause_s)
        began = time.perf_counter()
        status = self._ask("GET", path)
        if status != http.client.OK:
            print(f"{path} answered {status}")
        return (time.perf_counter() - began) * 1000

    def _location(self, path: str) -> str:
        """Redirect target of a page without a session."""
        self._connection.request("GET", f"/{path}")
        response = self._connection.getresponse()
        response.read()
        return response.headers.get("Location", "").lstrip("/")

    def _ask(self, method: str, path: str, body: str | None = None) -> int:
        headers = {
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._connection.request(method, f"/{path}", body, headers)
        response = self._connection.getresponse()
        response.read()
        for line in response.headers.get_all("Set-Cookie", ()):
            self.cookies.update({k: v.value for k, v in SimpleCookie(line).items()})
        return response.status


def first_paints(browser: str, url: str, cookies: dict[str, str]) -> Iterator[tuple[str, float]]:
    """First contentful paint of each page, ms after the start of the navigation."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": k, "value": v, "url": url} for k, v in cookies.items()])
        for path in PAINTED:
            page = context.new_page()
            page.goto(f"{url}/{path}")
            yield path, float(page.evaluate(FIRST_PAINT))
            page.close()
        chromium.close()


@contextmanager
def running(home: Path, *options: str) -> Iterator[Gantry]:
    """A complete Gantry without scheduled trace jobs; `options` of `manage.py up`."""
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "broker.conf").write_text(BROKER_CONF)
    password = secrets.token_urlsafe(12)
    ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--home", str(home), *options, *ports],
        cwd=ROOT,
        env={**os.environ, "GANTRY_ADMIN_PASSWORD": password, "CONSOLE_INGEST_MINUTES": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Gantry(*addresses(process), password)
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
