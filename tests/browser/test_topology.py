"""The live topology in a browser: drawing, keyboard, table, refresh."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Gantry
from tests.browser.test_every_page import serious
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until_fits

TOPIC, GROUP = "drawn-orders", "drawn-billing"
#: Time for a refresh with the newest offsets, milliseconds.
REFRESH_MS = 60_000


@pytest.fixture
def shop(gantry: Gantry) -> Iterator[Traffic]:
    """A topic with a connected consumer group."""
    with Traffic(gantry.namesrv_addr, TOPIC, GROUP) as traffic:
        traffic.send(b'{"order": 1}', "drawn-1")
        yield traffic


def test_the_keyboard_moves_along_the_edges_and_opens_an_object(
    page: Page, gantry: Gantry, shop: Traffic
) -> None:
    page.goto(gantry.page("topology/"))
    topic = page.locator(f'[data-node="topic:{TOPIC}"]')
    group = page.locator(f'[data-node="group:{GROUP}"]')
    edge = page.locator(f'[data-edge="topic:{TOPIC} → group:{GROUP}"]')
    expect(edge).to_have_count(1, timeout=REFRESH_MS)
    page.locator('[data-node^="namesrv:"]').focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator('[data-node^="broker:"]')).to_be_focused()
    topic.focus()
    page.keyboard.press("ArrowRight")
    expect(group).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(topic).to_be_focused()
    page.keyboard.press("f")
    expect(page.get_by_text(f"Topic {TOPIC} and neighbours")).to_be_visible()
    expect(page.locator("[data-node]")).to_have_count(
        3, timeout=REFRESH_MS
    )  # the broker, the topic, the group
    group.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=GROUP)).to_be_visible()


def test_filter_and_table_have_the_objects_of_the_drawing(
    page: Page, gantry: Gantry, shop: Traffic
) -> None:
    page.goto(gantry.page("topology/"))
    page.get_by_label("Search objects").fill(TOPIC)
    expect(page.locator("[data-node]")).to_have_count(3, timeout=REFRESH_MS)
    expect(page.locator("#objects-table tbody tr")).to_have_count(3)
    expect(page).to_have_url(re.compile(f"q={TOPIC}"))
    page.locator("#objects").get_by_role("link", name="Connections").first.click()
    expect(page.locator("#connections-table tbody tr")).to_have_count(2)
    expect(page.locator("[data-edge]")).to_have_count(2)
    page.locator("#connections-table").get_by_role("link", name="Lag").click()
    expect(page.locator('#connections-table th[aria-sort="descending"]')).to_have_text("Lag")


def test_a_refresh_keeps_focus_and_zoom(page: Page, gantry: Gantry, shop: Traffic) -> None:
    page.goto(gantry.page(f"topology/?focus=topic:{TOPIC}"))
    topic = page.locator(f'[data-node="topic:{TOPIC}"]')
    expect(topic).to_be_visible(timeout=REFRESH_MS)
    expect(page.locator("[data-node]")).to_have_count(3, timeout=REFRESH_MS)
    page.get_by_role("button", name="Zoom in").click()
    width = page.locator("#topology").evaluate(
        "element => element.style.getPropertyValue('--topology-width')"
    )
    page.locator('[data-node^="broker:"]').focus()
    page.keyboard.press("ArrowRight")
    expect(topic).to_be_focused()
    with page.expect_response(lambda answer: "/topology/?focus=" in answer.url):
        pass  # the next refresh
    expect(topic).to_be_focused()
    expect(page.locator("#topology")).to_have_attribute("style", f"--topology-width: {width};")
    expect(page.locator(".edge.near")).not_to_have_count(0, timeout=REFRESH_MS)


def test_the_topology_is_accessible_and_fits_a_phone(
    page: Page, gantry: Gantry, shop: Traffic
) -> None:
    page.emulate_media(reduced_motion="reduce")
    axe = Axe()
    for query in ("", "?table=connections", f"?focus=topic:{TOPIC}&steps=2&system=1&retry=1"):
        page.goto(gantry.page(f"topology/{query}"))
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert not serious(axe.run(page), f"topology{query} ({scheme})")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(gantry.page("topology/"))
    wait_until_fits(page)
    table = page.locator("#objects").bounding_box()
    drawing = page.locator(".topology-picture").bounding_box()
    assert table is not None
    assert drawing is not None
    assert table["y"] < drawing["y"], "the table comes first"
