"""The picture of a journey: numbered attempts, labels that fit, zoom."""

import uuid
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until, wait_until_fits

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.must_beat(13)]


def test_a_journey_is_readable_and_zooms_by_buttons_and_keys(page: Page, gantry: Gantry) -> None:
    name = f"journey-{uuid.uuid4().hex[:8]}"
    with Traffic(gantry.namesrv_addr, name, f"{name}-group") as traffic:
        msg_id = traffic.send(b"{}", "k")
        page.goto(gantry.page(f"traces/{msg_id}/"))
        wait_until(lambda: is_dead_lettered(page), "two attempts and the dead letter in the trace")
        assert page.locator("svg.journey .attempt").all_text_contents() == ["1", "2"]
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 800})
            wait_until_fits(page)
            assert not overlaps(page.locator("svg.journey .tick-label"))

        frame = page.locator(".journey-scroll")
        smaller = page.get_by_role("button", name="Zoom out")
        expect(smaller).to_be_disabled()
        page.get_by_role("button", name="Zoom in").click()
        assert hidden_px(frame) > 0
        wait_until_fits(page)
        smaller.click()
        assert hidden_px(frame) == 0
        frame.focus()
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert hidden_px(frame) > 0
        page.keyboard.press("0")
        assert hidden_px(frame) == 0


def is_dead_lettered(page: Page) -> bool:
    page.reload()
    drawing = page.locator("svg.journey")
    return drawing.locator("rect.failure").count() == 2 and drawing.locator("rect.dead").count() > 0


def hidden_px(frame: Locator) -> int:
    """Width of the drawing beyond its frame, pixels."""
    return int(frame.evaluate("frame => frame.scrollWidth - frame.clientWidth"))


def overlaps(labels: Locator) -> bool:
    boxes = [label.bounding_box() for label in labels.all()]
    places = [(box["x"], box["x"] + box["width"]) for box in boxes if box is not None]
    return any(end > begin for (_, end), (begin, _) in pairwise(sorted(places)))
