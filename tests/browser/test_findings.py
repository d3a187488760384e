"""Health findings in the browser: a group falls behind, the finding appears, and goes again."""

import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until, wait_until_fits

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
#: A report is up to 12 s old, and pages poll every 12 s.
SOON_MS = 120_000


def test_a_group_that_falls_behind_is_a_finding_until_it_consumes(
    page: Page, gantry: Gantry
) -> None:
    topic = f"late-{uuid.uuid4().hex[:8]}"
    group = f"{topic}-group"
    finding = page.locator(f'[data-finding="group-offline/group/{group}"]')
    consume(gantry, topic, group)
    # Sends one more message to the topic, which the group does not consume.
    consume(gantry, topic, f"{topic}-other")

    page.goto(gantry.page())
    verdict = page.locator("#verdict section")
    expect(verdict).to_have_attribute("data-verdict", "critical", timeout=SOON_MS)
    verdict.get_by_role("link", name="All findings").click()
    expect(page.get_by_role("heading", name="Findings", exact=True)).to_be_visible()
    expect(finding).to_contain_text("No client is connected. Lag: 1", timeout=SOON_MS)
    page.get_by_role("navigation", name="Severity").get_by_role("link", name="advice").click()
    expect(finding).to_have_count(0)
    page.get_by_role("navigation", name="Severity").get_by_role("link", name="critical").click()
    expect(finding).to_have_count(1)

    page.set_viewport_size({"width": 390, "height": 800})
    wait_until_fits(page)
    link = finding.get_by_role("link", name=group, exact=True)
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#object-findings")).to_contain_text("No client is connected")
    wait_until_fits(page)

    with Traffic(gantry.namesrv_addr, topic, group) as traffic:
        traffic.accepting.set()
        expect(finding).to_have_count(0, timeout=SOON_MS)


def consume(gantry: Gantry, topic: str, group: str) -> None:
    """Send a message to the topic, and consume it with a group that leaves afterwards."""
    with Traffic(gantry.namesrv_addr, topic, group) as traffic:
        traffic.accepting.set()
        wait_until(lambda: bool(traffic.accepted), f"{group} to consume")
