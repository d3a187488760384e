"""Waiting for something that a test cannot be told about."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

LOOK_S = 0.01


@overload
async def eventually(look: Callable[[], Awaitable[T]], timeout_s: float = 10.0) -> T: ...
@overload
async def eventually(look: Callable[[], T], timeout_s: float = 10.0) -> T: ...
async def eventually(look: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """Look again and again until the answer is true; fail when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look()
        value = await seen if inspect.isawaitable(seen) else seen
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {timeout_s} s")
        await asyncio.sleep(LOOK_S)
