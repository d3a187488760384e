"""Labels of a topic: written in the form with the keyboard, shown, and the filter of a list."""

import re
from typing import Final
from uuid import uuid4

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
BESIDE: Final = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_labels_are_written_with_the_keyboard_and_filter_the_list(
    page: Page, gantry: Gantry
) -> None:
    mark = uuid4().hex[:8]
    topic, other = f"labeled-{mark}", f"bare-{mark}"
    with (
        Traffic(gantry.namesrv_addr, topic, f"readers-{mark}"),
        Traffic(gantry.namesrv_addr, other, f"others-{mark}"),
    ):
        page.set_viewport_size(PHONE)
        page.goto(gantry.page(f"topics/{topic}/"))
        page.get_by_role("link", name="Add labels").click()
        page.get_by_label("Key").first.fill("Team")
        page.keyboard.press("Tab")
        page.keyboard.type(f"two {mark}")
        page.keyboard.press("Enter")
        expect(page.locator(".field-error")).to_contain_text("a key begins with a letter")
        expect(page.get_by_label("Key").first).to_be_focused()
        assert page.evaluate(BESIDE) == 0
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("team")
        page.keyboard.press("Enter")
        chip = page.get_by_role("link", name=f"team=two {mark}", exact=True)
        expect(chip).to_be_visible()
        page.goto(gantry.page(f"topics/?q={mark}"))
        names = page.locator("td.name > a")
        expect(names).to_have_text([other, topic])
        chip.click()
        expect(page).to_have_url(re.compile("label"))
        expect(names).to_have_text([topic])
        search = page.get_by_role("searchbox", name="Search topics")
        expect(search).to_have_value(f'{mark} label:team="two {mark}"')
        assert page.evaluate(BESIDE) == 0
        search.fill(f"{mark} label:absent")
        expect(page.get_by_text("No topic matches")).to_be_visible()
        page.goto(gantry.page(f"topics/{topic}/labels/"))
        page.get_by_role("button", name="Remove label 1").click()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("link", name="Add labels")).to_be_visible()
