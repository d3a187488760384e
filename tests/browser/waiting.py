"""Wait for a condition, with a deadline."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Error, Page

POLL_S = 0.2
FITS = (
    "document.readyState === 'complete'"
    " && document.documentElement.scrollWidth <= document.documentElement.clientWidth"
)


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    """Poll until `holds()` is true; fail with `what` at the deadline."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {timeout_s} s in vain for: {what}")
        time.sleep(POLL_S)


def wait_until_fits(page: Page) -> None:
    """Wait until the page is no wider than the window; works while another page is loading.

    Playwright's `wait_for_function` evaluates strings in the page again, which the content policy
    of the console forbids.
    """

    def fits() -> bool:
        try:
            return bool(page.evaluate(FITS))
        except Error:  # the page was replaced during the evaluation
            return False

    wait_until(fits, f"{page.url} to fit into the window")
