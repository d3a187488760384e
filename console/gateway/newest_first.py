"""Messages of several queues in one list, newest first, page by page.

Each queue is in order of its offsets, and its store times never go back, so a page is a merge from
the ends of the queues. A cursor is the offsets at which the next page ends in each queue. Because
it names offsets and not positions in a list, messages that arrive while a person turns pages
neither repeat rows nor hide any.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from django.utils.translation import gettext_lazy as _

from console.gateway.errors import Unusable
from console.gateway.queue_slices import QueueRef, Slice
from core_broker.message.model import MessageExt

#: How much is read from the end of a queue at once.
CHUNK_MESSAGES_MIN = 4
CHUNK_MESSAGES_MAX = 32
CURSOR_CHARS_MAX = 64 * 1024

Fetch = Callable[[QueueRef, int, int], Awaitable[Slice]]


class CursorError(Unusable):
    """The text is not a cursor that a page gave out."""

    def __init__(self) -> None:
        super().__init__(_("Not a cursor of this list; start without one."))


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a queue that a list is about: offsets in [begin, end)."""

    queue: QueueRef
    begin: int
    end: int

    @property
    def count(self) -> int:
        return max(0, self.end - self.begin)


@dataclass(frozen=True, slots=True)
class MergedPage:
    """`ends` says where the next page ends in each queue; it is empty after the last page."""

    messages: tuple[tuple[QueueRef, MessageExt], ...]
    ends: Mapping[str, int]
    unreadable: int


async def newest_first(windows: Sequence[Window], limit: int, fetch: Fetch) -> MergedPage:
    """Merge the `limit` newest messages of the windows, reading little more than it shows."""
    share = -(-limit // max(1, len(windows)))
    chunk = max(CHUNK_MESSAGES_MIN, min(CHUNK_MESSAGES_MAX, share))
    tails = [_Tail(window, chunk, fetch) for window in windows]
    messages: list[tuple[QueueRef, MessageExt]] = []
    while len(messages) < limit:
        await asyncio.gather(*(tail.fill() for tail in tails))
        full = [tail for tail in tails if tail.messages]
        if not full:
            break
        newest = max(full, key=lambda tail: tail.newest)
        messages.append((newest.window.queue, newest.take()))
    more = any(tail.end > tail.window.begin for tail in tails)
    ends = {tail.window.queue.key: tail.end for tail in tails} if more else {}
    return MergedPage(tuple(messages), ends, sum(tail.unreadable for tail in tails))


class _Tail:
    """The end of one queue, read backwards in chunks."""

    def __init__(self, window: Window, chunk: int, fetch: Fetch) -> None:
        self.window = window
        #: Everything at and after this offset is on this page or an earlier one.
        self.end = window.end
        self.messages: list[MessageExt] = []
        self.unreadable = 0
        self._chunk = chunk
        self._fetch = fetch
        self._fetched = window.end

    @property
    def newest(self) -> tuple[int, str, int]:
        last = self.messages[-1]
        return last.store_timestamp, self.window.queue.key, last.queue_offset

    async def fill(self) -> None:
        """Read the next chunk when none is left; skips over what was deleted."""
        while not self.messages and self._fetched > self.window.begin:
            begin = max(self.window.begin, self._fetched - self._chunk)
            piece = await self._fetch(self.window.queue, begin, self._fetched)
            self.messages = list(piece.messages)
            self.unreadable += piece.unreadable
            self._fetched = begin
        if not self.messages:
            self.end = self.window.begin

    def take(self) -> MessageExt:
        message = self.messages.pop()
        self.end = message.queue_offset
        return message


def encode_cursor(ends: Mapping[str, int]) -> str | None:
    """The text of a cursor, safe in an address; None after the last page."""
    if not ends:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode(ends)).decode().rstrip("=")


def decode_cursor(text: str) -> dict[str, int]:
    """Where the page ends in each queue; raises CursorError for any text that is no cursor."""
    if len(text) > CURSOR_CHARS_MAX:
        raise CursorError
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(data, type=dict[str, int])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as fault:
        raise CursorError from fault


def windows_before(windows: Sequence[Window], ends: Mapping[str, int]) -> list[Window]:
    """The windows of a following page. A queue the cursor does not know is newer than the list."""
    return [
        Window(each.queue, each.begin, min(each.end, ends.get(each.queue.key, each.begin)))
        for each in windows
    ]
