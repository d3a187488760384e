"""Pictures of `make screenshots`: whole pages, and no picture of a page that is not drawn."""

import asyncio
import shutil
import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.async_api import Error as BrowserError
from playwright.async_api import Page, async_playwright

from tests.browser.conftest import CHROMIUM_ARGS
from tools import screenshot_picture
from tools.screenshot_picture import HEIGHT, HEIGHT_MAX, NotWholeError, picture, settle

LINES = "".join(f"<p>line {number}</p>" for number in range(60))
PAGE = f"<body style='margin:0; min-height:100vh'>{LINES}</body>"
WIDTH = 500


def with_pages(use: Callable[[Page, Page], Awaitable[Any]]) -> Any:
    """Call `use` with two pages of a Chromium; other tests run theirs in this thread."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium")

    async def run() -> Any:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
            try:
                return await use(await browser.new_page(), await browser.new_page())
            finally:
                await browser.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def size_of(file: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", file[16:24])
    return width, height


def test_a_picture_has_the_whole_page_or_the_window() -> None:
    async def use(page: Page, checker: Page) -> list[tuple[int, int]]:
        await page.set_content(PAGE)
        sizes = [
            size_of(await picture(page, checker, WIDTH, is_whole_page=whole))
            for whole in (True, False)
        ]
        assert size_of(await picture(page, checker, WIDTH, is_whole_page=True)) == sizes[0]
        await page.set_content(PAGE + "<div style='height:9000px'></div>")
        return [*sizes, size_of(await picture(page, checker, WIDTH, is_whole_page=True))]

    whole, window, longest = with_pages(use)
    assert whole[0] == WIDTH
    assert HEIGHT < whole[1] < HEIGHT_MAX
    assert window == (WIDTH, HEIGHT)
    assert longest == (WIDTH, HEIGHT_MAX)


@pytest.mark.parametrize("blank_pictures", [2, 100])
def test_a_picture_with_blank_places_is_taken_again(
    monkeypatch: pytest.MonkeyPatch, blank_pictures: int
) -> None:
    monkeypatch.setattr(screenshot_picture, "DRAWN_MS", 1)

    async def use(page: Page, checker: Page) -> tuple[int, str]:
        await page.set_content(PAGE)
        draw, taken = page.screenshot, 0
        half = "document.body.style.clipPath = 'inset(0 0 50% 0)'"

        async def screenshot(**options: Any) -> bytes:
            nonlocal taken
            taken += 1
            await page.evaluate(half if taken <= blank_pictures else "document.body.style = ''")
            file = await draw(**options)
            await page.evaluate("document.body.style = ''")
            return file

        monkeypatch.setattr(page, "screenshot", screenshot)
        try:
            await picture(page, checker, WIDTH, is_whole_page=True)
        except NotWholeError as error:
            return taken, str(error)
        return taken, ""

    taken, problem = with_pages(use)
    if blank_pictures == 2:
        assert (taken, problem) == (3, "")
    else:
        assert taken == screenshot_picture.ATTEMPTS
        assert "of 60 texts are not drawn" in problem


def test_a_page_is_settled_when_charts_and_operations_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screenshot_picture, "SETTLED_MS_MAX", 200)

    async def use(page: Page, _checker: Page) -> list[str]:
        problems = []
        for html in (
            "<div id=swagger-ui></div>",
            "<section class=history><div class=chart><div class=uplot></div></div></section>",
        ):
            await page.set_content(html)
            with pytest.raises(BrowserError) as raised:
                await settle(page)
            problems.append(str(raised.value))
        await page.set_content("<div id=swagger-ui><p class=opblock></div>")
        await settle(page)
        return problems

    operations, charts = with_pages(use)
    assert "swagger-ui" in operations
    assert "chart" in charts
