"""Wait for a condition, with a deadline."""

import time
from collections.abc import Callable

import pytest

POLL_S = 0.2


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    """Poll until `holds()` is true; fail with `what` at the deadline."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {timeout_s} s in vain for: {what}")
        time.sleep(POLL_S)
