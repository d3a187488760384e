"""Windows of queues by offset and by store time."""

from collections.abc import Sequence

from console.gateway.engine.answers import now_ms
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.paging import (
    Window,
)
from console.gateway.messages.queue_slices import QueueRef, read_slice


async def stored_windows(session: ClusterSession, queues: Sequence[QueueRef]) -> list[Window]:
    """What each of the queues of one topic on one broker holds; one request for all of them."""
    broker, topic = queues[0].broker, queues[0].topic
    stats = await session.admin.topic_stats(broker.addr, topic)
    offsets = {key.queue_id: value for key, value in stats.items()}
    return [
        Window(each, max(0, offsets[each.queue_id].min_offset), offsets[each.queue_id].max_offset)
        for each in queues
        if each.queue_id in offsets
    ]


async def within(
    session: ClusterSession, window: Window, begin_ms: int | None, end_ms: int | None
) -> Window:
    """The part of a window that was stored within the times; an open end stays as it is."""
    begin, end = window.begin, window.end
    if begin_ms is not None and begin_ms > 0:
        begin = await first_stored_at(session, window, begin_ms)
    if end_ms is not None and end_ms < now_ms():
        end = await first_stored_at(session, window, end_ms + 1)
    return Window(window.queue, begin, end)


async def first_stored_at(session: ClusterSession, window: Window, moment_ms: int) -> int:
    """The first offset that was stored at the moment or later; the window's end without one.

    What a broker answers for a time is only near it: of several messages of one millisecond it
    names any, between two messages the nearer one, after the newest the newest (4.9) or the next
    offset (5.x). So the messages around the answer are looked at; mostly that settles it, and
    otherwise the place is found by halving what is left.
    """
    low, high = window.begin, window.end
    if low >= high:
        return high
    queue = window.queue
    near = await session.admin.search_offset(
        queue.broker.addr, queue.topic, queue.queue_id, moment_ms
    )
    near = min(max(near, low), high - 1)
    begin, end = near - 1, near + 2
    while low < high:
        begin, end = max(begin, low), min(end, high)
        messages = (await read_slice(session, queue, begin, end)).messages
        older = [each.queue_offset for each in messages if each.store_timestamp < moment_ms]
        newer = [each.queue_offset for each in messages if each.store_timestamp >= moment_ms]
        high = min(newer, default=high)
        if older or not newer:  # what is gone was older
            low = max(older, default=end - 1) + 1
        begin = (low + high) // 2
        end = begin + 1
    return high
