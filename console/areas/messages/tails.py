"""Live tails: new messages of a topic for all connected browsers.

One Tail per topic and process polls the topic every POLL_INTERVAL_S, independent of the number of
listeners, and ends with the last listener. A thread applies each listener's filter to the batch,
and each listener accepts rows up to its rate. Rows that are not shown are counted: `skipped` are
messages never read because the topic exceeds POLL_MESSAGES_MAX per poll, `dropped` are messages
that passed the filter and were discarded because of the rate, a pause or a slow browser.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async

from console import metrics
from console.areas.messages.body import preview
from console.frame.masking import mask_of_job
from console.gateway import Cluster, GatewayError, now_ms
from console.gateway.messages.filters import MessageFilter
from console.gateway.messages.masks import Mask
from console.gateway.messages.schemas.decoder import NO_DECODER, Decoder
from console.gateway.messages.stored import MessageRef
from console.gateway.messages.tail import Positions, TailBatch, poll_tail
from console.services.schemas.stored import decoder_of

log = logging.getLogger(__name__)

FEED = "tail"
POLL_INTERVAL_S = 0.25
#: Delay of the next poll after a failure, seconds.
RETRY_DELAY_S = 1.0
TAILS_MAX = 64
LISTENERS_MAX = 256
#: Maximum number of rows queued for one browser. When the queue is full, the oldest rows are
#: dropped and counted.
QUEUED_ROWS_MAX = 500
#: Burst capacity of the token bucket, seconds of the rate.
BURST_S = 3.0
#: Interval at which an open tail reads the rules of masks again, seconds.
MASK_FRESH_S = 5.0
#: Interval at which a tail reads the rules of body schemas again, seconds.
DECODER_FRESH_S = 5.0

Row = dict[str, Any]


class TooManyTails(Exception):
    """The process has reached TAILS_MAX or LISTENERS_MAX."""


class Listener:
    """One browser: filter, mask, row rate and queued rows."""

    def __init__(self, message_filter: MessageFilter, queue: str, rate: int, mask: Mask) -> None:
        self.message_filter = message_filter
        self.queue = queue
        self.mask = mask
        self._masked_s = monotonic()
        self.rate = rate
        self.paused = False
        self.changed = asyncio.Event()
        self._rows: deque[Row] = deque(maxlen=QUEUED_ROWS_MAX)
        self._seen = self._matched = self._dropped = self._skipped = 0
        self._problem: str | None = None
        self._failures: list[dict[str, str]] = []
        self._tokens = rate * BURST_S
        self._filled_s = monotonic()

    def accepts_queue(self, ref: MessageRef) -> bool:
        key = f"{ref.broker.name}:{ref.message.queue_id}"
        return self.queue in {"", ref.broker.name, key}

    async def renew_mask(self, cluster: Cluster) -> None:
        """Read the rules again after MASK_FRESH_S: a tail can be open for hours."""
        if monotonic() - self._masked_s >= MASK_FRESH_S:
            self._masked_s = monotonic()
            seen = self.mask.unmasked
            self.mask = await database_sync_to_async(mask_of_job)(cluster.name, seen)

    def offer(self, rows: Sequence[Row], seen: int, skipped: int) -> None:
        """Queue the newest rows up to the rate; count all other rows as dropped."""
        now_s = monotonic()
        self._tokens = min(self.rate * BURST_S, self._tokens + (now_s - self._filled_s) * self.rate)
        self._filled_s = now_s
        allowed = 0 if self.paused else int(self._tokens)
        taken = rows[-allowed:] if allowed else []
        self._tokens -= len(taken)
        queued = len(self._rows)
        self._rows.extend(taken)
        pushed_out = queued + len(taken) - len(self._rows)
        self._seen += seen
        self._matched += len(rows)
        self._dropped += len(rows) - len(taken) + pushed_out
        self._skipped += skipped
        self._problem = None
        self.changed.set()

    def report(self, reason: str | None, failures: list[dict[str, str]]) -> None:
        self._problem, self._failures = reason, failures
        self.changed.set()

    def take(self) -> dict[str, Any]:
        """The next frame of the browser: queued rows, counts, and failures."""
        self.changed.clear()
        rows = list(self._rows)
        self._rows.clear()
        return {
            "type": "lost" if self._problem else "rows",
            "at_ms": now_ms(),
            "rows": rows,
            "seen": self._seen,
            "matched": self._matched,
            "dropped": self._dropped,
            "skipped": self._skipped,
            "reason": self._problem or "",
            "failures": self._failures,
        }


class Tail:
    """Polls one topic of one cluster on one event loop."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.listeners: set[Listener] = set()
        self._positions: Positions | None = None
        self._decoder = NO_DECODER
        self._decoder_due_s = 0.0
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
                is_complete = await self.poll()
                await asyncio.sleep(POLL_INTERVAL_S if is_complete else RETRY_DELAY_S)
        except Exception:
            # The next listener starts the task again; present listeners get no more rows.
            log.exception("the tail of %s in cluster %s failed", self.topic, self.cluster)

    async def poll(self) -> bool:
        """Poll once and notify the listeners; False when the cluster or a broker failed."""
        try:
            answer = await self.cluster.ask_async(poll_tail, self.topic, self._positions)
        except GatewayError as error:
            metrics.feed_drops.labels(self.cluster.name, FEED).inc()
            for listener in tuple(self.listeners):
                listener.report(str(error.detail), [])
            return False
        self._positions = answer.value.positions
        failures = [asdict(failure) for failure in answer.failures]
        for listener in tuple(self.listeners):
            listener.report(None, failures)
        await self._deliver(answer.value)
        return not failures

    async def _deliver(self, batch: TailBatch) -> None:
        """Offer the batch to the listeners; equal filters and masks are applied once."""
        if batch.refs and monotonic() >= self._decoder_due_s:
            self._decoder = await database_sync_to_async(decoder_of)(self.cluster.name)
            self._decoder_due_s = monotonic() + DECODER_FRESH_S
        by_filter: dict[tuple[MessageFilter, str, Mask], list[Listener]] = {}
        for listener in tuple(self.listeners):
            key = (listener.message_filter, listener.queue, listener.mask)
            by_filter.setdefault(key, []).append(listener)
        known: dict[Mask, dict[int, Row]] = {}
        for (_filter, _queue, mask), group in by_filter.items():
            rows_by_index = known.setdefault(mask, {})
            decoder = self._decoder.seen_through(mask)
            rows = await asyncio.to_thread(
                _matching_rows, group[0], decoder, batch.refs, rows_by_index
            )
            for listener in group:
                listener.offer(rows, len(batch.refs), batch.skipped)


def _matching_rows(
    listener: Listener,
    decoder: Decoder,
    refs: Sequence[MessageRef],
    rows_by_index: dict[int, Row],
) -> list[Row]:
    """The rows that pass a listener's filter; `rows_by_index` caches rows for further listeners
    with the same mask."""
    test = listener.message_filter.decoding(decoder).compiled()
    rows = []
    for number, ref in enumerate(refs):
        if not listener.accepts_queue(ref):
            continue
        seen = ref.seen_through(decoder.mask)
        if test(seen.message):
            if number not in rows_by_index:
                rows_by_index[number] = row_of(seen, decoder)
            rows.append(rows_by_index[number])
    return rows


def row_of(ref: MessageRef, decoder: Decoder) -> Row:
    """A message as a row of the tail page."""
    message = ref.message
    return {
        "offset_msg_id": message.offset_msg_id,
        "msg_id": message.msg_id,
        "stored_ms": message.store_timestamp,
        "tags": message.tags or "",
        "keys": " ".join(message.keys),
        "place": f"{ref.broker.name}:{message.queue_id}:{message.queue_offset}",
        "size_bytes": message.store_size,
        "preview": preview(message, decoder),
    }


_tails: dict[tuple[str, str, str], tuple[asyncio.AbstractEventLoop, Tail]] = {}


def join_tail(cluster: Cluster, topic: str, listener: Listener) -> Tail:
    """Add a listener to the shared tail of a topic; raises TooManyTails."""
    running = asyncio.get_running_loop()
    for key, (loop, tail) in list(_tails.items()):
        if loop is not running or not tail.listeners:
            del _tails[key]  # a tail without listeners ends by itself
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
    """Stop the tails of the running event loop, at server shutdown."""
    running = asyncio.get_running_loop()
    for loop, tail in list(_tails.values()):
        if loop is running:
            await tail.stop()
