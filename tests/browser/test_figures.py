"""Metrics and warnings in a browser: browsing is no consumption, queue numbers need a click."""

import re
import uuid
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from core_broker.message.model import Message
from tests.browser.conftest import Gantry, sign_in
from tests.browser.test_messages import make_topic, run, send
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def topic(page: Page, gantry: Gantry) -> str:
    """A topic with four queues and messages in each of them; the console lists the topic."""
    name = f"Numbered-{uuid.uuid4().hex[:8]}"
    run(make_topic(gantry, name))
    run(send(gantry, [Message(name, b"%d" % number) for number in range(12)]))
    wait_until(lambda: is_listed(page, gantry, name), "the console lists the topic")
    return name


def is_listed(page: Page, gantry: Gantry, topic: str) -> bool:
    page.goto(gantry.page(f"topics/?q={topic}"))
    return page.get_by_role("link", name=topic).count() > 0


def test_fewer_queues_than_messages_need_a_click(page: Page, gantry: Gantry, topic: str) -> None:
    page.goto(gantry.page(f"topics/{topic}/edit/"))
    page.locator("[name=write_queues]").fill("2")
    page.locator("[name=read_queues]").fill("2")
    page.locator("[name=preview]").click()
    warning = page.get_by_role("alert").filter(has_text="Consumers would not read these queues")
    expect(warning).to_contain_text(re.compile(r"queues 2 to 3 · \d+ stored messages"))
    page.locator("[name=save]").click()
    expect(warning).to_be_visible()  # the browser asks for the box first
    page.locator("[name=change]").click()
    expect(page.locator("[name=write_queues]")).to_have_value("2")
    page.locator("[name=preview]").click()
    page.get_by_label("Change anyway").check()
    page.locator("[name=save]").click()
    expect(page.get_by_text(f"Topic “{topic}” is changed.")).to_be_visible()


def test_more_write_queues_than_read_queues_are_marked(
    page: Page, gantry: Gantry, topic: str
) -> None:
    page.goto(gantry.page(f"topics/{topic}/edit/"))
    page.locator("[name=write_queues]").fill("6")
    page.locator("[name=preview]").click()
    page.get_by_label("Change anyway").check()
    page.locator("[name=save]").click()
    expect(page.get_by_text("No consumer reads 2 of the write queues.")).to_be_visible()
    page.goto(gantry.page())
    warning = page.get_by_role("alert").filter(has_text="no consumer reads")
    expect(warning.get_by_role("link", name=topic)).to_be_visible()


def test_browsing_messages_is_no_consumption(page: Page, gantry: Gantry, topic: str) -> None:
    def delivered() -> str:
        page.goto(gantry.page("brokers/"))
        page.locator("table tbody a").first.click()
        line = page.locator("dl.facts div").filter(has_text="msgGetTotalTodayNow")
        return line.locator("dd").inner_text()

    before = delivered()
    for _ in range(3):
        page.goto(gantry.page(f"messages/?topic={topic}"))
        expect(page.locator("table tbody tr")).to_have_count(12)
    assert delivered() == before
    unmeasured = page.locator("dl.facts div").filter(has_text="dispatchMaxBuffer")
    expect(unmeasured.locator("dd")).to_have_text("—")


def test_charts_have_the_time_zone_of_the_console(chromium: Browser, gantry: Gantry) -> None:
    context = chromium.new_context(timezone_id="Pacific/Kiritimati")  # UTC+14
    try:
        page = context.new_page()
        sign_in(page, gantry)
        newest = page.locator(".u-legend .u-series").first.locator(".u-value")
        expect(newest).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
        begun = datetime.now(UTC)
        shown = datetime.strptime(newest.inner_text(), "%H:%M:%S").replace(tzinfo=UTC)
        apart_s = (shown - begun).seconds % 86_400
        assert min(apart_s, 86_400 - apart_s) < 3_600, newest.inner_text()
    finally:
        context.close()
