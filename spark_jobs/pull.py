"""One slice of a queue, read by queue offset in a Spark worker.

A pull of a RocketMQ broker answers at most 32 messages, however many are asked for, so several
pulls of neighbouring ranges are under way at once. An answer is taken apart as soon as it is there,
while the broker works on the others, and the next ones are asked for while Spark has the rows of
the last. Nothing is committed, and a broker that goes away is asked again, wherever the name server
finds it next.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from core_broker.client import AdminClient, PullStatus, RawPull
from core_broker.client.subscription import build_subscription
from core_broker.errors import GantryError
from spark_jobs.offsets import QueueRange
from spark_jobs.options import ReadOptions
from spark_jobs.pulled import MessageRows, PulledRows, Rows
from spark_jobs.queues import ReadError, broker_addr, persistently
from spark_jobs.records import HEAD_COLUMNS

if TYPE_CHECKING:
    from pyarrow import RecordBatch

logger = logging.getLogger(__name__)

LANES: Final = 8
"""So many pulls are under way at once."""
ROWS_FIRST: Final = 256
ROWS_MAX: Final = 8192
BATCH_BYTES: Final = 16 * 1024 * 1024
"""About so much is in memory for one batch; message sizes seen so far decide on the rows."""


def read_slice(
    options: ReadOptions, part: QueueRange, columns: Sequence[str]
) -> Iterator["RecordBatch"]:
    """The messages of `part` in order of offset, in batches. Opens and closes its own client.

    Raises ReadError when the broker stays away, or has no longer what was asked for and
    failOnDataLoss is set.
    """
    with asyncio.Runner() as runner:
        admin = AdminClient(
            options.namesrv, timeout_ms=options.request_timeout_ms, rpc_hooks=options.hooks
        )
        reader = _SliceReader(admin, options, part, columns)
        # Not `runner.run`: as it ends it makes a text of its task, with all bytes in the result.
        wait_for = runner.get_loop().run_until_complete
        began_s, rows = time.monotonic(), 0
        try:
            while not reader.is_done:
                window = wait_for(reader.next_window())
                batch = window.to_arrow(columns, options.topic, part.broker_name)
                reader.learn(batch)
                rows += batch.num_rows
                if batch.num_rows:
                    yield batch
                if options.rows_per_second_max:
                    due_s = began_s + rows / options.rows_per_second_max
                    time.sleep(max(0.0, due_s - time.monotonic()))
        finally:
            wait_for(reader.close())


class _SliceReader:
    """Pulls a slice window by window, the next one while the last is worked on."""

    def __init__(
        self, admin: AdminClient, options: ReadOptions, part: QueueRange, columns: Sequence[str]
    ) -> None:
        self._admin = admin
        self._options = options
        self._part = part
        wanted = build_subscription(options.topic, options.tags, version=0)
        is_fast = not wanted.tags_set and HEAD_COLUMNS.issuperset(columns)
        self._new_rows: Callable[[], Rows] = PulledRows if is_fast else partial(MessageRows, wanted)
        self._offset = part.start
        """Everything before it was asked for."""
        self._rows = ROWS_FIRST
        self._addr: str | None = None
        self._ahead: asyncio.Task[Rows] | None = None

    @property
    def is_done(self) -> bool:
        return self._ahead is None and self._offset >= self._part.end

    async def next_window(self) -> Rows:
        """The next window; the one after it is asked for before this returns."""
        task = self._ahead or self._start()
        rows = await task
        self._ahead = self._start() if self._offset < self._part.end else None
        await asyncio.sleep(0)  # the questions go out now, not when we come back
        return rows

    def learn(self, batch: "RecordBatch") -> None:
        """Take the size of what came as a guess at what comes."""
        if batch.num_rows:
            row_bytes = batch.nbytes // batch.num_rows + 1
            self._rows = max(LANES, min(ROWS_MAX, BATCH_BYTES // row_bytes))

    async def close(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
        await self._admin.close()

    def _start(self) -> "asyncio.Task[Rows]":
        count = min(self._rows, self._part.end - self._offset)
        bounds = [self._offset + count * lane // LANES for lane in range(LANES + 1)]
        self._offset += count
        return asyncio.get_running_loop().create_task(self._read_window(bounds))

    async def _read_window(self, bounds: Sequence[int]) -> Rows:
        first, *others = await asyncio.gather(*map(self._read_range, bounds[:-1], bounds[1:]))
        first.extend(others)
        return first

    async def _read_range(self, start: int, end: int) -> Rows:
        rows = self._new_rows()
        while start < end:
            pulled = await self._pull(start, end - start)
            if pulled.status is PullStatus.FOUND:
                rows.add(pulled.body, start, end)
            start = self._after(pulled, start)
        return rows

    def _after(self, pulled: RawPull, offset: int) -> int:
        """Where to go on. What the broker no longer has is an error or skipped, as asked for."""
        has_moved = pulled.next_offset > offset
        if has_moved and pulled.status in {PullStatus.FOUND, PullStatus.NO_MATCHED_MSG}:
            return pulled.next_offset
        part = self._part
        gone = (
            f"Messages from offset {offset} of queue {part.queue_id} on {part.broker_name} "
            f"are gone; the queue now holds {pulled.min_offset} to {pulled.max_offset}."
        )
        if self._options.fail_on_data_loss:
            raise ReadError(gone + " Set failOnDataLoss=false to go on without them.")
        logger.warning(gone)
        return pulled.min_offset if pulled.min_offset > offset else part.end

    async def _pull(self, offset: int, count: int) -> RawPull:
        part, options = self._part, self._options

        async def ask() -> RawPull:
            addr = self._addr
            if addr is None:
                addr = await broker_addr(self._admin, options.topic, part.broker_name)
                self._addr = addr
            try:
                return await self._admin.pull_raw(
                    addr, options.topic, part.queue_id, offset, count, options.tags, options.group
                )
            except GantryError:
                self._addr = None  # the broker may be elsewhere by now
                raise

        what = f"reading queue {part.queue_id} of {part.broker_name} at offset {offset}"
        return await persistently(ask, options.retry_timeout_ms, what)
