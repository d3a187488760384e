"""The columns of a list: chosen in the menu, kept for the next visit."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_column_of_the_brokers_goes_and_comes_back(page: Page, gantry: Gantry) -> None:
    address = gantry.page("brokers/")
    page.goto(address)
    head = page.get_by_role("columnheader", name="Version", exact=True)
    expect(head).to_be_visible()
    page.locator("details.columns > summary").click()
    page.get_by_label("Version", exact=True).uncheck()
    expect(head).to_have_count(0)
    expect(page).to_have_url(re.compile(r"columns=broker"))
    page.goto(address)
    expect(page.get_by_role("columnheader", name="Broker", exact=True)).to_be_visible()
    expect(head).to_have_count(0)
    page.locator("details.columns > summary").click()
    page.get_by_label("Version", exact=True).check()
    expect(head).to_be_visible()
