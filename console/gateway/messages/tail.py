"""The question behind live tails: what was stored in a topic since the last look at it."""

from dataclasses import dataclass

from console.gateway.engine.answers import Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.paging import Window
from console.gateway.messages.queue_slices import QueueRef, brokers_of, read_slice, topic_queues
from console.gateway.messages.stored import MessageRef
from console.gateway.messages.windows import stored_windows

#: One look reads no more than this of a topic; what came before it is passed over and counted.
POLL_MESSAGES_MAX = 500
QUEUE_MESSAGES_MIN = 8
ROUTE_FRESH_MS = 5_000

#: Queue by queue the offset up to which everything was seen, in order of the queues' names.
Positions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TailBatch:
    """What is new, oldest first, and from where the next look goes on."""

    refs: tuple[MessageRef, ...]
    positions: Positions
    #: Messages that were stored since the last look and not read, for there were too many.
    skipped: int


@question(fresh_for_ms=ROUTE_FRESH_MS)
async def tail_queues(session: ClusterSession, topic: str) -> Partial[tuple[QueueRef, ...]]:
    """The queues of a topic; a look every quarter second need not ask for its route each time."""
    return Partial(await topic_queues(session, topic))


@question(fresh_for_ms=0)
async def poll_tail(
    session: ClusterSession, topic: str, positions: Positions | None
) -> Partial[TailBatch]:
    """What was stored behind the positions; None begins with what comes from now on.

    A queue that the positions do not know is new, and read from its beginning. One whose end lies
    before its position was made anew, and is followed from its end. A broker that does not answer
    is named; its queues keep their positions, so nothing is missed once it is back.
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
