"""Every page of the console, found by following links.

Checks one page per route, in both themes: axe reports no serious violation, no resource is loaded
from another host, and no link is broken. The reference of the API is checked on a phone.
"""

from collections.abc import Iterator
from typing import Final, Literal
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, resolve
from playwright.sync_api import Page, Request, Response, ViewportSize

from tests.browser.conftest import Gantry
from tests.browser.traffic import Traffic
from tests.browser.waiting import wait_until

SERIOUS = {"serious", "critical"}
PAGES_MAX = 120
#: Routes to skip: external documentation and file downloads.
NOT_PAGES = ("/api/", "/docs/", "/accounts/logout", "/static/")
CONTRAST = {"runOnly": ["color-contrast"]}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
BESIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Walk:
    """Follows links, one address per route."""

    def __init__(self, page: Page, gantry: Gantry) -> None:
        self.page, self.root = page, gantry.url
        self.seen: set[str] = set()
        self.foreign: list[str] = []
        self.missing: list[str] = []
        page.on("request", self._asked)
        page.on("response", self._answered)

    def pages(self, first: str) -> Iterator[str]:
        """Open each page and yield the address."""
        waiting = [first]
        while waiting:
            address = waiting.pop(0)
            kind = self._kind(address)
            if kind is None or kind in self.seen or len(self.seen) >= PAGES_MAX:
                continue
            self.seen.add(kind)
            headers = self.page.request.head(address).headers
            if "text/html" not in headers["content-type"] or "content-disposition" in headers:
                continue
            self.page.goto(address)
            yield address
            hrefs = self.page.eval_on_selector_all(
                "a[href]:not([download])", "links => links.map(link => link.href)"
            )
            waiting += [urldefrag(urljoin(address, href)).url for href in hrefs]

    def _kind(self, address: str) -> str | None:
        """The route of an address; None for addresses outside the console."""
        path = urlsplit(address).path
        if not address.startswith(self.root) or path.startswith(NOT_PAGES):
            return None
        try:
            return resolve(path).route
        except Resolver404:
            self.missing.append(address)
            return None

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.root, "data:", "blob:")):
            self.foreign.append(request.url)

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.missing.append(f"{response.status} {response.url}")


@pytest.fixture
def busy(gantry: Gantry) -> Iterator[Traffic]:
    """Test data: a topic, a group, messages, a dead letter."""
    with Traffic(gantry.namesrv_addr, "walked", "walkers") as traffic:
        traffic.send(b'{"order": 1}', "walk-1")
        wait_until(lambda: len(traffic.refused) >= 2, "the message was refused twice")
        yield traffic


@pytest.mark.must_beat(38)
@pytest.mark.timeout(600)
def test_every_page_is_accessible_and_complete(page: Page, gantry: Gantry, busy: Traffic) -> None:
    axe, found = Axe(), []
    walk = Walk(page, gantry)
    page.emulate_media(reduced_motion="reduce")  # no color transitions
    for address in walk.pages(gantry.page()):
        found += serious(axe.run(page), f"{address} (light)")
        page.emulate_media(color_scheme="dark")
        found += serious(axe.run(page, options=CONTRAST), f"{address} (dark)")
        page.emulate_media(color_scheme="light")
    assert not found, "\n".join(found)
    assert not walk.foreign, f"loaded from elsewhere: {walk.foreign}"
    assert not walk.missing, f"links that lead nowhere: {walk.missing}"
    assert len(walk.seen) > 20, f"only these pages were found: {sorted(walk.seen)}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_reference_of_the_api_is_accessible(
    page: Page, gantry: Gantry, theme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.goto(f"{gantry.url}/api/docs/")
    page.locator(".opblock").first.wait_for()
    assert not serious(Axe().run(page), theme)
    assert page.evaluate(BESIDE) == 0


def serious(results: AxeResults, where: str) -> list[str]:
    """Serious violations as lines: page, rule, element."""
    return [
        f"{where}: {violation['id']}: {violation['help']}: {node['html'][:160]}"
        for violation in results.response["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"][:3]
    ]
