"""Outages on open pages: killed programs, with a stopped launcher, to prevent restarts.

Each page shows the outage within seconds and without a reload, and recovers.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from playwright.sync_api import Page, expect

from core_broker.message.model import Message
from tests.browser.conftest import Gantry
from tests.browser.test_live_trouble import NOTICED_MS, RECOVERED_MS, program_of
from tests.browser.test_messages import make_topic, run, send

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@contextmanager
def without(gantry: Gantry, *marks: str) -> Iterator[None]:
    """Kill a program and stop the launcher, to prevent the restart of the program."""
    launcher = psutil.Process(gantry.pid)
    victim = program_of(gantry, *marks)
    launcher.suspend()
    try:
        victim.kill()
        yield
    finally:
        launcher.resume()


def test_a_killed_broker_turns_open_pages_red_with_its_last_values(
    page: Page, gantry: Gantry
) -> None:
    topic = f"outage-{uuid.uuid4().hex[:8]}"
    run(make_topic(gantry, topic))
    run(send(gantry, [Message(topic, b"before the outage")]))
    state = page.locator("#live-state")
    expect(state).to_have_attribute("data-state", "live")
    lists = page.context.new_page()
    lists.goto(gantry.page(f"topics/?q={topic}"))
    row = lists.get_by_role("row").filter(has_text=topic)
    expect(row).to_be_visible(timeout=NOTICED_MS)
    with without(gantry, "core_broker"):
        expect(state).to_have_attribute("data-state", "stale", timeout=NOTICED_MS)
        expect(state).to_contain_text("Stale since")
        expect(page.locator("[data-broker-state=down]")).to_be_visible(timeout=NOTICED_MS)
        expect(page.locator("#tiles")).to_contain_text("1 down")
        expect(page.locator("#failures .alert-danger")).to_be_visible()
        expect(page.get_by_text("No group is behind")).to_have_count(0)
        expect(row.locator(".stale-mark")).to_be_visible(timeout=NOTICED_MS)
        expect(lists.get_by_text("No topics yet")).to_have_count(0)
    expect(state).to_have_attribute("data-state", "live", timeout=RECOVERED_MS)
    expect(page.locator("[data-broker-state=up]")).to_be_visible(timeout=RECOVERED_MS)
    expect(page.locator("#failures .alert-danger")).to_have_count(0)
    expect(row.locator(".stale-mark")).to_have_count(0, timeout=RECOVERED_MS)
    lists.close()


def test_a_killed_name_server_is_named_and_the_brokers_are_still_read(
    page: Page, gantry: Gantry
) -> None:
    state = page.locator("#live-state")
    expect(state).to_have_attribute("data-state", "live")
    with without(gantry, "namesrv"):
        expect(state).to_have_attribute("data-state", "partly", timeout=NOTICED_MS)
        expect(page.locator("#failures")).to_contain_text("name server", timeout=NOTICED_MS)
        expect(page.locator("[data-broker-state=up]")).to_be_visible()
    expect(state).to_have_attribute("data-state", "live", timeout=RECOVERED_MS)


def test_a_killed_worker_is_shown_on_the_page_of_jobs(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("jobs/"))
    problem = page.locator("#worker-problem")
    expect(problem).to_have_count(0)
    with without(gantry, "worker"):
        expect(problem).to_be_visible(timeout=NOTICED_MS)
    expect(problem).to_have_count(0, timeout=RECOVERED_MS)


def test_a_killed_console_keeps_the_values_and_says_since_when(page: Page, gantry: Gantry) -> None:
    state = page.locator("#live-state")
    expect(state).to_have_attribute("data-state", "live")
    with without(gantry, "console.asgi:application"):
        expect(state).to_have_attribute("data-state", "lost", timeout=NOTICED_MS)
        expect(state).to_contain_text("Stale since")
        expect(page.locator("#tiles")).to_be_visible()
    expect(state).to_have_attribute("data-state", "live", timeout=RECOVERED_MS)


def test_without_redis_rates_stay_live_and_jobs_say_so(page: Page, gantry: Gantry) -> None:
    state = page.locator("#live-state")
    expect(state).to_have_attribute("data-state", "live")
    jobs = page.context.new_page()
    jobs.goto(gantry.page("jobs/"))
    with without(gantry, "valkey-server", "redis-server"):
        expect(jobs.get_by_text("Jobs cannot run")).to_be_visible(timeout=NOTICED_MS)
        expect(state).to_have_attribute("data-state", "live")
    expect(jobs.get_by_text("Jobs cannot run")).to_have_count(0, timeout=RECOVERED_MS)
    jobs.close()
