"""Charts, times and values whose place or text depended on the moment of a measurement."""

import re
from typing import Final

import pytest
from playwright.sync_api import Page, Route, ViewportSize

from tests.browser.conftest import Gantry
from tests.browser.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
#: Draws a chart with two lines and returns the height of its plot before the first frame, px.
PLOT_PX: Final = """async () => {
  const box = document.createElement("div");
  box.className = "chart";
  document.querySelector("main").append(box);
  const lines = ["Produce rate", "Consume rate"].map(label => ({label, color: "--gantry-in"}));
  gantry.timeChart(box, lines).set([[1, 2, 3], [1, 2, 3], [3, 2, 1]]);
  await null;
  return [box.querySelector(".u-wrap").offsetHeight, box.clientHeight];
}"""
AGE_MS: Final = "() => Date.now() - performance.timeOrigin"
#: Lateness of the script, ms: a multiple of the two seconds that read as "just now".
LATE_MS: Final = 6_000
ADD_TIME: Final = """() => {
  const time = document.createElement("time");
  time.dataset.ms = Date.now();
  time.id = "now";
  document.body.append(time);
}"""
#: Short values that take several lines.
BROKEN: Final = """() => [...document.querySelectorAll(".facts dd")].filter(value => {
  const range = document.createRange();
  range.selectNodeContents(value);
  const line = parseFloat(getComputedStyle(value).lineHeight);
  return value.textContent.trim().length < 12 && range.getBoundingClientRect().height > 1.7 * line;
}).map(value => value.parentElement.textContent)"""


def test_the_legend_leaves_the_plot_its_height_from_the_first_measurement(
    page: Page, gantry: Gantry
) -> None:
    page.goto(gantry.page())
    plot_px, box_px = page.evaluate(PLOT_PX)
    assert plot_px > 0.7 * box_px


def test_a_late_script_puts_no_time_into_the_future(page: Page, gantry: Gantry) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/gantry/app\.js"), hold)
    page.goto(gantry.page("brokers/"), wait_until="commit")
    wait_until(lambda: page.evaluate(AGE_MS) > LATE_MS and held != [], "the late script")
    page.evaluate(ADD_TIME)
    held[0].continue_()
    time = page.locator("#now")
    wait_until(lambda: time.text_content() != "", "the text of the time")
    assert not re.match("in ", time.text_content() or "")


def test_short_values_of_a_broker_stay_on_one_line_of_a_phone(page: Page, gantry: Gantry) -> None:
    page.set_viewport_size(PHONE)
    page.goto(gantry.page("brokers/broker-a/"))
    assert page.locator(".facts dd").count() > 20
    assert page.evaluate(BROKEN) == []
