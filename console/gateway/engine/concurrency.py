"""Bounded concurrency inside one question."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def gather_limited(
    limit: asyncio.Semaphore, items: Iterable[T], work: Callable[[T], Awaitable[R]]
) -> list[R]:
    """Return `work(item)` of all items in order; the semaphore limits how many run at a time."""

    async def one(item: T) -> R:
        async with limit:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))
