"""Polling for conditions without an event."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

POLL_S = 0.01


@overload
async def eventually(probe: Callable[[], Awaitable[T]], timeout_s: float = 60.0) -> T: ...
@overload
async def eventually(probe: Callable[[], T], timeout_s: float = 60.0) -> T: ...
async def eventually(probe: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Poll until the value is true; fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = probe()
        value = await result if inspect.isawaitable(result) else result
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {timeout_s} s")
        await asyncio.sleep(POLL_S)
