"""Access control in the browser, on a Gantry started with `--secure`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Gantry, signed_in, started
from tests.browser.test_every_page import SERIOUS
from tests.browser.waiting import wait_until_fits

PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gantry]:
    with started(tmp_path_factory.mktemp("secured"), "--secure") as gantry:
        yield gantry


@pytest.fixture
def page(secured: Gantry, chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    with signed_in(secured, chromium, tmp_path / "access.png") as page:
        yield page


def test_a_decision_is_asked_by_keyboard_and_shared_by_address(page: Page, secured: Gantry) -> None:
    page.goto(secured.page("create-acl-user/"))
    page.get_by_label("Name").fill("writer")
    page.get_by_label("Access control list").fill("Allow Pub on Topic:orders*")
    page.get_by_role("button", name="Create user").click()
    expect(page.get_by_text("secretKey")).to_be_visible()

    page.goto(secured.page("acl-users/"))
    page.get_by_role("link", name="Access check").click()
    page.get_by_label("Account").focus()
    page.keyboard.type("writer")
    for text in ("", "orders-eu", "", "10.1.2.3"):  # action, topic, group, address
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="broker-a allowed")).to_be_visible()
    expect(page.get_by_text("Allow Pub on Topic:orders*").first).to_be_visible()

    address = page.url
    page.get_by_label("Action").select_option("consume")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Required for this action.")).to_be_visible()
    page.get_by_label("Consumer group").fill("billing")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="broker-a denied")).to_be_visible()
    expect(page.get_by_text("16 NO_PERMISSION")).to_be_visible()

    page.goto(address)
    expect(page.get_by_role("heading", name="broker-a allowed")).to_be_visible()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.reload()  # colors change gradually in an open page
        serious = [
            each["id"]
            for each in Axe().run(page).response["violations"]
            if each["impact"] in SERIOUS
        ]
        assert not serious, theme
    page.set_viewport_size(PHONE)
    wait_until_fits(page)
    page.get_by_role("link", name="writer").click()
    expect(page.get_by_role("heading", name="writer", exact=False).first).to_be_visible()
