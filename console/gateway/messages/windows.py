"""Windows of queues by offset and by store time."""

from collections.abc import Sequence

from console.gateway.engine.answers import now_ms
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.paging import (
    Window,
)
from console.gateway.messages.queue_slices import QueueRef, read_slice


async def stored_windows(session: ClusterSession, queues: Sequence[QueueRef]) -> list[Window]:
    """Return the stored windows of a topic's queues on one broker, with a single request."""
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
    """Return the part of a window stored in [begin_ms, end_ms]; None leaves an end open."""
    begin, end = window.begin, window.end
    if begin_ms is not None and begin_ms > 0:
        begin = await first_stored_at(session, window, begin_ms)
    if end_ms is not None and end_ms < now_ms():
        end = await first_stored_at(session, window, end_ms + 1)
    return Window(window.queue, begin, end)


async def first_stored_at(session: ClusterSession, window: Window, moment_ms: int) -> int:
    """Return the first offset stored at `moment_ms` or later; the window's end without one.

    A broker's answer for a time is approximate: any of several messages of one millisecond, the
    nearer of two messages, and after the newest message the newest offset (4.9) or the next one
    (5.x). So the messages around the answer are read; when their times do not decide, a binary
    search in the rest of the window follows.
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
        if older or not newer:  # deleted messages were older
            low = max(older, default=end - 1) + 1
        begin = (low + high) // 2
        end = begin + 1
    return high
