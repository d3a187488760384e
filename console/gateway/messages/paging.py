"""Messages of several queues in one list, newest first, page by page.

Store times never decrease within a queue, so a page is a k-way merge from the ends of the queues. A
cursor holds, per queue, the offset at which the next page ends. Because a cursor holds offsets and
not positions in a list, messages that arrive between two pages neither repeat nor hide rows.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import msgspec
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import Unusable
from console.gateway.messages.queue_slices import QueueRef, Slice
from core_broker.message.model import MessageExt

#: Minimum and maximum number of messages of one read from the end of a queue.
CHUNK_MESSAGES_MIN = 4
CHUNK_MESSAGES_MAX = 32
#: Number of messages of one read while a filter rejects most messages.
SCAN_CHUNK_MESSAGES = 128
#: Maximum length of a cursor, characters.
CURSOR_CHARS_MAX = 64 * 1024

Fetch = Callable[[QueueRef, int, int], Awaitable[Slice]]
Test = Callable[[MessageExt], bool]


class CursorError(Unusable):
    """The text is no valid cursor."""

    def __init__(self) -> None:
        super().__init__(_("Not a cursor of this list; start without one."))


@dataclass(frozen=True, slots=True)
class Window:
    """A range of a queue: offsets in [begin, end)."""

    queue: QueueRef
    begin: int
    end: int

    @property
    def count(self) -> int:
        return max(0, self.end - self.begin)


@dataclass(frozen=True, slots=True)
class MergedPage:
    """A page. `ends` maps queues to the end of the next page; empty after the last page."""

    messages: tuple[tuple[QueueRef, MessageExt], ...]
    ends: Mapping[str, int]
    unreadable: int
    #: Number of messages read for the page, with and without a match.
    scanned: int


@dataclass(slots=True)
class Budget:
    """The scan budget of one page: messages, bytes and time; the first one spent ends the page."""

    messages: int
    bytes: int
    until_s: float
    clock_s: Callable[[], float] = monotonic

    @property
    def is_spent(self) -> bool:
        return self.is_used or self.is_late

    @property
    def is_used(self) -> bool:
        return self.messages <= 0 or self.bytes <= 0

    @property
    def is_late(self) -> bool:
        return self.clock_s() >= self.until_s

    def spend(self, message: MessageExt) -> None:
        self.messages -= 1
        self.bytes -= message.store_size


async def newest_first(windows: Sequence[Window], limit: int, fetch: Fetch) -> MergedPage:
    """Merge the `limit` newest messages of the windows; reads few messages beyond the page."""
    share = -(-limit // max(1, len(windows)))
    chunk = max(CHUNK_MESSAGES_MIN, min(CHUNK_MESSAGES_MAX, share))
    merge = _Merge([_Tail(window, chunk, fetch) for window in windows])
    messages: list[tuple[QueueRef, MessageExt]] = []
    while len(messages) < limit and (newest := await merge.take()):
        messages.append(newest)
    return merge.page(messages)


async def newest_matching(
    windows: Sequence[Window], limit: int, fetch: Fetch, wanted: Test, budget: Budget
) -> MergedPage:
    """Like `newest_first` for the messages that pass a test, within a scan budget.

    A page that ends with the budget has a regular cursor, so the budget changes the number of pages
    but not their messages. A page reads at least one message. The test runs in a thread, because a
    test of bodies may take long; when the time is over, the page ends with the tested messages.
    """
    passed: set[tuple[QueueRef, int]] = set()

    async def sifted(queue: QueueRef, begin: int, end: int) -> Slice:
        piece = await fetch(queue, begin, end)
        tested, good = await asyncio.to_thread(_tested, piece.messages, wanted, budget)
        passed.update((queue, each.queue_offset) for each in good)
        return Slice(tested, piece.unreadable)

    merge = _Merge([_Tail(window, SCAN_CHUNK_MESSAGES, sifted) for window in windows])
    messages: list[tuple[QueueRef, MessageExt]] = []
    while len(messages) < limit and (newest := await merge.take()):
        queue, message = newest
        budget.spend(message)
        if (queue, message.queue_offset) in passed:
            messages.append(newest)
        if budget.is_used or (merge.must_fill and budget.is_late):
            break
    return merge.page(messages)


def _tested(
    messages: Sequence[MessageExt], wanted: Test, budget: Budget
) -> tuple[tuple[MessageExt, ...], list[MessageExt]]:
    """Test messages from the newest until the time is over; return the tested messages, at least
    one, and those that passed."""
    good: list[MessageExt] = []
    for count, each in enumerate(reversed(messages), start=1):
        if wanted(each):
            good.append(each)
        if budget.is_late:
            return tuple(messages[len(messages) - count :]), good
    return tuple(messages), good


class _Merge:
    """K-way merge of several queues, from the newest message to the oldest."""

    def __init__(self, tails: "Sequence[_Tail]") -> None:
        self.tails = tails
        self.scanned = 0

    @property
    def must_fill(self) -> bool:
        """True when the next message needs a read."""
        return any(tail.must_fill for tail in self.tails)

    async def take(self) -> tuple[QueueRef, MessageExt] | None:
        """Return the newest remaining message; None at the end."""
        empty = [tail for tail in self.tails if tail.must_fill]
        if empty:
            await asyncio.gather(*(tail.fill() for tail in empty))
        full = [tail for tail in self.tails if tail.messages]
        if not full:
            return None
        newest = max(full, key=lambda tail: tail.newest)
        self.scanned += 1
        return newest.window.queue, newest.take()

    def page(self, messages: Sequence[tuple[QueueRef, MessageExt]]) -> MergedPage:
        more = any(tail.end > tail.window.begin for tail in self.tails)
        ends = {tail.window.queue.key: tail.end for tail in self.tails} if more else {}
        unreadable = sum(tail.unreadable for tail in self.tails)
        return MergedPage(tuple(messages), ends, unreadable, self.scanned)


class _Tail:
    """A backward reader of one queue, in chunks."""

    def __init__(self, window: Window, chunk: int, fetch: Fetch) -> None:
        self.window = window
        #: Messages from this offset on belong to this page or to earlier pages.
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

    @property
    def must_fill(self) -> bool:
        return not self.messages and self.end > self.window.begin

    async def fill(self) -> None:
        """Read the next chunk when the current one is empty; skip deleted messages."""
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
    """Return the URL-safe text of a cursor; None after the last page."""
    if not ends:
        return None
    return base64.urlsafe_b64encode(msgspec.json.encode(ends)).decode().rstrip("=")


def decode_cursor(text: str) -> dict[str, int]:
    """Return the end of the page in each queue; raise CursorError for an invalid text."""
    if len(text) > CURSOR_CHARS_MAX:
        raise CursorError
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(data, type=dict[str, int])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as fault:
        raise CursorError from fault


def windows_before(windows: Sequence[Window], ends: Mapping[str, int]) -> list[Window]:
    """Return the windows of the next page, empty for queues that are newer than the cursor."""
    return [
        Window(each.queue, each.begin, min(each.end, ends.get(each.queue.key, each.begin)))
        for each in windows
    ]
