"""The analytics pages in a browser, over a lake with known content."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from console.services.jobs import spark
from console.services.jobs.paths import lake_of
from console.services.jobs.spark import Availability
from tests.browser.conftest import PAGE_TIMEOUT_MS, is_fault
from tests.unit.analytics.lakes import BEGIN_MS, edge, latency, make_lake, minute, never, slow
from trace.lake import HOUR_MS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PASSWORD = "correct horse battery"
RANGE = f"begin_ms={BEGIN_MS}&end_ms={BEGIN_MS + HOUR_MS}"


@pytest.fixture
def console(
    live_server: LiveServer, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Address of the analytics pages of a console without a broker, but with a lake."""
    settings.GANTRY_HOME = tmp_path
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:9"}
    monkeypatch.setattr(spark, "availability", lambda: Availability(usable=True, java="Java 17"))
    User.objects.create_user("ann", password=PASSWORD)
    minutes = [number for number in range(60) if not 20 <= number < 30]
    make_lake(
        lake_of("local"),
        minute=[
            *(minute(at, "orders", sends=100, bytes=9000) for at in minutes),
            *(minute(at, "orders", "billing", attempts=80, successes=80) for at in minutes),
            minute(0, "mail", sends=7),
        ],
        latency=[latency(at, "orders", "billing", 10 + at * 3, 80) for at in minutes],
        slow=[slow(1, "AC11000100", 5000), never(2, "AC11000200")],
        edges=[edge("shop", "orders", None, 5000), edge("shop", "orders", "billing", 4000)],
    )
    return f"{live_server.url}/clusters/local/analytics/"


@pytest.fixture
def seen(console: str, chromium: Browser) -> Iterator[Page]:
    """A signed-in page. Errors of the page's scripts fail the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(PAGE_TIMEOUT_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if is_fault(said.text) else None)
    page.goto(f"{console}?{RANGE}")
    page.get_by_label("User").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")
    yield page
    context.close()
    assert not faults, f"the page's scripts complained: {faults}"


def test_figures_charts_and_what_leads_on(seen: Page, console: str) -> None:
    page = seen
    expect(page.locator("#total-sends")).to_have_text("5,007")
    expect(page.locator("#total-consume-success")).to_have_text("100 %")
    chart = page.locator("#throughput-chart")
    expect(chart.locator("canvas")).to_be_visible()
    assert len(page.locator(".heat rect").all()) == 50
    expect(page.locator("#funnel-table tr").filter(has_text="Stored").first).to_contain_text(
        "5,007"
    )

    page.locator("#topics-table").get_by_role("link", name="orders").click()
    expect(page.locator("#total-sends")).to_have_text("5,000")
    assert "topic=orders" in page.url
    page.reload()
    expect(page.locator("#all-of-them")).to_contain_text("Topic orders")
    page.get_by_label("Until").fill(page.locator("[name=begin]").input_value()[:-2] + "10")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#total-sends")).to_have_text("1,000")
    assert re.search(r"begin=.+&end=.+&topic=orders", page.url)

    page.goto(f"{console}slow/?{RANGE}")
    expect(page.locator("#slow-table")).to_contain_text("5.0 s")
    page.locator("#never-table").get_by_role("link", name="AC11000200").focus()
    page.get_by_role("navigation", name="Analytics").get_by_role(
        "link", name="Message flow"
    ).click()
    expect(page.locator(".graph-line")).to_have_count(2)
    expect(page.locator("#edges-table")).to_contain_text("billing")


def test_without_scripts_the_page_is_complete(seen: Page, console: str, chromium: Browser) -> None:
    cookies = seen.context.cookies()
    context = chromium.new_context(
        java_script_enabled=False, viewport={"width": 390, "height": 800}
    )
    context.add_cookies(cookies)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{console}?{RANGE}")
    expect(page.locator("#total-sends")).to_have_text("5,007")
    expect(page.locator("#heat-table")).to_be_attached()
    expect(page.locator("#groups-table")).to_contain_text("billing")
    context.close()
