"""Dead letters of one group by time, key, tag, topic or text: newest first for pages, oldest first
for a replay.

A DLQ topic has no index of bodies and properties, so a filter reads the messages, within the scan
budget of a page (SCAN_…); the cursor continues after the last message. Bodies with a schema are
searched as the JSON text that the pages show.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from console.gateway.dead_letters.resend import origin_topic
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.browse import PAGE_MESSAGES_MAX, SCAN_BYTES_MAX, SCAN_S
from console.gateway.messages.filters import searched
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.paging import (
    Budget,
    MergedPage,
    Window,
    decode_cursor,
    encode_cursor,
    newest_first,
    newest_matching,
    windows_before,
)
from console.gateway.messages.queue_slices import (
    QueueRef,
    Slice,
    brokers_of,
    read_slice,
    topic_queues,
)
from console.gateway.messages.schemas.decoder import NO_DECODER, Decoder
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef
from console.gateway.messages.windows import stored_windows, within
from core_broker.message.model import MessageExt
from core_broker.message.topics import dlq_topic

#: Maximum number of messages that a page reads; bytes and seconds as for a page of a topic.
SCAN_MESSAGES_MAX = 2_000
#: Scan budget of a count and of a dry run: messages, bytes, seconds.
COUNT_MESSAGES_MAX = 20_000
COUNT_BYTES_MAX = 256 * 1024 * 1024
COUNT_S = 30.0
SCAN_DEADLINE_MS = 20_000
COUNT_DEADLINE_MS = 45_000
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
    #: Bodies with a schema are searched as JSON text.
    decoder: Decoder = NO_DECODER

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
        decoder = self.decoder.seen_through(mask)
        letter_id = message.offset_msg_id
        return (
            letter_id not in self.without
            and (self.only is None or letter_id in self.only)
            and (not self.key or self.key in (*message.keys, message.msg_id))
            and (not self.tag or self.tag == (message.tags or ""))
            and (not self.topic or self.topic == origin_topic(message))
            and (not self.text or _holds(message, self.text.casefold(), decoder))
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
    """The number of matches; `is_whole` is False when the budget (COUNT_…) ended the scan."""

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
    limit = min(limit, PAGE_MESSAGES_MAX)
    found = await _newest(session, windows, limit, wanted, mask, _page_budget())
    rows = tuple(
        MessageRef(queue.broker, message).seen_through(mask) for queue, message in found.messages
    )
    cursor = encode_cursor(found.ends)
    return Partial(DeadLetterPage(rows, total, found.scanned, found.unreadable, cursor), failures)


@question(fresh_for_ms=1_000, deadline_ms=COUNT_DEADLINE_MS)
async def count(
    session: ClusterSession, group: str, wanted: DeadLetterFilter, mask: Mask = NO_MASK
) -> Partial[DeadLetterCount]:
    """The number of matching dead letters; a filter by time alone reads no messages."""
    windows, failures = await _windows(session, group, wanted)
    total = sum(window.count for window in windows)
    if not wanted.reads_messages:
        return Partial(DeadLetterCount(total, total, is_whole=True), failures)
    found = await _newest(session, windows, COUNT_MESSAGES_MAX, wanted, mask, _count_budget())
    counted = DeadLetterCount(len(found.messages), found.scanned, is_whole=not found.ends)
    return Partial(counted, failures)


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
    found = await _newest(session, windows, most, wanted, mask, _count_budget())
    ids = tuple(message.offset_msg_id for _queue, message in found.messages)
    return Partial((ids, not found.ends), failures)


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


async def _newest(
    session: ClusterSession,
    windows: Sequence[Window],
    limit: int,
    wanted: DeadLetterFilter,
    mask: Mask,
    budget: Budget,
) -> MergedPage:
    """The newest matching dead letters; reads no further message for a filter by time alone."""
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def fetch(queue: QueueRef, begin: int, end: int) -> Slice:
        async with gate:
            return await read_slice(session, queue, begin, end)

    if not wanted.reads_messages:
        return await newest_first(windows, limit, fetch)
    return await newest_matching(
        windows, limit, fetch, lambda message: wanted.matches(message, mask), budget
    )


def _page_budget() -> Budget:
    return Budget(SCAN_MESSAGES_MAX, SCAN_BYTES_MAX, monotonic() + SCAN_S)


def _count_budget() -> Budget:
    return Budget(COUNT_MESSAGES_MAX, COUNT_BYTES_MAX, monotonic() + COUNT_S)


def _holds(message: MessageExt, text: str, decoder: Decoder) -> bool:
    """Return True when the body or a property contains the text, ignoring case."""
    if text in searched(message, decoder).decode(errors="ignore").casefold():
        return True
    return any(text in value.casefold() for value in message.properties.values())
