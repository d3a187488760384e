"""Programs are killed while pages are open: the pages say so within seconds, and recover."""

import uuid

import psutil
import pytest
from playwright.sync_api import Page, expect

from core_broker.message.model import Message
from tests.browser.conftest import Gantry
from tests.browser.test_messages import follow_live, make_topic, run, send

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NOTICED_MS = 20_000
RECOVERED_MS = 90_000


def program_of(gantry: Gantry, *marks: str) -> psutil.Process:
    """One of the programs; when it is killed, whoever started it starts it again."""
    for child in psutil.Process(gantry.pid).children():
        if any(mark in part for mark in marks for part in child.cmdline()):
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
    victim.suspend()  # killed at once it could be back before anybody notices
    try:
        expect(overview.locator("#live-state")).not_to_have_attribute(
            "data-state", "live", timeout=NOTICED_MS
        )
        if program == "core_broker":  # a tail knows its brokers, and needs no name server at once
            expect(page.locator("#tail-trouble")).to_be_visible(timeout=NOTICED_MS)
    finally:
        victim.kill()
    for tab, state in ((overview, "#live-state"), (page, "#tail-state")):
        expect(tab.locator(state)).to_have_attribute("data-state", "live", timeout=RECOVERED_MS)
    expect(page.locator("#tail-trouble")).to_be_hidden(timeout=RECOVERED_MS)
    run(send(gantry, [Message(topic, b"after the trouble")]))
    expect(page.locator("#tail-rows")).to_contain_text("after the trouble")
    overview.close()


def test_jobs_are_marked_old_without_redis_and_recover(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("jobs/"))
    lost = page.locator("#jobs-lost")
    expect(lost).to_be_hidden()
    server = program_of(gantry, "valkey-server", "redis-server")
    server.suspend()  # killed at once it would be back before anybody notices
    try:
        expect(lost).to_be_visible(timeout=NOTICED_MS)
    finally:
        server.kill()
    expect(lost).to_be_hidden(timeout=RECOVERED_MS)
