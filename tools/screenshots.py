"""`make screenshots`: the console's main pages in both themes, for docs/images.

The script runs the demo shop in a temporary folder on free ports, with consumer retries after one
second. After SHOP_SECONDS of traffic the script runs the trace job once and visits the pages in a
Chromium with empty profiles.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import click
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
PASSWORD: Final = "screenshots need no secret"  # noqa: S105 - of a Gantry that lives for minutes
SIZE: Final = ViewportSize(width=1360, height=850)
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, Theme]] = ("light", "dark")
READY_SECONDS_MAX: Final = 240
#: Seconds of traffic before the first picture: enough for dead letters and lines in the charts.
SHOP_SECONDS: Final = 100
JOB_SECONDS_MAX: Final = 300
RETRIES: Final = "1s 2s 3s " + " ".join(["5s"] * 15)

#: Picture name and path of the page below the cluster.
PAGES: Final = {
    "overview": "",
    "topology": "topology/",
    "topics": "topics/",
    "topic": "topics/orders/",
    "groups": "groups/",
    "group": "groups/accounting/",
    "messages": "messages/?topic=orders",
    "dead-letters": "dlq/accounting/",
    "offsets": "groups/accounting/offsets/",
    "analytics": "analytics/",
}
JOURNEY: Final = "journey"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Write the pictures of the console's main pages to docs/images."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on the path; tools/setup.sh browser installs one.")
    IMAGES.mkdir(exist_ok=True)
    with demo() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        read_traces(browser, url)
        for theme in THEMES:
            page = signed_in(browser, url, theme)
            for name, path in PAGES.items():
                page.goto(f"{url}/clusters/local/{path}")
                save(page, name, theme)
            page.goto(f"{url}/clusters/local/dlq/accounting/")
            page.locator("tbody a[href*='/dlq/accounting/']").first.click()
            page.locator("main a[href*='/traces/']").first.click()
            save(page, JOURNEY, theme)
            page.context.close()
        browser.close()


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo with SHOP_SECONDS of traffic and yield the address of the console."""
    with tempfile.TemporaryDirectory() as home:
        ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--home", home, *ports],
            cwd=ROOT,
            env={
                **os.environ,
                "GANTRY_ADMIN_PASSWORD": PASSWORD,
                "ROCKETMQ_MESSAGE_DELAY_LEVEL": RETRIES,
                "CONSOLE_INGEST_MINUTES": "0",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            url = _ready(process)
            time.sleep(SHOP_SECONDS)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def _ready(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    until = time.monotonic() + READY_SECONDS_MAX
    for line in process.stdout:
        if found := re.search(r"Gantry is ready: (http://\S+)", line):
            # The thread drains the later output: a full pipe would block the demo.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return found[1].rstrip("/")
        if time.monotonic() > until:
            break
    raise SystemExit("The demo did not become ready.")


def read_traces(browser: Browser, url: str) -> None:
    """Run the trace job to its end: the analytics page needs data."""
    page = signed_in(browser, url, "light")
    page.goto(f"{url}/clusters/local/jobs/")
    page.get_by_role("button", name="Refresh analytics", exact=True).click()
    page.get_by_role("link", name="See the figures").wait_for(timeout=JOB_SECONDS_MAX * 1000)
    page.context.close()


def signed_in(browser: Browser, url: str, theme: Theme) -> Page:
    """Sign in as the administrator and return the page, in one theme."""
    context = browser.new_context(
        viewport=SIZE, color_scheme=theme, locale="en-GB", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url)
    page.get_by_label("User").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Overview").wait_for()
    return page


def save(page: Page, name: str, theme: Theme) -> None:
    """Write the picture after the page and the charts are drawn."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(1_500)
    page.screenshot(path=IMAGES / f"{name}-{theme}.png")


if __name__ == "__main__":
    main()
