"""`make screenshots`: the console's main pages in both themes, for docs/images.

The script runs the demo shop in a temporary folder on free ports, fills it, see
`tools.screenshot_demo`, and visits the pages of `tools.screenshot_pages` in a Chromium: one
sign-in, one context per language, TABS pages at a time.

`make screenshots ARGS="--review FOLDER"` takes the pictures of a review instead: all REVIEW_PAGES
in the WIDTHS, both themes and both languages, whole pages. The command prints the pages that are
wider than the window, and the texts that are cut off, or English in the Chinese pages.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

import click
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from playwright.async_api import Error as BrowserError

from tools.screenshot_demo import CLUSTER, PASSWORD, ROOT, demo, fill, webhook
from tools.screenshot_pages import FORMS, OBJECTS, PAGES, REVIEW_PAGES
from tools.screenshot_picture import HEIGHT, NotWholeError, picture, settle

IMAGES: Final = ROOT / "docs" / "images"
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, Theme]] = ("light", "dark")
LANGUAGES: Final = ("en", "zh-hans")
#: Widths of a review, and size of a picture in docs/images, pixels.
WIDTHS: Final = (1280, 1440, 390)
WIDTH: Final = 1360
#: Pages at the same time: while one page waits for charts, another page is drawn.
TABS: Final = 4
#: Maximum time of an answer, of a page on a busy machine, ms.
ANSWER_MS_MAX: Final = 120_000
#: Maximum time until a page has the link of an object, ms.
LINK_MS_MAX: Final = 5_000
#: Elements whose text does not fit, and, in Chinese pages, texts of several English words that are
#: no data: code, inputs and elements with `translate="no"` are data.
FAULTS: Final = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const cut = [...document.querySelectorAll("main *, header *")].filter(each =>
    each.children.length === 0 && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
    && ["hidden", "clip"].includes(getComputedStyle(each).overflowX)
    && getComputedStyle(each).textOverflow !== "ellipsis").map(each => each.textContent.trim());
  const data =
    "#swagger-ui, script, style, code, pre, textarea, [translate=no], .name, svg, option";
  const words = /[A-Za-z]{3,} [a-z]{2,} [a-z]{2,}/, chinese = /[\\u4e00-\\u9fff]/;
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest(data)) continue;
    const text = walker.currentNode.textContent.trim();
    if (words.test(text) && !chinese.test(text)) texts.push(text);
  }
  return {wide, cut, english: document.documentElement.lang.startsWith("zh") ? texts : []};
}"""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which pictures to take, and where to."""

    folder: Path
    pages: Mapping[str, str]
    widths: tuple[int, ...]
    themes: tuple[Theme, ...]
    languages: tuple[str, ...]
    is_review: bool
    #: Lines about pages, printed at the end.
    faults: list[str] = field(default_factory=list)

    def file(self, name: str, width: int, theme: Theme, language: str) -> Path:
        """The file of a picture."""
        about = f"{width}-{theme}-{language}" if self.is_review else theme
        return self.folder / f"{name}-{about}.png"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--review", type=click.Path(path_type=Path), help="Pictures of a review, here.")
@click.option("--url", default="", help="A running demo, with the password of this script.")
@click.option("--only", default="", help="Only pages whose name has one of these texts: a,b.")
@click.option("--width", type=int, multiple=True, default=WIDTHS, help="Of a review.")
@click.option("--theme", multiple=True, default=THEMES, help="Of a review.")
@click.option("--language", multiple=True, default=LANGUAGES, help="Of a review.")
def main(review: Path | None, url: str, only: str, **sizes: tuple[Any, ...]) -> None:
    """Write the pictures of the console's main pages to docs/images."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on the path; tools/setup.sh browser installs one.")
    pages = {
        name: path
        for name, path in (REVIEW_PAGES if review else PAGES).items()
        if any(part in name for part in only.split(","))
    }
    if review is None:
        plan = Plan(IMAGES, pages, (WIDTH,), THEMES, LANGUAGES[:1], is_review=False)
    else:
        of_review = sizes["width"], sizes["theme"], sizes["language"]
        plan = Plan(review, pages, *of_review, is_review=True)
    plan.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        receiver = "" if url else running.enter_context(webhook())
        address = url or running.enter_context(demo())
        asyncio.run(take(chromium, address, plan, receiver))
    for line in sorted(plan.faults):
        click.echo(line)
    if plan.faults:
        sys.exit(1)


async def take(chromium: str, url: str, plan: Plan, receiver: str) -> None:
    """Sign in, fill a new demo with `receiver`, the webhook, and take the pictures of the plan."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await signed_in(browser, url)
        if receiver:
            await fill(page, receiver)
        begun = time.monotonic()
        addresses = await addresses_of(page, url, plan)
        contexts = await contexts_of(page.context, url, plan.languages)
        # The tabs share the iterator: each takes the next page.
        loads = iter(list(product(plan.languages, addresses.items())))
        async with asyncio.TaskGroup() as tabs:
            for _number in range(TABS):
                tabs.create_task(visit(loads, contexts, plan))
        await browser.close()
    count = len(addresses) * len(plan.languages) * len(plan.widths) * len(plan.themes)
    click.echo(f"{count} pictures in {time.monotonic() - begun:.0f} s")


Load = tuple[str, tuple[str, str]]


async def visit(loads: Iterator[Load], contexts: Mapping[str, BrowserContext], plan: Plan) -> None:
    """Take the pictures of one page after the other. A page that fails is a fault of the plan."""
    for language, (name, address) in loads:
        page = await contexts[language].new_page()
        try:
            await page.set_viewport_size({"width": plan.widths[0], "height": HEIGHT})
            await page.emulate_media(color_scheme=plan.themes[0], reduced_motion="reduce")
            response = await page.goto(address)
            if response is None or not response.ok:
                status = response.status if response else "no answer"
                plan.faults.append(f"{name} {language} failed: {status}, no picture")
                await page.close()
                continue
            if name in FORMS:
                selector, text, button = FORMS[name]
                await page.locator(selector).fill(text)
                await page.locator(button).click()
            await settle(page)
            for width in plan.widths:
                await take_one(page, plan, name, language, width)
        except BrowserError as error:
            plan.faults.append(f"{name} {language} failed: {error.message}")
        await page.close()


async def take_one(page: Page, plan: Plan, name: str, language: str, width: int) -> None:
    """Take the pictures of an open page in one width. Pages follow a new size of the window, and a
    new theme of the system, without a reload. A picture that is not whole is a fault."""
    checker = await page.context.new_page()
    for theme in plan.themes:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        try:
            file = await picture(page, checker, width, is_whole_page=plan.is_review)
        except NotWholeError as problem:
            plan.faults.append(f"{name} {width} {theme} {language}: no picture, {problem}")
        else:
            plan.file(name, width, theme, language).write_bytes(file)
    await checker.close()
    for kind, about in (await page.evaluate(FAULTS)).items() if plan.is_review else ():
        if about:
            plan.faults.append(f"{name} {width} {language} {kind}: {about}")


async def addresses_of(page: Page, url: str, plan: Plan) -> dict[str, str]:
    """Addresses by picture. Objects of paths in braces are found by links; the plan gets a fault
    for an object that is not there."""
    addresses = {}
    for name, path in plan.pages.items():
        try:
            addresses[name] = await address_of(page, url, path)
        except BrowserError as error:
            plan.faults.append(f"{name}: no such object: {error.message}")
    return addresses


async def address_of(page: Page, url: str, path: str) -> str:
    """The address of a page of the cluster, of the console, or of an object in braces."""
    if not path.startswith("{"):
        return f"{url}{path}" if path.startswith("/") else f"{url}/{CLUSTER}/{path}"
    start, link = OBJECTS[path.strip("{}")]
    await page.goto(await address_of(page, url, start))
    href = await page.locator(link).first.get_attribute("href", timeout=LINK_MS_MAX)
    return f"{url}{href}"


async def contexts_of(
    signed: BrowserContext, url: str, languages: tuple[str, ...]
) -> dict[str, BrowserContext]:
    """A context per language, signed in like `signed`."""
    contexts = {}
    assert signed.browser is not None
    state = await signed.storage_state()
    for language in languages:
        context = await signed.browser.new_context(storage_state=state, locale="en-GB")
        context.set_default_timeout(ANSWER_MS_MAX)
        cookie = {"name": "gantry_language", "value": language, "url": url}
        await context.add_cookies([cookie])  # type: ignore[list-item]
        contexts[language] = context
    return contexts


async def signed_in(browser: Browser, url: str) -> Page:
    """Sign in as the administrator and return the page, the overview of the cluster."""
    context = await browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(ANSWER_MS_MAX)
    page = await context.new_page()
    await page.goto(url)
    await page.get_by_label("User").fill("admin")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Overview").wait_for()
    return page


if __name__ == "__main__":
    main()
