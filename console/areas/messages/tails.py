"""Live tails: what is stored in a topic, shown to all who watch it as it comes.

One Tail per topic and process looks at the topic every LOOK_S, however many watch; it ends with
its last listener. What it read is tried on each listener's filter in a thread, and each listener
takes as many rows as its rate allows. All that is not shown is counted: `skipped` is what nobody
read, because the topic is faster than LOOK_MESSAGES_MAX per look, `dropped` what passed the filter
and not the rate, the pause or a slow browser.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from console import metrics
from console.areas.messages.body import preview
from console.gateway import Cluster, GatewayError, now_ms
from console.gateway.messages.filters import MessageFilter
from console.gateway.messages.stored import MessageRef
from console.gateway.messages.tail import Positions, TailBatch, poll_tail

log = logging.getLogger(__name__)

FEED = "tail"
LOOK_S = 0.25
#: After a failure the next look waits this long.
REST_S = 1.0
TAILS_MAX = 64
LISTENERS_MAX = 256
#: Rows that wait for a browser; a slower one misses the oldest of them.
WAITING_ROWS_MAX = 500
#: A pause in the flow saves up this many seconds of the rate.
BURST_S = 3.0

Row = dict[str, Any]


class TooManyTails(Exception):
    """This process follows as many topics, or has as many listeners, as it may."""


class Listener:
    """One browser: what it wants, how fast, and what waits for it."""

    def __init__(self, wanted: MessageFilter, queue: str, rate: int) -> None:
        self.wanted = wanted
        self.queue = queue
        self.test = wanted.compiled()
        self.rate = rate
        self.paused = False
        self.news = asyncio.Event()
        self._rows: deque[Row] = deque(maxlen=WAITING_ROWS_MAX)
        self._seen = self._matched = self._dropped = self._skipped = 0
        self._trouble: str | None = None
        self._failures: list[dict[str, str]] = []
        self._tokens = rate * BURST_S
        self._filled_s = monotonic()

    def wants_queue(self, ref: MessageRef) -> bool:
        key = f"{ref.broker.name}:{ref.message.queue_id}"
        return self.queue in {"", ref.broker.name, key}

    def offer(self, rows: Sequence[Row], seen: int, skipped: int) -> None:
        """Take what the rate allows, the newest first; the rest is counted."""
        now_s = monotonic()
        self._tokens = min(self.rate * BURST_S, self._tokens + (now_s - self._filled_s) * self.rate)
        self._filled_s = now_s
        room = 0 if self.paused else int(self._tokens)
        taken = rows[-room:] if room else []
        self._tokens -= len(taken)
        waiting = len(self._rows)
        self._rows.extend(taken)
        pushed_out = waiting + len(taken) - len(self._rows)
        self._seen += seen
        self._matched += len(rows)
        self._dropped += len(rows) - len(taken) + pushed_out
        self._skipped += skipped
        self._trouble = None
        self.news.set()

    def tell_trouble(self, reason: str | None, failures: list[dict[str, str]]) -> None:
        self._trouble, self._failures = reason, failures
        self.news.set()

    def take(self) -> dict[str, Any]:
        """What a browser is sent next: rows that wait, all counts, and what is wrong."""
        self.news.clear()
        rows = list(self._rows)
        self._rows.clear()
        return {
            "type": "lost" if self._trouble else "rows",
            "at_ms": now_ms(),
            "rows": rows,
            "seen": self._seen,
            "matched": self._matched,
            "dropped": self._dropped,
            "skipped": self._skipped,
            "reason": self._trouble or "",
            "failures": self._failures,
        }


class Tail:
    """One topic of one cluster, followed on one event loop."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.listeners: set[Listener] = set()
        self._positions: Positions | None = None
        self._task: asyncio.Task[None] | None = None

    def join(self, listener: Listener) -> None:
        self.listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"tail {self.topic}")

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self.listeners:
                is_well = await self.look()
                await asyncio.sleep(LOOK_S if is_well else REST_S)
        except Exception:
            # The next listener starts it again; those who watch see that nothing comes any more.
            log.exception("the tail of %s in cluster %s failed", self.topic, self.cluster)

    async def look(self) -> bool:
        """Look once and tell the listeners; False when the cluster could not answer."""
        try:
            answer = await self.cluster.ask_async(poll_tail, self.topic, self._positions)
        except GatewayError as trouble:
            metrics.feed_drops.labels(self.cluster.name, FEED).inc()
            for listener in tuple(self.listeners):
                listener.tell_trouble(str(trouble.detail), [])
            return False
        self._positions = answer.value.positions
        failures = [asdict(failure) for failure in answer.failures]
        for listener in tuple(self.listeners):
            listener.tell_trouble(None, failures)
        await self._deliver(answer.value)
        return not failures

    async def _deliver(self, found: TailBatch) -> None:
        """Each filter is tried once, however many listeners have it."""
        alike: dict[tuple[MessageFilter, str], list[Listener]] = {}
        for listener in tuple(self.listeners):
            alike.setdefault((listener.wanted, listener.queue), []).append(listener)
        made: dict[int, Row] = {}
        for group in alike.values():
            rows = await asyncio.to_thread(_wanted_rows, group[0], found.refs, made)
            for listener in group:
                listener.offer(rows, len(found.refs), found.skipped)


def _wanted_rows(listener: Listener, refs: Sequence[MessageRef], made: dict[int, Row]) -> list[Row]:
    """The rows that pass a listener's filter; `made` keeps them for the next listener."""
    rows = []
    for number, ref in enumerate(refs):
        if listener.wants_queue(ref) and listener.test(ref.message):
            if number not in made:
                made[number] = row_of(ref)
            rows.append(made[number])
    return rows


def row_of(ref: MessageRef) -> Row:
    """A message as the page of a tail shows it."""
    message = ref.message
    return {
        "offset_msg_id": message.offset_msg_id,
        "msg_id": message.msg_id,
        "stored_ms": message.store_timestamp,
        "tags": message.tags or "",
        "keys": " ".join(message.keys),
        "place": f"{ref.broker.name}:{message.queue_id}:{message.queue_offset}",
        "size_bytes": message.store_size,
        "preview": preview(message),
    }


_tails: dict[tuple[str, str, str], tuple[asyncio.AbstractEventLoop, Tail]] = {}


def join_tail(cluster: Cluster, topic: str, listener: Listener) -> Tail:
    """Listen to a topic, by the tail that all its listeners share; raises TooManyTails."""
    running = asyncio.get_running_loop()
    for key, (loop, tail) in list(_tails.items()):
        if loop is not running or not tail.listeners:
            del _tails[key]  # an idle one ends by itself
    listeners = sum(len(tail.listeners) for _loop, tail in _tails.values())
    key = (cluster.name, cluster.namesrv_addr, topic)
    if listeners >= LISTENERS_MAX or (key not in _tails and len(_tails) >= TAILS_MAX):
        raise TooManyTails
    if key not in _tails:
        _tails[key] = (running, Tail(cluster, topic))
    tail = _tails[key][1]
    tail.join(listener)
    metrics.viewers.labels(cluster.name, FEED).inc()
    return tail


def leave_tail(tail: Tail, listener: Listener) -> None:
    tail.leave(listener)
    metrics.viewers.labels(tail.cluster.name, FEED).dec()


async def stop_tails() -> None:
    """Stop those of the running loop; called when the server stops."""
    running = asyncio.get_running_loop()
    for loop, tail in list(_tails.values()):
        if loop is running:
            await tail.stop()
