"""A complete Gantry, started with `manage.py up`, and a real Chromium.

One Gantry serves all browser tests of a run: `tests/support/scheduling.py` assigns the tests to one
worker. Screenshots of failures are in the test's temporary folder.
"""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 180
STOP_TIMEOUT_S = 60
#: Bound of each wait for a page, generous for a busy machine.
PAGE_TIMEOUT_MS = 60_000
PASSWORD = "correct horse battery"
#: Delay of one second per retry, for dead letters within seconds.
FAST_RETRIES = " ".join(["1s"] * 18)
expect.set_options(timeout=PAGE_TIMEOUT_MS)
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True, slots=True)
class Gantry:
    """Addresses of a running Gantry."""

    url: str
    namesrv_addr: str
    cluster: str = "local"
    #: Process id of the launcher.
    pid: int = 0
    home: Path = Path()

    def page(self, path: str = "") -> str:
        return f"{self.url}/clusters/{self.cluster}/{path}"


class Output:
    """Output lines of a program, read by a thread, for waits with a deadline."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._coming: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        assert process.stdout is not None
        self._stream = process.stdout
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._stream:
            self._coming.put(line.rstrip("\n"))
        self._coming.put(None)

    def close(self) -> None:
        """Read the remaining output after the end of the program, and close the pipe."""
        self._reader.join()
        self._stream.close()

    def wait_for(self, pattern: str, timeout_s: float) -> re.Match[str]:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._coming.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no line like {pattern!r} in {timeout_s} s:\n" + self.text)
            if line is None:
                pytest.fail(f"ended without a line like {pattern!r}:\n" + self.text)
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture(scope="session")
def gantry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gantry]:
    with started(tmp_path_factory.mktemp("gantry")) as gantry:
        yield gantry


@contextmanager
def started(home: Path, *options: str) -> Iterator[Gantry]:
    """Run `manage.py up` with the options."""
    ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--home", str(home), *ports, *options],
        cwd=ROOT,
        env={
            **os.environ,
            "GANTRY_ADMIN_PASSWORD": PASSWORD,
            "ROCKETMQ_MESSAGE_DELAY_LEVEL": FAST_RETRIES,
            "CONSOLE_INGEST_MINUTES": "0",  # no scheduled jobs during the tests
            "CONSOLE_EVALUATION_SECONDS": "3",
            "CONSOLE_ALARM_GROUP_SECONDS": "0",
            "CONSOLE_ALARM_NETWORKS": "127.0.0.0/8",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = Output(process)
    try:
        namesrv_addr = output.wait_for(r"name server\s+(\S+:\d+)", READY_TIMEOUT_S)[1]
        url = output.wait_for(r"Gantry is ready: (http://\S+)", READY_TIMEOUT_S)[1]
        yield Gantry(url.rstrip("/"), namesrv_addr.rstrip(","), pid=process.pid, home=home)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            output.close()


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """A separate browser per test.

    Playwright runs an event loop in this thread from start to stop, and other tests of the worker
    start event loops too.
    """
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on the path; `make test` installs it where it can")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def page(
    gantry: Gantry, chromium: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Page]:
    """A page of a signed-in admin. Script errors of the page fail the test."""
    with signed_in(gantry, chromium, tmp_path / f"{request.node.name}.png") as page:
        yield page


@contextmanager
def signed_in(gantry: Gantry, chromium: Browser, screenshot: Path) -> Iterator[Page]:
    """Open a page as admin; take a screenshot at the end."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    context.set_default_timeout(PAGE_TIMEOUT_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if is_fault(said.text) else None)
    sign_in(page, gantry)
    yield page
    page.screenshot(path=screenshot, full_page=True)
    context.close()
    assert not faults, f"the page's scripts complained: {faults}"


@pytest.fixture(scope="session")
def spark() -> None:
    """Skips tests with Spark when no usable Java is found."""
    command = [sys.executable, "-m", "spark_jobs", "check", "--json"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    found = json.loads(answer.stdout)
    if not found["usable"]:
        pytest.skip(f"Spark cannot run here: {found['reason']}")


def is_fault(text: str) -> bool:
    """Browser messages about content policy violations and missing files."""
    return "Content Security Policy" in text or "status of 404" in text


def sign_in(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.url)
    page.get_by_label("User").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
