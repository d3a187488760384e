"""An incident: find the failing consumer, read the exception, resend the dead letters.

Every step follows a link or button of the previous page; no address is typed.
"""

import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.mark.must_beat(4)
def test_from_the_overview_to_a_consumed_dead_letter(page: Page, gantry: Gantry) -> None:
    name = f"story-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        msg_id = traffic.send(b'{"order": 4711, "card": "lost"}', "order-4711")
        page.goto(gantry.page())
        wait_until(lambda: reloaded(page, group), f"{group} on the overview")
        page.get_by_role("link", name="All dead letters").click()
        row = page.get_by_role("row").filter(has_text=group)
        expect(row).to_contain_text("Consumer returned RECONSUME_LATER", timeout=60_000)
        row.get_by_role("link", name=group).click()
        expect(page.locator(".badge", has_text="open").first).to_be_visible()
        page.get_by_role("link", name=msg_id).click()
        expect(page.get_by_role("heading", name="Deliveries")).to_be_visible()
        page.get_by_role("button", name="Deliver to one consumer").click()
        expect(page.get_by_text("The listener refused the message")).to_be_visible()
        page.get_by_role("link", name="Back to the dead letter").click()

        traffic.accepting.set()
        page.get_by_role("button", name="Resend", exact=True).click()
        expect(page.get_by_text("1 sent, 0 failed, 0 skipped.")).to_be_visible()
        page.get_by_role("link", name="Trace", exact=True).click()
        wait_until(lambda: consumed(page, group), "the journey to say that it was consumed")
        expect(page.get_by_text("Resent by admin").first).to_be_visible()
        assert msg_id in [each.msg_id for each in traffic.accepted]


@pytest.mark.must_beat(10)
def test_a_running_group_is_moved_and_seen_to_have_moved(page: Page, gantry: Gantry) -> None:
    name = f"back-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        traffic.accepting.set()
        sent = [traffic.send(b"again", f"key-{number}") for number in range(3)]
        wait_until(
            lambda: set(sent) <= {each.msg_id for each in traffic.accepted}, "the first time"
        )
        page.goto(gantry.page(f"groups/?q={group}"))
        wait_until(lambda: reloaded(page, group), f"{group} in the list of groups")
        page.get_by_role("link", name=group, exact=True).click()
        page.get_by_role("link", name="Reset offsets").click()
        page.get_by_label("earliest: consume all stored messages again").check()
        page.get_by_role("button", name="Preview changes").click()
        expect(page.get_by_role("heading", name="Preview", exact=True)).to_be_visible()
        page.get_by_role("button", name="Reset").click()
        wait_until(
            lambda: [each.msg_id for each in traffic.accepted].count(sent[0]) > 1, "a second time"
        )
        expect(page.get_by_role("heading", name="Current offsets")).to_be_visible()


@pytest.mark.must_beat(5)
def test_a_replay_runs_to_its_end_and_shows_it(page: Page, gantry: Gantry) -> None:
    name = f"replay-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        sent = [traffic.send(b"refused", f"key-{number}") for number in range(3)]
        page.goto(gantry.page(f"dlq/{group}/"))
        wait_until(lambda: all(reloaded(page, each) for each in sent), "three dead letters")
        traffic.accepting.set()
        page.get_by_role("link", name="Resend all…").click()
        page.get_by_label("Maximum rate, messages/s").fill("50")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_text("succeeded").first).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="One outcome for each dead letter").click()
        expect(page.get_by_role("row").filter(has_text=f"%RETRY%{group}").first).to_be_visible()
        wait_until(lambda: set(sent) <= {each.msg_id for each in traffic.accepted}, "all of them")


def reloaded(page: Page, text: str) -> bool:
    """True when the page has a link with the text, after a reload if needed."""
    if page.get_by_role("link", name=text, exact=True).count():
        return True
    page.reload()
    return page.get_by_role("link", name=text, exact=True).count() > 0


def consumed(page: Page, group: str) -> bool:
    page.reload()
    row = page.get_by_role("row").filter(has_text=group).filter(has_text="consumed")
    return row.count() > 0
