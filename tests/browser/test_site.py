"""The documentation site in a browser: below the path /mq/ of a console, and from plain files."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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
def reader(console: Gantry, files: str, chromium: Browser) -> Iterator[Page]:
    """A page; requests beyond console and files, missing files and policy violations fail the
    test.
    """
    context = chromium.new_context(viewport=DESKTOP, locale="en-GB")
    context.set_default_timeout(PAGE_TIMEOUT_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if is_fault(said.text) else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "response",
        lambda answer: check(
            answer, files if answer.url.startswith(files) else console.url, faults
        ),
    )
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
    ("question", "title"),
    [
        ("resend dead letters?", "Resend dead letters"),
        ("secure it?", "Secure a cluster"),
        ("run three replicas?", "Run three replicas"),
    ],
)
def test_a_question_of_a_newcomer_is_two_clicks_away(
    reader: Page, console: Gantry, question: str, title: str
) -> None:
    """The first click is on the console's link to the documentation."""
    sign_in(reader, console)
    reader.get_by_role("link", name="Documentation").click()
    expect(reader.get_by_role("cell", name=question)).to_be_visible()
    reader.get_by_role("cell", name=title).get_by_role("link").click()
    expect(reader.locator("h1")).to_contain_text(title)


@pytest.fixture(scope="module")
def files(site: Path) -> Iterator[str]:
    """The address of the built site on a server of files."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(params=["console", "files"])
def root(request: pytest.FixtureRequest) -> str:
    """The address of the site: below /docs/ of the console, or that of the files."""
    found = request.getfixturevalue(request.param)
    return found if isinstance(found, str) else f"{found.url}/docs"


@pytest.mark.parametrize(
    ("first", "words", "title", "page"),
    [
        ("index.html", "resend dead letters", "Resend dead letters", "resend-dead-letters"),
        ("index.html", "haAllowedAddresses", "Settings by key", "reference/keys"),
        ("zh/index.html", "死信", "控制台", "zh/console"),
    ],
)
def test_the_search_finds_pages(
    reader: Page, root: str, first: str, words: str, title: str, page: str
) -> None:
    reader.goto(f"{root}/{first}")
    field = reader.locator("input.md-search__input")
    field.fill(words)
    field.press("End")  # the theme reads the field when a key is released, not when it is filled
    results = reader.locator(".md-search-result__list")
    expect(results.get_by_role("heading", name=title).first).to_be_visible()
    found = results.locator(f'a[href*="/{page}.html"]')
    found.first.click()
    expect(reader).to_have_url(re.compile(rf"^{re.escape(root)}/.*{page}\.html"))


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
