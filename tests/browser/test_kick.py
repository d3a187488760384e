"""A client is kicked on a phone: consequences, reason, outcome."""

import uuid
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until, wait_until_fits

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
#: The table of queues and heirs has its whole width inside the card.
WHOLE = "each => each.scrollWidth <= each.clientWidth"


def test_the_queues_of_a_client_and_the_kick_fit_on_a_phone(page: Page, gantry: Gantry) -> None:
    name = f"kicked-with-a-long-name-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    page.set_viewport_size(PHONE)
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        traffic.accepting.set()
        wait_until(lambda: bool(traffic.accepted), "the group to consume")
        page.goto(gantry.page(f"groups/{group}/consumers/"))
        link = page.locator("#live tbody td.mono > a").first
        client = link.inner_text()
        page.goto(gantry.page(f"clients/{quote(client, safe='')}/"))
        wait_until_fits(page)
        page.get_by_role("link", name="Kick client…").click()
        expect(page.get_by_role("heading", name="Consequences")).to_be_visible()
        wait_until_fits(page)
        wait_until(lambda: has_queue(page, name), "the queues of the client")
        assert page.locator(".table-wrap").evaluate(WHOLE)
        wait_until_fits(page)
        button = page.get_by_role("button", name="Kick client")
        button.click()
        expect(button).to_be_visible()  # the browser asks for the reason
        page.get_by_label("Reason").fill("a queue is stuck")
        button.click()
        expect(page.locator(".card [role=status]")).to_contain_text("a queue is stuck")
        wait_until_fits(page)
        expect(page.get_by_text("reconnected after")).to_be_visible()
        wait_until_fits(page)


def has_queue(page: Page, topic: str) -> bool:
    """Open the preview again; return whether the client reports a queue of the topic."""
    page.reload()
    return page.locator(".table-wrap tbody tr", has_text=topic).count() > 0
