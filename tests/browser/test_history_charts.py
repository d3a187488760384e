"""The history in a browser: charts of real samples, ranges in the address."""

import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from core_broker.message.model import Message
from tests.browser.conftest import Gantry
from tests.browser.test_messages import make_topic, run, send
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.must_beat(11)]

#: Time until the worker runs, samples, and the page fetches the sample, ms.
SAMPLE_TIMEOUT_MS = 150_000
SOME = re.compile(r"^[1-9]\d*$")


def test_charts_show_samples_of_the_worker_and_ranges_are_in_the_address(
    page: Page, gantry: Gantry
) -> None:
    topic = f"Drawn-{uuid.uuid4().hex[:8]}"
    run(make_topic(gantry, topic))
    run(send(gantry, [Message(topic, b"%d" % number) for number in range(12)]))

    page.goto(gantry.page("?range=15m"))
    history = page.locator("#history")
    rates = history.locator("#history-produce_rate")
    expect(rates).to_have_attribute("data-points", SOME, timeout=SAMPLE_TIMEOUT_MS)
    expect(rates.locator("canvas")).to_be_visible()
    expect(history.locator("#history-disk_ratio")).to_have_attribute("data-points", SOME)
    expect(history.get_by_role("link", name="15 minutes")).to_have_attribute("aria-current", "true")

    history.get_by_role("link", name="24 hours").click()
    expect(page).to_have_url(re.compile(r"\?range=24h#history$"))
    expect(history.get_by_text("Samples since")).to_be_visible()
    expect(rates).to_have_attribute("data-points", SOME, timeout=SAMPLE_TIMEOUT_MS)

    def is_listed() -> bool:  # pages share an answer of some seconds, which may be older
        page.goto(gantry.page(f"topics/?q={topic}"))
        return page.get_by_role("link", name=topic, exact=True).count() > 0

    wait_until(is_listed, "the topic in the list")

    def is_drawn() -> bool:
        page.goto(gantry.page(f"topics/{topic}/?range=15m"))
        chart = page.locator("#history-produce_rate")
        expect(chart).to_have_attribute("data-points", re.compile(r"^\d+$"))
        return chart.get_attribute("data-points") != "0"

    wait_until(is_drawn, "the chart of the topic", SAMPLE_TIMEOUT_MS / 1000)


def test_an_own_range_keeps_the_other_parameters_and_a_wrong_one_says_why(
    page: Page, gantry: Gantry
) -> None:
    page.goto(gantry.page("?range=1h&note=kept"))
    history = page.locator("#history")
    history.get_by_text("Custom range").click()
    history.get_by_label("From").fill("2026-01-05T10:00")
    history.get_by_label("Until").fill("2026-01-05T12:00")
    history.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"note=kept&history_begin=2026-01-05T10%3A00"))
    expect(history.get_by_text("No samples in this range.").first).to_be_visible()
    page.goto(gantry.page("?range=forever"))
    expect(history.get_by_role("alert")).to_contain_text("15m, 1h, 6h, 24h, 7d, 30d")
