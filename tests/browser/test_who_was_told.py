"""The way of a new user: since when does a group fail, who is affected, who was notified.

The test only follows links from the overview.
"""

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.test_alarm_drill import SOON_MS, create_receiver, create_rule
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until
from tests.support.webhooks import Hook, webhook

#: A message of the feed of alarms.
ALARMS = '{"changed": "alarms"}'
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.must_beat(12)]


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


def test_from_the_overview_to_the_failing_messages(page: Page, gantry: Gantry, hook: Hook) -> None:
    topic = f"told-{uuid.uuid4().hex[:8]}"
    group, rule, receiver = f"{topic}-accounting", f"failing {topic}", f"on duty for {topic}"
    create_receiver(page, gantry, receiver, hook)
    create_rule(page, gantry, rule, group, metric="group.dead_letters", threshold="0")
    frames: list[str | bytes] = []

    def keep(frame: str | bytes) -> None:
        frames.append(frame)

    watching = page.context.new_page()
    watching.on("websocket", lambda feed: feed.on("framereceived", keep))
    watching.goto(gantry.page(f"alarms/?q={topic}"))
    with Traffic(gantry.namesrv_addr, topic, group) as traffic:
        traffic.send(b'{"order": 7}', "ORDER-7")

        # Since when, and who was notified: on the overview, beside the group.
        page.goto(gantry.page())
        line = page.locator("#alarms-firing li", has_text=rule)
        expect(line).to_contain_text(f"notified: {receiver}", timeout=SOON_MS)
        expect(line).to_contain_text(re.compile(r"firing since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"))
        # The open page of alarms has changed without a reload, by its feed.
        expect(watching.locator('tr[data-state="firing"]', has_text=rule)).to_be_visible()
        # Events of a page arrive during calls of its methods.
        wait_until(lambda: watching.title() != "" and ALARMS in frames, "the feed")
        watching.close()
        line.get_by_role("link", name=group).click()
        expect(page.locator('tr[data-delivery="firing"][data-state="sent"]')).to_contain_text(
            receiver
        )

        # Who is affected: the topic and the keys of the messages.
        page.get_by_role("link", name=group, exact=True).click()
        letters = page.get_by_role("note").filter(has_text="This group has dead letters.")
        expect(letters).to_contain_text(re.compile(r"Oldest: \d{4}-\d\d-\d\d"))
        expect(page.get_by_role("link", name=topic, exact=True)).to_be_visible()
        letters.get_by_role("link", name="View and resend").click()
        expect(page.locator("tbody tr", has_text="ORDER-7")).to_be_visible()


def test_pages_of_alarms_say_when_nobody_is_notified(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("alarms/receivers/"))
    expect(page.get_by_role("heading", name="Receivers", exact=True)).to_be_visible()
    has_receiver = page.locator("tbody tr").count() > 0
    page.goto(gantry.page("alarms/"))
    expect(page.get_by_text("Nobody is notified.")).to_have_count(0 if has_receiver else 1)
