"""One slice of a queue, read by queue offset in a Spark worker.

A pull of a RocketMQ broker answers at most 32 messages, however many are asked for, so several
pulls of neighbouring ranges are under way at once. Nothing is committed, and a broker that goes
away is asked again, wherever the name server finds it next.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from core_broker.client import AdminClient, PullResult, PullStatus
from core_broker.message.model import MessageExt
from spark_jobs.offsets import QueueRange
from spark_jobs.options import ReadOptions
from spark_jobs.queues import ReadError, broker_addr, persistently

logger = logging.getLogger(__name__)

LANES: Final = 4
"""So many pulls are under way at once."""
ROWS_FIRST: Final = 128
ROWS_MAX: Final = 4096
BATCH_BYTES: Final = 16 * 1024 * 1024
"""About so much is in memory for one batch; message sizes seen so far decide on the rows."""


def read_slice(options: ReadOptions, part: QueueRange) -> Iterator[list[MessageExt]]:
    """The messages of `part` in order of offset, in batches. Opens and closes its own client."""
    with asyncio.Runner() as runner:
        admin = AdminClient(options.namesrv, timeout_ms=options.request_timeout_ms)
        reader = _SliceReader(admin, options, part)
        try:
            while not reader.is_done:
                if batch := runner.run(reader.next_batch()):
                    yield batch
        finally:
            runner.run(admin.close())


class _SliceReader:
    def __init__(self, admin: AdminClient, options: ReadOptions, part: QueueRange) -> None:
        self._admin = admin
        self._options = options
        self._part = part
        self._offset = part.start
        self._rows = ROWS_FIRST
        self._addr: str | None = None

    @property
    def is_done(self) -> bool:
        return self._offset >= self._part.end

    async def next_batch(self) -> list[MessageExt]:
        count = min(self._rows, self._part.end - self._offset)
        bounds = [self._offset + count * lane // LANES for lane in range(LANES + 1)]
        lanes = await asyncio.gather(*map(self._read_range, bounds[:-1], bounds[1:]))
        batch = [message for lane in lanes for message in lane]
        self._offset += count
        if batch:
            row_bytes = sum(message.store_size for message in batch) // len(batch) + 1
            self._rows = max(LANES, min(ROWS_MAX, BATCH_BYTES // row_bytes))
        return batch

    async def _read_range(self, start: int, end: int) -> list[MessageExt]:
        found: list[MessageExt] = []
        while start < end:
            pulled = await self._pull(start, end - start)
            found += [message for message in pulled.messages if message.queue_offset < end]
            start = self._after(pulled, start)
        return found

    def _after(self, pulled: PullResult, offset: int) -> int:
        """Where to go on. What the broker no longer has is an error or skipped, as asked for."""
        if pulled.status is PullStatus.FOUND and pulled.messages:
            return pulled.messages[-1].queue_offset + 1
        if pulled.status is PullStatus.NO_MATCHED_MSG and pulled.next_offset > offset:
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

    async def _pull(self, offset: int, count: int) -> PullResult:
        part = self._part

        async def ask() -> PullResult:
            addr = self._addr
            if addr is None:
                addr = await broker_addr(self._admin, self._options.topic, part.broker_name)
            self._addr = None
            topic, group = self._options.topic, self._options.group
            result = await self._admin.pull(addr, topic, part.queue_id, offset, count, group=group)
            self._addr = addr  # it answered, so it is still the right one
            return result

        what = f"reading queue {part.queue_id} of {part.broker_name} at offset {offset}"
        result = await persistently(ask, self._options.retry_timeout_ms, what)
        for message in result.messages:
            message.broker_name = part.broker_name
        return result
