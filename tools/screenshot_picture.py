"""Whole pictures of pages that have stopped to change.

`settle` waits for a page; `picture` returns the PNG file of the window or of the whole page. The
window gets the height of the page first: Chromium draws parts outside of the window late on a busy
machine, and such parts stayed blank. A picture with another size, or with blank places where the
page has text, is taken again.
"""

import base64
import struct
from contextlib import suppress
from typing import Any, Final

from playwright.async_api import Error as BrowserError
from playwright.async_api import Page

#: Height of the window, and maximum height of a picture, pixels: lists of settings are longer.
HEIGHT: Final = 850
HEIGHT_MAX: Final = 4_000
#: Maximum time until the requests of a page end, ms: pages poll.
IDLE_MS_MAX: Final = 5_000
#: Maximum time until all parts are there, ms, on a busy machine.
SETTLED_MS_MAX: Final = 60_000
#: Time to draw after a change, ms.
DRAWN_MS: Final = 400
#: Attempts to take a whole picture, with a longer time to draw before each.
ATTEMPTS: Final = 4
#: Changes of the height of a page that follow a change of the window.
HEIGHTS_TRIED: Final = 4
#: Maximum share of texts without any drawn pixel: some texts have the color of their place.
BLANK_SHARE_MAX: Final = 0.02
#: Parts that still load: the live state of the overview, requests of htmx, charts without points,
#: the API reference without operations.
LOADING: Final = (
    '#live-state[data-state="still"], #live-state[data-state="connecting"], .htmx-request, '
    ".history .chart:not([data-points]), .chart:not(:has(.uplot)), #swagger-ui:not(:has(.opblock))"
)
#: Resolves after two frames.
FRAMES: Final = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
)
#: Places of the texts that the window shows: x, y, width, height.
TEXTS: Final = """() => {
  const places = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || parent.closest("script, style, option")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getClientRects()[0];
    if (!box || box.width < 4 || box.height < 4 || box.left < 0 || box.top < 0) continue;
    if (box.right > innerWidth || box.bottom > innerHeight) continue;
    const shown = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    if (shown && parent.contains(shown)) places.push([box.x, box.y, box.width, box.height]);
  }
  return places;
}"""
#: The places of a picture whose pixels have all the same color.
BLANK: Final = """async ([file, places]) => {
  const bytes = Uint8Array.from(atob(file), each => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return places.filter(([x, y, width, height]) => {
    const { data } = context.getImageData(x, y, width, height);
    const colors = new Uint32Array(data.buffer);
    return colors.every(each => each === colors[0]);
  });
}"""


class NotWholeError(Exception):
    """No attempt gave a whole picture."""


async def settle(page: Page) -> None:
    """Wait until nothing loads and the fonts are there. Raises an error of the browser, with the
    parts that are missing."""
    with suppress(BrowserError):
        await page.wait_for_load_state("networkidle", timeout=IDLE_MS_MAX)
    try:
        await page.wait_for_function(
            "parts => !document.querySelector(parts)", arg=LOADING, timeout=SETTLED_MS_MAX
        )
    except BrowserError as error:
        found = "parts => [...document.querySelectorAll(parts)].map(e => e.id || e.className)"
        raise BrowserError(f"still loads: {await page.evaluate(found, LOADING)}") from error
    await page.evaluate("() => document.fonts.ready.then(() => null)")


async def picture(page: Page, checker: Page, width: int, *, is_whole_page: bool) -> bytes:
    """Return the PNG of an open page, of `width`; raises NotWholeError.

    `checker` is another page, which examines the picture.
    """
    problem = ""
    for attempt in range(1, ATTEMPTS + 1):
        height = await fit(page, width) if is_whole_page else await resized(page, width, HEIGHT)
        await page.wait_for_timeout(attempt * DRAWN_MS)
        await page.evaluate(FRAMES)
        texts = await page.evaluate(TEXTS)
        file = await page.screenshot(animations="disabled")
        problem = await why_not_whole(checker, file, (width, height), texts)
        if is_whole_page and not problem and await page_height(page) > height < HEIGHT_MAX:
            problem = f"the page grew beyond {height} pixels"
        if not problem:
            return file
    raise NotWholeError(problem)


async def fit(page: Page, width: int) -> int:
    """Give the window the height of the page; return the height. A height that depends on the
    window's does not grow for ever."""
    height = await resized(page, width, HEIGHT)
    for _number in range(HEIGHTS_TRIED):
        wanted = min(max(await page_height(page), HEIGHT), HEIGHT_MAX)
        if wanted <= height:
            break
        height = await resized(page, width, wanted)
    await page.evaluate("scrollTo(0, 0)")  # a fixed bar is drawn at the scroll position
    return height


async def resized(page: Page, width: int, height: int) -> int:
    await page.set_viewport_size({"width": width, "height": height})
    await page.evaluate(FRAMES)
    return height


async def page_height(page: Page) -> int:
    return int(await page.evaluate("document.documentElement.scrollHeight"))


async def why_not_whole(checker: Page, file: bytes, size: tuple[int, int], texts: list[Any]) -> str:
    """Return what a picture lacks; "" for a whole one. `texts`: places of the page's texts."""
    # The header of PNG: signature and name of the first chunk, 16 bytes, then width and height.
    if (found := struct.unpack(">II", file[16:24])) != size:
        return f"the picture has {found} pixels instead of {size}"
    if not texts:
        return "the page has no text"
    blank = await checker.evaluate(BLANK, [base64.b64encode(file).decode(), texts])
    if len(blank) <= BLANK_SHARE_MAX * len(texts):
        return ""
    return f"{len(blank)} of {len(texts)} texts are not drawn, the first at {blank[0]}"
