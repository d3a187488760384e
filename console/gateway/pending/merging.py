"""Messages of several queues in one list, smallest key first, page by page.

The key never decreases within a queue, so a page is a k-way merge from the beginnings of the
queues. A cursor holds, per queue, the offset at which the next page begins (`paging.py` encodes
it).
"""

import asyncio
from collections.abc import Callable, Sequence

from console.gateway.messages.paging import Budget, Fetch, MergedPage, Test, Window
from console.gateway.messages.queue_slices import QueueRef
from core_broker.message.model import MessageExt

#: Number of messages of one read from a queue.
CHUNK_MESSAGES = 32

Key = Callable[[QueueRef, MessageExt], int]


async def smallest_first(
    windows: Sequence[Window], limit: int, fetch: Fetch, key: Key, wanted: Test, budget: Budget
) -> MergedPage:
    """Merge the first `limit` messages that pass a test, within a scan budget.

    `ends` of the page maps queues to the beginning of the next page. A page reads at least one
    message.
    """
    heads = [_Head(window, fetch, key) for window in windows]
    messages: list[tuple[QueueRef, MessageExt]] = []
    scanned = 0
    while len(messages) < limit:
        await asyncio.gather(*(head.fill() for head in heads if head.must_fill))
        full = [head for head in heads if head.messages]
        if not full:
            break
        first = min(full, key=lambda head: head.smallest)
        message = first.take()
        scanned += 1
        budget.spend(message)
        if wanted(message):
            messages.append((first.window.queue, message))
        if budget.is_spent:
            break
    more = any(head.begin < head.window.end for head in heads)
    begins = {head.window.queue.key: head.begin for head in heads} if more else {}
    return MergedPage(tuple(messages), begins, sum(head.unreadable for head in heads), scanned)


class _Head:
    """A forward reader of one queue, in chunks."""

    def __init__(self, window: Window, fetch: Fetch, key: Key) -> None:
        self.window = window
        #: Messages before this offset belong to this page or to earlier pages.
        self.begin = window.begin
        self.messages: list[MessageExt] = []
        self.unreadable = 0
        self._fetch = fetch
        self._key = key
        self._fetched = window.begin

    @property
    def smallest(self) -> tuple[int, str, int]:
        first = self.messages[-1]
        return self._key(self.window.queue, first), self.window.queue.key, first.queue_offset

    @property
    def must_fill(self) -> bool:
        return not self.messages and self.begin < self.window.end

    async def fill(self) -> None:
        """Read the next chunk with a readable message; deleted messages are passed over."""
        while not self.messages and self._fetched < self.window.end:
            end = min(self._fetched + CHUNK_MESSAGES, self.window.end)
            piece = await self._fetch(self.window.queue, self._fetched, end)
            self.messages = list(reversed(piece.messages))
            self.unreadable += piece.unreadable
            self._fetched = end
        if not self.messages:
            self.begin = self.window.end

    def take(self) -> MessageExt:
        message = self.messages.pop()
        self.begin = message.queue_offset + 1
        return message
