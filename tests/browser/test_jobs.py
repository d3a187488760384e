"""The page of jobs: the menu of maintenance, and the picture of the jobs on a time axis."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.test_journey import overlaps
from tests.browser.waiting import wait_until_fits

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_job_is_started_by_the_menu_and_drawn(page: Page, gantry: Gantry) -> None:
    page.goto(gantry.page("jobs/"))
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.locator(".job-menu > summary").click()
        expect(page.locator("#start-debug-bundle")).to_be_visible()
        wait_until_fits(page)
        page.keyboard.press("Escape")
        expect(page.locator("#start-debug-bundle")).to_be_hidden()
    page.locator(".job-menu > summary").click()
    page.locator("#start-debug-bundle").click()
    expect(page).to_have_url(re.compile(r"/jobs/\d+/$"))
    expect(page.locator("#job-progress")).to_be_visible()
    number = page.url.rstrip("/").rpartition("/")[2]

    page.goto(gantry.page("jobs/"))
    bar = page.locator(f'.job-timeline a[data-job="{number}"]')
    expect(bar).to_have_class("succeeded")  # by the feed, without a reload
    expect(bar).to_have_attribute("href", re.compile(rf"/jobs/{number}/$"))
    expect(page.get_by_role("link", name=re.compile(rf"#{number}$"))).to_be_visible()
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_until_fits(page)
        assert not overlaps(page.locator(".job-timeline .tick-label"))
