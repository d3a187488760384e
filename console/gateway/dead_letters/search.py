"""Dead letters of one group by time, key, tag, topic or text: newest first for pages, oldest first
for a replay.

A DLQ topic has no index of bodies and properties, so a filter reads the messages. A page reads at
most SCAN_MESSAGES_MAX messages; the cursor continues after the last message.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from console.gateway.dead_letters.resend import origin_topic
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.browse import PAGE_MESSAGES_MAX
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.paging import (
    MergedPage,
    Window,
    decode_cursor,
    encode_cursor,
    newest_first,
    windows_before,
)
from console.gateway.messages.queue_slices import (
    QueueRef,
    Slice,
    brokers_of,
    read_slice,
    topic_queues,
)
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef
from console.gateway.messages.windows import stored_windows, within
from core_broker.errors import ProtocolError
from core_broker.message.model import MessageExt
from core_broker.message.topics import dlq_topic

SCAN_MESSAGES_MAX = 2_000
#: Maximum number of messages that a dry run reads to count matches.
COUNT_MESSAGES_MAX = 20_000
SCAN_DEADLINE_MS = 20_000
COUNT_DEADLINE_MS = 45_000
CHUNK_MESSAGES = 100
#: Maximum number of dead letters of one queue that a replay reads at once.
REPLAY_CHUNK_MAX = 256

#: A part of a queue to replay: queue key, and offsets in [begin, end).
ReplayRange = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """A filter of dead letters. `only` and `without` are offset message ids from the ledger."""

    begin_ms: int | None = None
    end_ms: int | None = None
    key: str = ""
    tag: str = ""
    topic: str = ""
    text: str = ""
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    @property
    def reads_messages(self) -> bool:
        """True when the store time alone does not decide, so messages must be read."""
        return (
            bool(self.key or self.tag or self.topic or self.text or self.without)
            or self.only is not None
        )

    def matches(self, message: MessageExt, mask: Mask = NO_MASK) -> bool:
        """Test the message as the mask shows it."""
        message = mask.message(message)
        letter_id = message.offset_msg_id
        return (
            letter_id not in self.without
            and (self.only is None or letter_id in self.only)
            and (not self.key or self.key in (*message.keys, message.msg_id))
            and (not self.tag or self.tag == (message.tags or ""))
            and (not self.topic or self.topic == origin_topic(message))
            and (not self.text or _holds(message, self.text.casefold()))
        )


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """A page, newest first. `total` counts the time range, `scanned` the messages read."""

    rows: tuple[MessageRef, ...]
    total: int
    scanned: int
    unreadable: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterCount:
    """The number of matches; `is_whole` is False when COUNT_MESSAGES_MAX ended the scan."""

    matched: int
    scanned: int
    is_whole: bool


@question(fresh_for_ms=500, deadline_ms=SCAN_DEADLINE_MS)
async def search(
    session: ClusterSession,
    group: str,
    wanted: DeadLetterFilter = DeadLetterFilter(),
    cursor: str | None = None,
    limit: int = 50,
    mask: Mask = NO_MASK,
) -> Partial[DeadLetterPage]:
    """A page of a group's matching dead letters.

    Raises CursorError for an invalid cursor, NotFound for a group without a DLQ topic.
    """
    ends = decode_cursor(cursor) if cursor else None
    windows, failures = await _windows(session, group, wanted)
    total = sum(window.count for window in windows)
    if ends is not None:
        windows = windows_before(windows, ends)
    reader = _Reader(session, windows, wanted, mask)
    await reader.read(min(limit, PAGE_MESSAGES_MAX), SCAN_MESSAGES_MAX)
    page = DeadLetterPage(
        tuple(reader.found),
        total,
        reader.scanned,
        reader.unreadable,
        encode_cursor(reader.ends),
    )
    return Partial(page, failures)


@question(fresh_for_ms=1_000, deadline_ms=COUNT_DEADLINE_MS)
async def count(
    session: ClusterSession, group: str, wanted: DeadLetterFilter, mask: Mask = NO_MASK
) -> Partial[DeadLetterCount]:
    """The number of matching dead letters; a filter by time alone reads no messages."""
    windows, failures = await _windows(session, group, wanted)
    total = sum(window.count for window in windows)
    if not wanted.reads_messages:
        return Partial(DeadLetterCount(total, total, is_whole=True), failures)
    reader = _Reader(session, windows, wanted, mask)
    await reader.read(COUNT_MESSAGES_MAX, COUNT_MESSAGES_MAX)
    return Partial(DeadLetterCount(len(reader.found), reader.scanned, not reader.ends), failures)


@question(fresh_for_ms=0, deadline_ms=COUNT_DEADLINE_MS)
async def matching_ids(
    session: ClusterSession,
    group: str,
    wanted: DeadLetterFilter,
    most: int,
    mask: Mask = NO_MASK,
) -> Partial[tuple[tuple[str, ...], bool]]:
    """The offset message ids of at most `most` matching letters; True when no more match."""
    windows, failures = await _windows(session, group, wanted)
    reader = _Reader(session, windows, wanted, mask)
    await reader.read(most, COUNT_MESSAGES_MAX)
    found = tuple(each.message.offset_msg_id for each in reader.found)
    return Partial((found, not reader.ends), failures)


@question(fresh_for_ms=0)
async def replay_ranges(
    session: ClusterSession, group: str, wanted: DeadLetterFilter
) -> Partial[tuple[ReplayRange, ...]]:
    """The offset ranges of a replay, fixed now: later dead letters are not part of the replay."""
    windows, failures = await _windows(session, group, wanted)
    return Partial(
        tuple((each.queue.key, each.begin, each.end) for each in windows if each.count), failures
    )


@question(fresh_for_ms=0)
async def read_range(
    session: ClusterSession, group: str, piece: ReplayRange, most: int
) -> Partial[tuple[tuple[MessageRef, ...], int]]:
    """The oldest dead letters of a range, and the next offset to read.

    Deleted queues and expired dead letters are skipped.
    """
    key, begin, end = piece
    queue = next(
        (each for each in await topic_queues(session, dlq_topic(group)) if each.key == key), None
    )
    if queue is None:
        return Partial(((), end))
    until = min(end, begin + max(1, min(most, REPLAY_CHUNK_MAX)))
    found = await read_slice(session, queue, begin, until)
    return Partial((tuple(MessageRef(queue.broker, each) for each in found.messages), until))


async def _windows(
    session: ClusterSession, group: str, wanted: DeadLetterFilter
) -> tuple[list[Window], tuple[BrokerFailure, ...]]:
    queues = await topic_queues(session, dlq_topic(group))

    async def windows_on(broker: BrokerRef) -> list[Window]:
        stored = await stored_windows(session, [each for each in queues if each.broker == broker])
        return await asyncio.gather(
            *(within(session, each, wanted.begin_ms, wanted.end_ms) for each in stored)
        )

    found, failures = await session.fan_out(brokers_of(queues), windows_on)
    return [window for group in found.values() for window in group], failures


class _Reader:
    """Reads dead letters backwards up to a number of matches or of scanned messages."""

    def __init__(
        self,
        session: ClusterSession,
        windows: Iterable[Window],
        wanted: DeadLetterFilter,
        mask: Mask,
    ) -> None:
        self._session = session
        self._windows = list(windows)
        self._wanted = wanted
        self._mask = mask
        self._gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)
        self.found: list[MessageRef] = []
        self.scanned = 0
        self.unreadable = 0
        #: End of the next page in each queue; empty after the last page.
        self.ends: Mapping[str, int] = {each.queue.key: each.end for each in self._windows}

    async def read(self, limit: int, scan_max: int) -> None:
        while self.ends and len(self.found) < limit and self.scanned < scan_max:
            chunk = limit - len(self.found) if not self._wanted.reads_messages else CHUNK_MESSAGES
            size = min(chunk, scan_max - self.scanned)
            windows = windows_before(self._windows, self.ends)
            page = await newest_first(windows, size, self._fetch)
            self.unreadable += page.unreadable
            self._take(page, limit)

    def _take(self, page: MergedPage, limit: int) -> None:
        """Collect the matches; the next page begins after the last match of this page."""
        ends = dict(self.ends)
        for at, (queue, message) in enumerate(page.messages, start=1):
            self.scanned += 1
            ends[queue.key] = message.queue_offset
            if self._wanted.matches(message, self._mask):
                self.found.append(MessageRef(queue.broker, message).seen_through(self._mask))
                if len(self.found) >= limit and at < len(page.messages):
                    self.ends = ends
                    return
        self.ends = page.ends

    async def _fetch(self, queue: QueueRef, begin: int, end: int) -> Slice:
        async with self._gate:
            return await read_slice(self._session, queue, begin, end)


def _holds(message: MessageExt, text: str) -> bool:
    """Return True when the body or a property contains the text, ignoring case."""
    try:
        body = message.decompressed_body()
    except ProtocolError:
        body = message.body
    if text in body.decode(errors="ignore").casefold():
        return True
    return any(text in value.casefold() for value in message.properties.values())
