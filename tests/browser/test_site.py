"""The documentation site in a browser, served by a console below the path /mq/."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PAGE_TIMEOUT_MS, Gantry, is_fault, sign_in
from tests.browser.consoles import running_console
from tests.browser.test_sub_path import check

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}
#: Pages with wide tables, long code, pictures, and generated pages.
WIDE = ("index", "concepts", "settings", "mqadmin", "tour", "reference/keys", "reference/python")


@pytest.fixture(scope="module")
def console(
    gantry: Gantry, site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gantry]:
    """A console with the site, below /mq/."""
    home = tmp_path_factory.mktemp("documented")
    with running_console(
        home, gantry.namesrv_addr, "/mq/", CONSOLE_DOCUMENTATION=str(site)
    ) as console:
        yield console


@pytest.fixture
def reader(console: Gantry, chromium: Browser) -> Iterator[Page]:
    """A page; requests beyond the console, missing files and policy violations fail the test."""
    context = chromium.new_context(viewport=DESKTOP, locale="en-GB")
    context.set_default_timeout(PAGE_TIMEOUT_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if is_fault(said.text) else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("response", lambda answer: check(answer, console.url, faults))
    yield page
    context.close()
    assert not faults


def test_the_console_leads_to_the_site_and_to_its_answers(reader: Page, console: Gantry) -> None:
    sign_in(reader, console)
    reader.get_by_role("link", name="Documentation").click()
    expect(reader).to_have_url(f"{console.url}/docs/index.html")
    reader.locator(".md-tabs").get_by_role("link", name="How to", exact=True).click()
    left = reader.locator(".md-nav--primary")
    left.get_by_role("link", name="Resend dead letters", exact=True).click()
    expect(reader.locator("h1")).to_contain_text("Resend dead letters")


@pytest.mark.parametrize(
    ("first", "words", "title"),
    [
        ("index.html", "resend dead letters", "Resend dead letters"),
        ("index.html", "haAllowedAddresses", "Settings"),
        ("zh/index.html", "死信", "控制台"),
    ],
)
def test_the_search_finds_pages(
    reader: Page, console: Gantry, first: str, words: str, title: str
) -> None:
    reader.goto(f"{console.url}/docs/{first}")
    field = reader.locator("input.md-search__input")
    field.fill(words)
    field.press("End")  # the theme reads the field when a key is released, not when it is filled
    results = reader.locator(".md-search-result__list")
    expect(results.get_by_role("heading", name=title).first).to_be_visible()


def test_the_language_changes_and_stays_on_the_page(reader: Page, console: Gantry) -> None:
    reader.goto(f"{console.url}/docs/quickstart.html")
    for language, heading in (("zh", "快速开始"), ("en", "Quick start")):
        reader.locator(".md-select button").first.hover()
        reader.locator(f'.md-select__link[hreflang="{language}"]').click()
        expect(reader.locator("h1")).to_contain_text(heading)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone(reader: Page, console: Gantry, scheme: str) -> None:
    reader.emulate_media(color_scheme=scheme)
    for size in (PHONE, DESKTOP):
        reader.set_viewport_size(size)
        for name in WIDE:
            reader.goto(f"{console.url}/docs/{name}.html")
            widths = reader.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert widths[0] <= widths[1], f"{name} at {size['width']}"
            broken = reader.evaluate(
                "[...document.images].filter(it => it.complete && !it.naturalWidth).length"
            )
            assert not broken, name
    expected = "slate" if scheme == "dark" else "default"
    expect(reader.locator("body")).to_have_attribute("data-md-color-scheme", expected)
