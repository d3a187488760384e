"""The question of live tails: the messages stored in a topic since the previous poll."""

from dataclasses import dataclass

from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef, brokers_of, read_slice, topic_queues
from console.gateway.messages.stored import MessageRef
from console.gateway.messages.windows import stored_windows

#: Maximum number of messages of one poll; older ones are skipped and counted.
POLL_MESSAGES_MAX = 500
QUEUE_MESSAGES_MIN = 8
ROUTE_FRESH_MS = 5_000

#: Next offset of each queue, in order of queue name.
Positions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TailBatch:
    """New messages, oldest first, and the positions of the next poll."""

    refs: tuple[MessageRef, ...]
    positions: Positions
    #: Number of new messages that were not read because of POLL_MESSAGES_MAX.
    skipped: int


@question(fresh_for_ms=ROUTE_FRESH_MS)
async def tail_queues(session: ClusterSession, topic: str) -> Partial[tuple[QueueRef, ...]]:
    """The queues of a topic, cached: a poll every 250 ms must not request the route each time."""
    return Partial(await topic_queues(session, topic))


@question(fresh_for_ms=0)
async def poll_tail(
    session: ClusterSession, topic: str, positions: Positions | None
) -> Partial[TailBatch]:
    """The messages stored after the positions; None starts at the current ends of the queues.

    A queue without a position is new and read from its beginning. A queue with an end below the
    position was created again; the tail continues at the end. Queues of a failed broker keep the
    positions, so the tail misses no message after the broker's return.
    """
    queues = (await session.ask(tail_queues, topic)).value

    async def windows_on(broker: BrokerRef) -> list[Window]:
        return await stored_windows(session, [each for each in queues if each.broker == broker])

    found, failures = await session.fan_out(brokers_of(queues), windows_on)
    windows = [window for group in found.values() for window in group]
    if positions is None:
        return Partial(
            TailBatch((), _sorted({each.queue.key: each.end for each in windows}), 0), failures
        )
    known = dict(positions)
    new = [_since(each, known) for each in windows]
    busy = [each for each in new if each.count]
    share = max(QUEUE_MESSAGES_MIN, POLL_MESSAGES_MAX // max(1, len(busy)))

    async def read(window: Window) -> list[MessageRef]:
        begin = max(window.begin, window.end - share)
        piece = await read_slice(session, window.queue, begin, window.end)
        return [MessageRef(window.queue.broker, message) for message in piece.messages]

    async def read_on(broker: BrokerRef) -> list[MessageRef]:
        parts = [await read(each) for each in busy if each.queue.broker == broker]
        return [ref for part in parts for ref in part]

    read_refs, read_failures = await session.fan_out(
        brokers_of(each.queue for each in busy), read_on, one_must_answer=False
    )
    for window in new:
        if not window.count or window.queue.broker in read_refs:
            known[window.queue.key] = window.end
    refs = sorted(
        (ref for group in read_refs.values() for ref in group),
        key=lambda ref: (ref.message.store_timestamp, ref.broker.name, ref.message.queue_offset),
    )
    skipped = sum(max(0, each.count - share) for each in busy if each.queue.broker in read_refs)
    return Partial(TailBatch(tuple(refs), _sorted(known), skipped), (*failures, *read_failures))


def _since(window: Window, known: dict[str, int]) -> Window:
    position = known.get(window.queue.key, window.begin)
    position = min(position, window.end)
    return Window(window.queue, max(position, window.begin), window.end)


def _sorted(positions: dict[str, int]) -> Positions:
    return tuple(sorted(positions.items()))
