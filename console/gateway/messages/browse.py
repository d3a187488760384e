"""The question that browses a topic: one page of messages, newest first."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.answers import Partial
from console.gateway.engine.concurrency import gather_limited
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.filters import MessageFilter
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.paging import (
    Budget,
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
from console.gateway.messages.stored import QUEUES_AT_ONCE_MAX, MessageRef
from console.gateway.messages.windows import stored_windows, within

#: Maximum number of messages of a page.
PAGE_MESSAGES_MAX = 200
#: Maximum number of queues that the hint of an error lists.
QUEUES_NAMED_MAX = 16
#: Maximum number of brokers and queues that a form offers.
QUEUES_OFFERED_MAX = 300
#: Scan budget of one page with a filter: messages, bytes, seconds. The page ends with the first
#: of them that is used up.
SCAN_MESSAGES_MAX = 20_000
SCAN_BYTES_MAX = 64 * 1024 * 1024
SCAN_S = 3.0
EVERYTHING = MessageFilter()


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page, newest first. `total` counts the whole window; `unreadable` messages are left out.

    With a filter, the page scanned `scanned` messages and `left` older ones remain; `total`
    counts matching and other messages.
    """

    rows: tuple[MessageRef, ...]
    total: int
    next_cursor: str | None
    unreadable: int
    scanned: int
    left: int


@question(fresh_for_ms=500, deadline_ms=15_000)
async def browse(
    session: ClusterSession,
    topic: str,
    begin_ms: int | None = None,
    end_ms: int | None = None,
    cursor: str | None = None,
    limit: int = 50,
    queue: str = "",
    wanted: MessageFilter = EVERYTHING,
    *,
    mask: Mask = NO_MASK,
) -> Partial[MessagePage]:
    """A page of a topic's messages stored in [begin_ms, end_ms], newest first.

    `queue` selects one queue (`broker-a:3`) or one broker (`broker-a`). With a filter, a page ends
    when the page is full or the scan budget (SCAN_…) is spent; the cursor continues from there.
    Raises CursorError for an invalid cursor, NotFound for an unknown topic or queue, and
    FilterError for an invalid filter. Filters see masked messages.
    """
    ends = decode_cursor(cursor) if cursor else None
    test = wanted.compiled(mask) if wanted else None
    queues = chosen_queues(await topic_queues(session, topic), queue)
    gate = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)

    async def windows_on(broker: BrokerRef) -> list[Window]:
        stored = await stored_windows(session, [each for each in queues if each.broker == broker])
        return await gather_limited(
            gate, stored, lambda each: within(session, each, begin_ms, end_ms)
        )

    found, failures = await session.fan_out(brokers_of(queues), windows_on)
    windows = [window for group in found.values() for window in group]
    total = sum(window.count for window in windows)
    if ends is not None:
        windows = windows_before(windows, ends)

    async def fetch(each: QueueRef, begin: int, end: int) -> Slice:
        async with gate:
            return await read_slice(session, each, begin, end)

    limit = min(limit, PAGE_MESSAGES_MAX)
    if test is None:
        page = await newest_first(windows, limit, fetch)
    else:
        budget = Budget(SCAN_MESSAGES_MAX, SCAN_BYTES_MAX, monotonic() + SCAN_S)
        page = await newest_matching(windows, limit, fetch, test, budget)
    rows = tuple(
        MessageRef(each.broker, message).seen_through(mask) for each, message in page.messages
    )
    left = sum(each.count for each in windows_before(windows, page.ends))
    found_page = MessagePage(
        rows, total, encode_cursor(page.ends), page.unreadable, page.scanned, left
    )
    return Partial(found_page, failures)


def chosen_queues(queues: tuple[QueueRef, ...], queue: str) -> tuple[QueueRef, ...]:
    """Return the queues for `broker-a:3` or `broker-a`; for an empty text, all queues."""
    chosen = tuple(each for each in queues if queue in {"", each.key, each.broker.name})
    if queue and not chosen:
        raise NotFound(
            format_lazy(_("The topic has no queue “{queue}”."), queue=queue),
            hint=format_lazy(
                _("It has: {names}."),
                names=", ".join(each.key for each in queues[:QUEUES_NAMED_MAX]) or "—",
            ),
        )
    return chosen


@question(fresh_for_ms=2_000)
async def queue_names(session: ClusterSession, topic: str) -> Partial[tuple[str, ...]]:
    """The values of `browse(queue=)`: brokers and queues of a topic, at most QUEUES_OFFERED_MAX."""
    queues = await topic_queues(session, topic)
    names = [*(each.name for each in brokers_of(queues)), *(each.key for each in queues)]
    return Partial(tuple(names[:QUEUES_OFFERED_MAX]))
