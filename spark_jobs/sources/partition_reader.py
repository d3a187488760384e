"""Read one queue range by queue offset in a Spark worker.

A RocketMQ broker returns at most 32 messages per pull with default settings, so several pulls of
neighbouring ranges run concurrently (`spark_jobs.sources.pull_window`). The reader parses a result
while the broker serves the next pulls. The reader commits no offsets. After a broker failure the
reader asks the name server for the address again and retries.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from core_broker.client import AdminClient, PullStatus, RawPull
from core_broker.client.subscription import build_subscription
from core_broker.errors import GantryError
from spark_jobs.sources.batch_builders import BatchBuilder, MessageBatchBuilder, VectorBatchBuilder
from spark_jobs.sources.offsets import QueueRange
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.pull_window import PulledRange, PullWindow
from spark_jobs.sources.queues import ReadError, broker_addr, with_retries
from spark_jobs.sources.record_heads import HEAD_COLUMNS

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)

#: First batch, offsets: small, to measure how much bodies grow when decompressed.
OFFSETS_FIRST: Final = 256
OFFSETS_MAX: Final = 8192
#: Pulled bytes that end a batch. Larger batches exceed the CPU caches and are slower to build.
BATCH_BYTES: Final = 2 * 1024 * 1024


def read_range(
    options: ReadOptions, part: QueueRange, columns: Sequence[str]
) -> Iterator["RecordBatch"]:
    """The messages of `part` in offset order, in batches. Opens and closes its own client.

    Raises ReadError when the broker is unreachable for `retryTimeoutMs`, or when requested messages
    have expired and failOnDataLoss is set.
    """
    with asyncio.Runner() as runner:
        reader = _RangeReader(options.admin(), options, part, columns)
        # Not `runner.run`, which formats its task, with all bytes of the result, when the run ends.
        wait_for = runner.get_loop().run_until_complete
        began_s, rows = time.monotonic(), 0
        try:
            while not reader.is_finished:
                batch = wait_for(reader.next_batch()).to_arrow(
                    columns, options.topic, part.broker_name
                )
                reader.adapt_limits(batch)
                rows += batch.num_rows
                if batch.num_rows:
                    yield batch
                if options.rows_per_second_max:
                    due_s = began_s + rows / options.rows_per_second_max
                    time.sleep(max(0.0, due_s - time.monotonic()))
        finally:
            wait_for(reader.close())


class _RangeReader:
    """Pulls a range and builds one batch after another; pulls for later batches run meanwhile."""

    def __init__(
        self, admin: AdminClient, options: ReadOptions, part: QueueRange, columns: Sequence[str]
    ) -> None:
        self._admin = admin
        self._options = options
        self._part = part
        subscription = build_subscription(options.topic, options.tags, version=0)
        is_fast = not subscription.tags_set and HEAD_COLUMNS.issuperset(columns)
        self._new_batch: Callable[[], BatchBuilder] = (
            VectorBatchBuilder if is_fast else partial(MessageBatchBuilder, subscription)
        )
        self._offsets_max = min(OFFSETS_MAX, options.rows_per_second_max or OFFSETS_MAX)
        self._window = PullWindow(
            self._pull_range, part.start, part.end, ahead_offsets=self._offsets_max
        )
        self._offsets = min(OFFSETS_FIRST, self._offsets_max)
        self._bytes = BATCH_BYTES
        self._pulled = 0
        self._paused_at_s = time.monotonic()
        self._paused_s = 0.0
        #: Address of the last successful pull.
        self._addr: str | None = None

    @property
    def is_finished(self) -> bool:
        return self._window.is_finished

    async def next_batch(self) -> BatchBuilder:
        """Collect the records of the next batch."""
        self._paused_s += time.monotonic() - self._paused_at_s
        rows = self._new_batch()
        self._pulled = await self._window.fill(
            rows, offsets_max=self._offsets, bytes_max=self._bytes
        )
        self._paused_at_s = time.monotonic()
        return rows

    def adapt_limits(self, batch: "RecordBatch") -> None:
        """Scale the byte limit by the growth of the bodies of the last batch."""
        self._offsets = self._offsets_max
        self._bytes = BATCH_BYTES * max(1, self._pulled) // max(1, self._pulled, batch.nbytes)

    async def close(self) -> None:
        await self._window.close()
        await self._admin.close()

    async def _pull_range(self, start: int, end: int) -> PulledRange:
        pulled = await self._pull(start, end - start)
        body = pulled.body if pulled.status is PullStatus.FOUND else b""
        return PulledRange(body, start, self._after(pulled, start))

    def _after(self, pulled: RawPull, offset: int) -> int:
        """The next offset. Expired messages raise ReadError, or are skipped without
        failOnDataLoss.
        """
        status, after = pulled.status, pulled.next_offset
        if after > offset and (status is PullStatus.FOUND or status is PullStatus.NO_MATCHED_MSG):
            return after
        part = self._part
        expired = (
            f"Messages from offset {offset} of queue {part.queue_id} on {part.broker_name} "
            f"have expired; the queue now holds {pulled.min_offset} to {pulled.max_offset}."
        )
        if self._options.fail_on_data_loss:
            raise ReadError(expired + " Set failOnDataLoss=false to continue without them.")
        log.warning(expired)
        return pulled.min_offset if pulled.min_offset > offset else part.end

    async def _pull(self, offset: int, count: int) -> RawPull:
        if self._addr is not None:
            try:
                return await self._pull_from(self._addr, offset, count)
            except GantryError:
                self._addr = None  # the broker may have moved
        part, options = self._part, self._options

        async def pull() -> RawPull:
            addr = self._addr or await broker_addr(self._admin, options.topic, part.broker_name)
            pulled = await self._pull_from(addr, offset, count)
            self._addr = addr
            return pulled

        action = f"reading queue {part.queue_id} of {part.broker_name} at offset {offset}"
        return await with_retries(pull, options.retry_timeout_ms, action, self._active_s)

    def _active_s(self) -> float:
        """A clock that stops while Spark processes a batch: no results are read meanwhile."""
        return time.monotonic() - self._paused_s

    def _pull_from(self, addr: str, offset: int, count: int) -> Awaitable[RawPull]:
        options, queue_id = self._options, self._part.queue_id
        return self._admin.pull_raw(
            addr, options.topic, queue_id, offset, count, options.tags, options.group
        )
