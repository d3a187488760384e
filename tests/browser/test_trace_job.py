"""From traces to charts in a browser: start the job by button, watch the job, read the chart."""

import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.timeout(500),
    pytest.mark.usefixtures("spark"),
]

JOB_TIMEOUT_S = 300
MESSAGES = 30
#: The traffic sends one extra message to create the topic.
TRACED = MESSAGES + 1


def test_traces_become_figures(page: Page, gantry: Gantry) -> None:
    name = f"traced-{uuid.uuid4().hex[:8]}"
    group = f"{name}-group"
    with Traffic(gantry.namesrv_addr, name, group) as traffic:
        traffic.accepting.set()
        for count in range(MESSAGES):
            traffic.send(b"measure me", f"key-{count}")
        wait_until(lambda: len(traffic.accepted) == TRACED, "every message to be consumed")
    # The end of the traffic flushes all trace records.

    page.goto(gantry.page())
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("button", name="Refresh analytics", exact=True).click()
    expect(page.locator("#job-progress")).to_be_visible()
    seen = watch(page)
    assert seen[-1] == ("succeeded", 100.0)
    percents = [percent for _state, percent in seen]
    assert percents == sorted(percents), "progress never goes back"
    assert len(set(percents)) > 2, f"the progress moved while the page stood still: {seen}"

    page.get_by_role("link", name="Open analytics").click()
    expect(page.get_by_role("heading", name="Analytics")).to_be_visible()
    row = page.locator("#topics-table tbody tr").filter(has_text=name)
    expect(row.get_by_role("cell").nth(1)).to_have_text(str(TRACED))
    expect(row.get_by_role("cell").nth(4)).to_have_text(str(TRACED))
    row.get_by_role("link", name=name).click()
    expect(page.locator("#total-sends")).to_have_text(str(TRACED))
    expect(page.locator("#total-consume-success")).to_have_text("100 %")
    expect(page.locator("#groups-table")).to_contain_text(group)
    chart = page.locator("#throughput-chart")
    expect(chart.locator("canvas")).to_be_visible()
    assert int(chart.get_attribute("data-points") or 0) > 0
    assert is_drawn(page), "the chart has lines, not only axes"


def watch(page: Page) -> list[tuple[str, float]]:
    """Return the states that the job's page shows until the end of the job, without a reload."""
    seen: list[tuple[str, float]] = []

    def is_over() -> bool:
        state, percent = page.evaluate(
            """() => [
                document.querySelector(".job-state .badge").textContent.trim(),
                document.getElementById("job-progress").value,
            ]"""
        )
        if not seen or seen[-1] != (state, percent):
            seen.append((state, percent))
        return state in {"succeeded", "failed", "cancelled"}

    page.evaluate("window.isTheSamePage = true")
    wait_until(is_over, "the job to end", JOB_TIMEOUT_S)
    assert page.evaluate("window.isTheSamePage"), "the page was loaded once"
    return seen


def is_drawn(page: Page) -> bool:
    """Return True when the chart has pixels in the colour of the consumed-messages line."""
    found: bool = page.evaluate(
        """() => {
            const canvas = document.querySelector("#throughput-chart canvas");
            const probe = document.createElement("canvas").getContext("2d");
            const root = getComputedStyle(document.documentElement);
            probe.fillStyle = root.getPropertyValue("--gantry-out").trim();
            probe.fillRect(0, 0, 1, 1);
            const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
            const context = canvas.getContext("2d");
            const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
            for (let at = 0; at < data.length; at += 4) {
                const near = (one, other) => Math.abs(one - other) < 4;
                const opaque = data[at + 3] > 200;
                if (opaque && near(data[at], red) && near(data[at + 1], green)
                    && near(data[at + 2], blue)) return true;
            }
            return false;
        }"""
    )
    return found
