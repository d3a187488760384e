"""`make bench-console`: the console in front of thousands of topics and groups.

Starts a whole Gantry in a folder of its own, fills it (`big_cluster.py`), and asks list pages and
API lists again and again as a signed-in operator; Chromium tells the first paint where it is there.
Prints a table beside the aims: lists p95 under 300 ms, first paint under 1 s. Figures, not
assertions: the exit code is 0 unless something breaks.
"""

import argparse
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
from http.cookies import SimpleCookie
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode, urlsplit

from benchmarks.big_cluster import Size, clients, send_messages, write_tables

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 60
REQUEST_SECONDS_MAX = 60
P95_MS_AIM = 300
PAINT_MS_AIM = 1_000
CSRF_COOKIE = "gantry_csrf"

#: Consume queues of a thousand messages, since there are tens of thousands of them.
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


def main() -> None:
    """Fill a Gantry and measure its console."""
    options = parse_options()
    size = Size(options.topics, options.groups, options.messages)
    parent = ROOT / "var" / "bench"
    parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=parent))
    try:
        write_tables(home / "store", size)
        with running(home) as (url, broker_addr, password):
            asyncio.run(fill_and_measure(url, broker_addr, password, size, options))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    size = Size()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    for name in ("topics", "groups", "messages"):
        parser.add_argument(f"--{name}", type=int, default=getattr(size, name))
    parser.add_argument("--rounds", type=int, default=40, help="requests per page (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between (%(default)s)")
    parser.add_argument("--stay", action="store_true", help="keep it running until Ctrl-C")
    return parser.parse_args()


async def fill_and_measure(
    url: str, broker_addr: str, password: str, size: Size, options: argparse.Namespace
) -> None:
    """Send the messages, connect the clients, and look at every page."""
    began = time.perf_counter()
    await send_messages(broker_addr, size)
    print(f"{size.messages:,} messages sent in {time.perf_counter() - began:.0f} s")
    async with clients(broker_addr, size):
        await asyncio.to_thread(measure, url, password, options)
        if options.stay:
            print(f"{url}  admin / {password}")
            await asyncio.Event().wait()


def measure(url: str, password: str, options: argparse.Namespace) -> None:
    """Print how long pages take, and how soon Chromium paints them."""
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
    """A signed-in operator with one connection that is kept open."""

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
        """Milliseconds that a page took."""
        time.sleep(pause_s)
        began = time.perf_counter()
        status = self._ask("GET", path)
        if status != http.client.OK:
            print(f"{path} answered {status}")
        return (time.perf_counter() - began) * 1000

    def _location(self, path: str) -> str:
        """Where a page sends somebody who is not signed in."""
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
    """When Chromium first painted each page, counted from the navigation's start."""
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
def running(home: Path) -> Iterator[tuple[str, str, str]]:
    """A whole Gantry without jobs: the console's address, the broker's, the admin's password."""
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "broker.conf").write_text(BROKER_CONF)
    password = secrets.token_urlsafe(12)
    ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--home", str(home), "--no-worker", *ports],
        cwd=ROOT,
        env={**os.environ, "GANTRY_ADMIN_PASSWORD": password, "CONSOLE_INGEST_MINUTES": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        url, broker_addr = addresses(process)
        yield url, broker_addr, password
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_SECONDS_MAX)


def addresses(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Read what the launcher prints until it is ready."""
    assert process.stdout is not None
    said, broker_addr = [], ""
    deadline = time.monotonic() + START_SECONDS_MAX
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"\bbroker\s+(\S+:\d+)", line):
            broker_addr = found[1].rstrip(",")
        if found := re.search(r"Gantry is ready: (http://\S+)", line):
            return found[1].rstrip("/"), broker_addr
        if time.monotonic() > deadline:
            break
    raise SystemExit("Gantry did not start:\n" + "".join(said))


if __name__ == "__main__":
    main()
