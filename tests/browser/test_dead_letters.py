"""The main task in a browser: watch traffic, find a dead letter, resend, see the consumption."""

import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

LIVE_TIMEOUT_MS = 60_000


def test_the_overview_shows_live_numbers(page: Page, gantry: Gantry) -> None:
    name = f"live-{uuid.uuid4().hex[:8]}"
    with Traffic(gantry.namesrv_addr, name, f"{name}-group") as traffic:
        traffic.accepting.set()
        page.goto(gantry.page())
        state = page.locator("#live-state")
        expect(state).to_have_attribute("data-state", "live", timeout=LIVE_TIMEOUT_MS)
        received = page.locator("[data-live=in_today]").first
        before = number(received.inner_text())
        for count in range(20):
            traffic.send(b"one of twenty", f"key-{count}")
        wait_until(
            lambda: number(received.inner_text()) >= before + 20, "20 more messages received"
        )


def test_a_dead_letter_is_found_sent_again_and_consumed(page: Page, gantry: Gantry) -> None:
    name = f"dead-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        msg_id = traffic.send(b'{"order": 4711, "card": "lost"}', "order-4711")
        page.goto(gantry.page())
        page.get_by_role("link", name="Dead letters", exact=True).click()
        follow(page, group)
        follow(page, msg_id)
        expect(page.locator("pre")).to_contain_text('"order": 4711')
        expect(page.get_by_text(name, exact=True).first).to_be_visible()

        traffic.accepting.set()
        page.get_by_role("button", name="Resend", exact=True).click()
        expect(page.get_by_text("1 sent, 0 failed, 0 skipped.")).to_be_visible()
        wait_until(
            lambda: msg_id in [each.msg_id for each in traffic.accepted],
            "the consumer to receive the dead letter again",
        )
        received = next(each for each in traffic.accepted if each.msg_id == msg_id)
        assert received.body == b'{"order": 4711, "card": "lost"}'
        assert received.topic == name
        assert received.keys == ["order-4711"]


def test_what_was_sent_again_is_marked_and_skipped(page: Page, gantry: Gantry) -> None:
    name = f"twice-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        msg_id = traffic.send(b"again and again", "twice")
        page.goto(gantry.page("dlq/"))
        follow(page, group)
        wait_for_link(page, msg_id)
        traffic.accepting.set()
        for outcome in ("1 sent, 0 failed, 0 skipped.", "0 sent, 0 failed, 1 skipped."):
            page.goto(gantry.page(f"dlq/{group}/"))
            send = page.get_by_role("button", name="Resend", exact=True)
            expect(send).to_be_disabled()
            page.get_by_label("Select all on this page").check()
            expect(page.get_by_label(f"Select {msg_id}")).to_be_checked()
            page.get_by_label("Select all on this page").uncheck()
            page.get_by_label(f"Select {msg_id}").check()
            expect(page.get_by_text("1 selected")).to_be_visible()
            send.click()
            expect(page.get_by_text(outcome)).to_be_visible()
        wait_until(lambda: len(traffic.accepted) > 0, "the consumer to receive it")
        assert [each.msg_id for each in traffic.accepted].count(msg_id) == 1


def follow(page: Page, text: str) -> None:
    """Reload until the page has a link with the text, and click the link."""
    wait_for_link(page, text)
    page.get_by_role("link", name=text, exact=True).click()


def wait_for_link(page: Page, text: str) -> None:
    def there() -> bool:
        page.reload()
        return page.get_by_role("link", name=text, exact=True).count() > 0

    wait_until(there, f"a link {text!r} on {page.url}")


def number(text: str) -> int:
    return int(re.sub(r"\D", "", text) or 0)
