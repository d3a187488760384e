"""Killed processes and open pages: pages show the failure within seconds, and recover."""

import uuid

import psutil
import pytest
from playwright.sync_api import Page, expect

from core_broker.message.model import Message
from tests.browser.conftest import Gantry
from tests.browser.test_messages import follow_live, make_topic, run, send, wait_for_topic
from tests.support.processes import command_line

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NOTICED_MS = 60_000
RECOVERED_MS = 90_000


def program_of(gantry: Gantry, *marks: str) -> psutil.Process:
    """A process of Gantry; the launcher restarts killed processes."""
    for child in psutil.Process(gantry.pid).children():
        if any(mark in part for mark in marks for part in command_line(child)):
            return child
    pytest.fail(f"no program like {marks}")


@pytest.mark.parametrize("program", ["core_broker", "namesrv"])
def test_pages_are_stale_without_a_broker_or_name_server_and_recover(
    page: Page, gantry: Gantry, program: str
) -> None:
    topic = f"trouble-{uuid.uuid4().hex[:8]}"
    run(make_topic(gantry, topic))
    overview = page.context.new_page()
    overview.goto(gantry.page())
    expect(overview.locator("#live-state")).to_have_attribute("data-state", "live")
    follow_live(page, gantry, topic)
    victim = program_of(gantry, program)
    victim.suspend()  # a single kill could be over before the page notices
    try:
        expect(overview.locator("#live-state")).not_to_have_attribute(
            "data-state", "live", timeout=NOTICED_MS
        )
        if program == "core_broker":  # a tail has cached routes and needs no name server at once
            expect(page.locator("#tail-problem")).to_be_visible(timeout=NOTICED_MS)
    finally:
        victim.kill()
    for tab, state in ((overview, "#live-state"), (page, "#tail-state")):
        expect(tab.locator(state)).to_have_attribute("data-state", "live", timeout=RECOVERED_MS)
    expect(page.locator("#tail-problem")).to_be_hidden(timeout=RECOVERED_MS)
    run(wait_for_topic(gantry, topic))  # the broker registers again with the new name server
    run(send(gantry, [Message(topic, b"after the trouble")]))
    expect(page.locator("#tail-rows")).to_contain_text("after the trouble")
    overview.close()


def test_jobs_are_marked_old_without_redis_and_recover(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("jobs/"))
    lost = page.locator("#jobs-lost")
    expect(lost).to_be_hidden()
    server = program_of(gantry, "valkey-server", "redis-server")
    server.suspend()  # a single kill would be over before the page notices
    try:
        expect(lost).to_be_visible(timeout=NOTICED_MS)
    finally:
        server.kill()
    expect(lost).to_be_hidden(timeout=RECOVERED_MS)
