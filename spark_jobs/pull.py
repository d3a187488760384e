"""One slice of a queue, read by queue offset in a Spark worker.

A pull of a RocketMQ broker answers at most 32 messages, however many are asked for, so several
pulls of neighbouring ranges are under way at once (`spark_jobs.lanes`). An answer is taken apart as
soon as it is there, while the broker works on the next ones. Nothing is committed, and a broker
that goes away is asked again, wherever the name server finds it next.
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
from spark_jobs.lanes import Answer, Lanes
from spark_jobs.offsets import QueueRange
from spark_jobs.options import ReadOptions
from spark_jobs.pulled import MessageRows, PulledRows, Rows
from spark_jobs.queues import ReadError, broker_addr, persistently
from spark_jobs.records import HEAD_COLUMNS

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)

#: The first batch is a short one: it tells how bodies grow when they are unpacked.
OFFSETS_FIRST: Final = 256
OFFSETS_MAX: Final = 8192
#: A batch ends with the answer that reaches this; what does not fit the caches is slow to make.
BATCH_BYTES: Final = 2 * 1024 * 1024


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
                batch = wait_for(reader.next_rows()).to_arrow(
                    columns, options.topic, part.broker_name
                )
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
    """Pulls a slice, rows for one batch after the other; meanwhile what comes next is pulled."""

    def __init__(
        self, admin: AdminClient, options: ReadOptions, part: QueueRange, columns: Sequence[str]
    ) -> None:
        self._admin = admin
        self._options = options
        self._part = part
        wanted = build_subscription(options.topic, options.tags, version=0)
        is_fast = not wanted.tags_set and HEAD_COLUMNS.issuperset(columns)
        self._new_rows: Callable[[], Rows] = PulledRows if is_fast else partial(MessageRows, wanted)
        self._offsets_max = min(OFFSETS_MAX, options.rows_per_second_max or OFFSETS_MAX)
        self._lanes = Lanes(self._ask, part.start, part.end, ahead_offsets=self._offsets_max)
        self._offsets = min(OFFSETS_FIRST, self._offsets_max)
        self._bytes = BATCH_BYTES
        self._pulled = 0
        self._slept_at_s = time.monotonic()
        self._asleep_s = 0.0
        self._addr: str | None = None
        """Where the broker answered last."""

    @property
    def is_done(self) -> bool:
        return self._lanes.is_over

    async def next_rows(self) -> Rows:
        """The rows of the next batch."""
        self._asleep_s += time.monotonic() - self._slept_at_s
        rows = self._new_rows()
        self._pulled = await self._lanes.fill(
            rows, offsets_max=self._offsets, bytes_max=self._bytes
        )
        self._slept_at_s = time.monotonic()
        return rows

    def learn(self, batch: "RecordBatch") -> None:
        """Take by how much bodies grew when they were unpacked as a guess at what comes."""
        self._offsets = self._offsets_max
        self._bytes = BATCH_BYTES * max(1, self._pulled) // max(1, self._pulled, batch.nbytes)

    async def close(self) -> None:
        await self._lanes.close()
        await self._admin.close()

    async def _ask(self, start: int, end: int) -> Answer:
        pulled = await self._pull(start, end - start)
        body = pulled.body if pulled.status is PullStatus.FOUND else b""
        return Answer(body, start, self._after(pulled, start))

    def _after(self, pulled: RawPull, offset: int) -> int:
        """Where to go on. What the broker no longer has is an error or skipped, as asked for."""
        status, after = pulled.status, pulled.next_offset
        if after > offset and (status is PullStatus.FOUND or status is PullStatus.NO_MATCHED_MSG):
            return after
        part = self._part
        gone = (
            f"Messages from offset {offset} of queue {part.queue_id} on {part.broker_name} "
            f"are gone; the queue now holds {pulled.min_offset} to {pulled.max_offset}."
        )
        if self._options.fail_on_data_loss:
            raise ReadError(gone + " Set failOnDataLoss=false to go on without them.")
        log.warning(gone)
        return pulled.min_offset if pulled.min_offset > offset else part.end

    async def _pull(self, offset: int, count: int) -> RawPull:
        if self._addr is not None:
            try:
                return await self._pull_from(self._addr, offset, count)
            except GantryError:
                self._addr = None  # the broker may be elsewhere by now
        part, options = self._part, self._options

        async def ask() -> RawPull:
            addr = self._addr or await broker_addr(self._admin, options.topic, part.broker_name)
            pulled = await self._pull_from(addr, offset, count)
            self._addr = addr
            return pulled

        what = f"reading queue {part.queue_id} of {part.broker_name} at offset {offset}"
        return await persistently(ask, options.retry_timeout_ms, what, self._awake_s)

    def _awake_s(self) -> float:
        """A clock that stands still while Spark has a batch: no answer is read then."""
        return time.monotonic() - self._asleep_s

    def _pull_from(self, addr: str, offset: int, count: int) -> Awaitable[RawPull]:
        options, queue_id = self._options, self._part.queue_id
        return self._admin.pull_raw(
            addr, options.topic, queue_id, offset, count, options.tags, options.group
        )
