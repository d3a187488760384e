"""`make screenshots`: the console's main pages in both themes, for docs/images.

The script runs the demo shop in a temporary folder on free ports, with consumer retries after one
second. After SHOP_SECONDS of traffic the script runs the trace job once and visits the pages in a
Chromium with empty profiles.

`make screenshots ARGS="--review FOLDER"` takes the pictures of a review instead: all REVIEW_PAGES
and a journey in the WIDTHS, both themes and both languages, whole pages. The command prints the
pages that are wider than the window, and the texts that are cut off, or English in the Chinese
pages.
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
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

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
JOB_SECONDS_MAX: Final = 900
RETRIES: Final = "1s 2s 3s " + " ".join(["5s"] * 15)

#: Picture name and path of the page below the cluster.
PAGES: Final = {
    "overview": "",
    "history": "?range=15m",
    "findings": "findings/",
    "alarms": "alarms/",
    "alarm-rules": "alarms/rules/",
    "topology": "topology/",
    "topics": "topics/",
    "topic": "topics/orders/",
    "groups": "groups/",
    "group": "groups/accounting/",
    "messages": "messages/?topic=orders",
    "dead-letters": "dlq/accounting/",
    "offsets": "groups/accounting/offsets/",
    "delayed": "delayed/",
    "half-messages": "half-messages/",
    "definitions": "definitions/",
    "replicas": "replicas/broker-a/?range=10m",
    "analytics": "analytics/",
}
#: Further pages of a review.
REVIEW_PAGES: Final = {
    **PAGES,
    "topic-messages": "topics/orders/messages/",
    "topic-queues": "topics/orders/queues/",
    "topic-consumers": "topics/orders/consumers/",
    "topic-configuration": "topics/orders/configuration/",
    "topic-permissions": "topics/orders/permissions/",
    "topic-create": "create-topic/",
    "group-queues": "groups/accounting/queues/",
    "group-consumers": "groups/accounting/consumers/",
    "group-configuration": "groups/accounting/configuration/",
    "clients": "clients/",
    "producers": "producers/",
    "brokers": "brokers/",
    "broker": "brokers/broker-a/",
    "broker-settings": "broker-settings/",
    "name-servers": "name-servers/",
    "alarm-receivers": "alarms/receivers/",
    "alarm-silences": "alarms/silences/",
    "alarm-deliveries": "alarms/deliveries/",
    "rule-create": "alarms/rules/create/",
    "receiver-create": "alarms/receivers/create/",
    "send": "messages/send/",
    "tail": "messages/tail/",
    "jobs": "jobs/",
    "search": "search/",
    "graph": "analytics/graph/",
    "slow": "analytics/slow/",
    "roles": "/accounts/roles/",
    "role-create": "/accounts/roles/create/",
    "users": "/accounts/users/",
    "security": "/accounts/security/",
    "tokens": "/accounts/tokens/",
    "audit": "/audit/",
    "clusters": "/",
    "api": "/api/docs/",
}
WIDTHS: Final = (1280, 1440, 390)
LANGUAGES: Final = ("en", "zh-hans")
#: Elements whose text does not fit, and, in Chinese pages, texts of several English words that are
#: no data: code, inputs and elements with `translate="no"` are data.
FAULTS: Final = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const cut = [...document.querySelectorAll("main *, header *")].filter(each =>
    each.children.length === 0 && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
    && ["hidden", "clip"].includes(getComputedStyle(each).overflowX)
    && getComputedStyle(each).textOverflow !== "ellipsis").map(each => each.textContent.trim());
  const data = "script, style, code, pre, textarea, [translate=no], .name, svg, option";
  const words = /[A-Za-z]{3,} [a-z]{2,} [a-z]{2,}/, chinese = /[\\u4e00-\\u9fff]/;
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest(data)) continue;
    const text = walker.currentNode.textContent.trim();
    if (words.test(text) && !chinese.test(text)) texts.push(text);
  }
  return {wide, cut, english: document.documentElement.lang.startsWith("zh") ? texts : []};
}"""
JOURNEY: Final = "journey"
ROLES: Final = "roles"
#: Time for the charts of a page, ms.
DRAWN_MS: Final = 1_500


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--review", type=click.Path(path_type=Path), help="Pictures of a review, here.")
@click.option("--url", default="", help="A running demo, with the password of this script.")
@click.option("--only", default="", help="Only pages whose name has this text.")
@click.option("--width", type=int, multiple=True, default=WIDTHS, help="Of a review.")
@click.option("--theme", multiple=True, default=THEMES, help="Of a review.")
@click.option("--language", multiple=True, default=LANGUAGES, help="Of a review.")
def main(review: Path | None, url: str, only: str, **sizes: tuple[Any, ...]) -> None:
    """Write the pictures of the console's main pages to docs/images."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on the path; tools/setup.sh browser installs one.")
    with nullcontext(url) if url else demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if not url:
            read_traces(browser, address)
        if review is None:
            take_main(browser, address, only)
        else:
            take_review(browser, address, review, only, **sizes)
        browser.close()


def take_main(browser: Browser, url: str, only: str) -> None:
    """The main pages, and a journey, in both themes."""
    IMAGES.mkdir(exist_ok=True)
    for theme in THEMES:
        page = signed_in(browser, url, theme)
        for name, path in PAGES.items():
            if only in name:
                page.goto(address_of(url, path))
                save(page, IMAGES / f"{name}-{theme}.png")
        if only in ROLES:
            page.goto(f"{url}/accounts/roles/")
            save(page, IMAGES / f"{ROLES}-{theme}.png")
        if only in JOURNEY:
            open_journey(page, url)
            save(page, IMAGES / f"{JOURNEY}-{theme}.png")
        page.context.close()


def take_review(
    browser: Browser,
    url: str,
    folder: Path,
    only: str,
    width: tuple[int, ...],
    theme: tuple[Theme, ...],
    language: tuple[str, ...],
) -> None:
    """All pages in the widths, themes and languages; prints the faults of each picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for color in theme:
        page = signed_in(browser, url, color)
        addresses = {name: address_of(url, path) for name, path in REVIEW_PAGES.items()}
        if only in JOURNEY:
            open_journey(page, url)
            addresses[JOURNEY] = page.url
        for spoken, (name, address), pixels in product(language, addresses.items(), width):
            if only not in name:
                continue
            page.context.add_cookies([{"name": "gantry_language", "value": spoken, "url": url}])
            page.set_viewport_size({"width": pixels, "height": SIZE["height"]})
            page.goto(address)
            save(page, folder / f"{name}-{pixels}-{color}-{spoken}.png", full_page=True)
            if found := {kind: fault for kind, fault in page.evaluate(FAULTS).items() if fault}:
                click.echo(f"{name} {pixels} {color} {spoken}: {found}")
        page.context.close()


def address_of(url: str, path: str) -> str:
    """The address of a page of the cluster, or of the console for a path from the root."""
    return f"{url}{path}" if path.startswith("/") else f"{url}/clusters/local/{path}"


def open_journey(page: Page, url: str) -> None:
    """Follow the links to the journey of a dead letter."""
    page.goto(f"{url}/clusters/local/dlq/accounting/")
    page.locator("tbody a[href*='/dlq/accounting/']").first.click()
    page.locator("main a[href*='/traces/']").first.click()


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo with SHOP_SECONDS of traffic and yield the address of the console."""
    with tempfile.TemporaryDirectory() as home:
        ports = [f"--{name}-port=0" for name in ("namesrv", "broker", "console")]
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--replicas", "3", "--home", home, *ports],
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
    page.get_by_role("link", name="Open analytics").wait_for(timeout=JOB_SECONDS_MAX * 1000)
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


def save(page: Page, path: Path, *, full_page: bool = False) -> None:
    """Write the picture after the page and the charts are drawn."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(DRAWN_MS)
    page.screenshot(path=path, full_page=full_page)


if __name__ == "__main__":
    main()
