"""The console below the path /mq/: pages, live metrics, API and API documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.browser.conftest import Gantry, is_fault, sign_in
from tests.browser.consoles import running_console, status

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.must_beat(39)]

LIVE_TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def console(gantry: Gantry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gantry]:
    """A second console of the cluster, below /mq/."""
    home = tmp_path_factory.mktemp("below")
    with running_console(home, gantry.namesrv_addr, "/mq/") as console:
        yield console


def test_every_page_works_below_a_prefix(
    console: Gantry, chromium: Browser, tmp_path: Path
) -> None:
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    faults: list[str] = []
    sockets: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if is_fault(said.text) else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("response", lambda answer: check(answer, console.url, faults))
    page.on("websocket", lambda opened: sockets.append(opened.url))
    sign_in(page, console)
    assert page.url.startswith(f"{console.url}/")
    expect(page.locator("#live-state")).to_have_attribute(
        "data-state", "live", timeout=LIVE_TIMEOUT_MS
    )
    assert all("/mq/ws/" in url for url in sockets)
    links = page.locator("nav.nav-areas a, .menu-list a")
    addresses = [links.nth(index).get_attribute("href") for index in range(links.count())]
    assert len(addresses) > 8
    for address in addresses:
        assert address is not None
        assert address.startswith("/mq/"), address
        page.goto(f"{console.url}{address.removeprefix('/mq')}")
    page.goto(console.page("topics/?type=system"))
    page.get_by_role("link", name=re.compile("TBW102|SCHEDULE_TOPIC_XXXX")).first.click()
    assert "/mq/clusters/local/topics/" in page.url
    page.screenshot(path=tmp_path / "below.png")
    context.close()
    assert not faults


def check(answer: Response, base: str, faults: list[str]) -> None:
    """All requests are below the prefix, and no request fails."""
    within = answer.url == base or answer.url.startswith((f"{base}/", "data:"))
    if answer.status >= 400 or not within:
        faults.append(f"{answer.status} {answer.url}")


@pytest.mark.must_beat(28)
def test_a_call_is_tried_out_on_the_page_of_the_api(console: Gantry, chromium: Browser) -> None:
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    sign_in(page, console)
    try_out(page, console)
    context.close()


def try_out(page: Page, console: Gantry) -> None:
    page.goto(f"{console.url}/api/docs/")
    page.locator("#operations-clusters-list_clusters .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    with page.expect_response(lambda answer: answer.url.endswith("/mq/api/v1/clusters")) as asked:
        page.get_by_role("button", name="Execute").click()
    assert asked.value.status == 200
    expect(page.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")


def test_a_proxy_may_cut_the_prefix_off(console: Gantry) -> None:
    port = int(console.url.split(":")[2].split("/")[0])
    for path in ("/livez", "/mq/livez", "/accounts/login/", "/mq/accounts/login/"):
        assert status(port, path) == 200, path
    assert status(port, "/mq") == 302
    assert status(port, "/mqx/livez") == 404
