"""The commit log of a slave: bytes of the master's log take the place of puts.

A slave appends whole records at the offsets of the master, so both logs are equal byte for byte.
Queues and index are dispatched from the records, as in a recovery. Records become visible in the
call that writes their bytes. Compatible with RocketMQ's DefaultMessageStore.appendToCommitLog and
ReputMessageService.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from core_broker.errors import StoreCorrupt, StoreReadOnly
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.files import Buffer
from core_broker.store.framing import EntryPlace
from core_broker.store.plain_records import LogPart, PlainRecords, newest_of
from core_broker.store.workers import Workers


class Replica:
    """The writer of a slave's log, in place of `Appender.put`. Event loop only."""

    def __init__(self, workers: Workers) -> None:
        self._log, self._queues = workers.parts.log, workers.parts.queues
        self._open_files = workers.open_files
        self._dispatcher = workers.dispatcher
        self._flusher = workers.flusher
        self._preallocator = workers.preallocator
        self._health = workers.health
        self._appender = workers.appender

    @property
    def end(self) -> int:
        """End of the log: all bytes before are written to the file, not necessarily flushed."""
        return self._log.written

    @property
    def flushed(self) -> int:
        """All bytes of the log before are on the disk."""
        return self._log.flushed

    def set_active(self, is_active: bool) -> None:
        """Let the log be a copy of a master's log, or accept puts."""
        self._appender.is_replica = is_active

    @property
    def is_empty(self) -> bool:
        """True before the first byte."""
        return self._log.written == self._log.min_offset

    @property
    def segment_size(self) -> int:
        """Size of a segment, bytes: mappedFileSizeCommitLog."""
        return self._log.segment_size

    @property
    def last_record(self) -> int:
        """Offset of the newest record, -1 without records."""
        return self._log.last_record

    def begin_at(self, start: int) -> None:
        """Let an empty log begin at `start`, the first byte of a segment.

        Raises StoreReadOnly when the segment cannot be created.
        """
        assert self.is_empty
        if start == self._log.written:
            return
        self._check_writable()
        try:
            self._log.begin_at(start)
        except OSError as error:
            self._preallocator.note(error)
            raise StoreReadOnly(str(error)) from None

    def append(
        self,
        data: Buffer,
        records: Sequence[LogPart],
        places: Sequence[EntryPlace] = (),
        *,
        blank: Buffer | None = None,
    ) -> None:
        """Write and dispatch whole records of one segment; the first begins at `end`.

        `places` are those of entries of DLedger that hold the records. With `blank`, the end of
        the present segment, the first record begins the next segment; none is written alone.

        Raises StoreReadOnly when the bytes cannot be written; nothing is stored then.
        """
        self._check_writable()
        if blank is not None:
            self._roll(blank)
        if not self._log.fits(len(data)):
            self._log.discard_staged()
            raise StoreCorrupt(
                str(self._log.path_of(self.end)), self.end, "the records exceed the segment"
            )
        if self._log.entries is not None:
            self._log.entries.stage(places)
        self._log.stage_many(data, newest_of(records[-1]))
        self._write()
        self._appender.store_timestamp = max(
            self._appender.store_timestamp, records[-1].store_timestamp
        )
        self._dispatch(records)
        self._queues.visibility.seal(self._log.written)
        self._after_write()

    def end_segment(self, blank: Buffer) -> None:
        """Write the end of a segment: a blank record and all bytes behind it.

        Raises StoreReadOnly when the bytes cannot be written; nothing is stored then.
        """
        self._check_writable()
        self._roll(blank)
        self._write()
        self._after_write()

    def _roll(self, blank: Buffer) -> None:
        try:
            self._log.roll(blank)
        except OSError as error:
            self._preallocator.note(error)
            raise StoreReadOnly(str(error)) from None

    def _check_writable(self) -> None:
        if self._health.reason is not None:
            raise StoreReadOnly(self._health.reason)

    def _write(self) -> None:
        try:
            self._log.reserve_staged()
        except OSError as error:
            self._preallocator.note(error)
            self._log.discard_staged()
            raise StoreReadOnly(str(error)) from None
        began = time.monotonic()
        try:
            self._log.write_staged()
        except OSError as error:
            self._health.fail(f"writing the commit log failed: {error}")
            self._log.discard_staged()
            raise StoreReadOnly(str(error)) from None
        self._appender.write_time_s = time.monotonic() - began

    def _after_write(self) -> None:
        self._flusher.after_write()
        self._preallocator.advance()

    def _dispatch(self, records: Sequence[LogPart]) -> None:
        listeners = [each for each in self._appender.listeners if each.topics]
        firsts: dict[tuple[str, int], int] = {}
        for key in _queues_of(records) if listeners else ():
            if key not in firsts:
                queue = self._queues.get(*key)
                firsts[key] = 0 if queue is None else queue.max_offset
        # A queue that begins again reads its own files; the read must not become a ColdRead.
        was_serving, self._open_files.is_serving = self._open_files.is_serving, False
        try:
            self._enter(records)
        finally:
            self._open_files.is_serving = was_serving
        self._notify(listeners, firsts)

    def _enter(self, records: Sequence[LogPart]) -> None:
        dispatcher = self._dispatcher
        for record in records:
            with suppress(OSError):  # the unit is in memory; `settle` reports the disk's error
                if isinstance(record, PlainRecords):
                    dispatcher.dispatch_plain(record)
                else:
                    dispatcher.dispatch(record)
        dispatcher.decide_doubtful()
        # Repairs for a rebuild of the whole log, which a running slave never does.
        dispatcher.gaps.clear()
        dispatcher.missing.clear()
        try:
            dispatcher.settle()
        except OSError as error:
            self._health.set_lag(str(error))

    def _notify(
        self, listeners: Sequence[ArrivalListener], firsts: dict[tuple[str, int], int]
    ) -> None:
        for (topic, queue_id), first in firsts.items():
            queue = self._queues.get(topic, queue_id)
            if queue is None or queue.max_offset <= first:
                continue
            end = queue.max_offset
            for each in listeners:
                if topic in each.topics:
                    each.hear(topic, queue_id, first, end, partial(queue.tags_codes, first, end))


def _queues_of(records: Sequence[LogPart]) -> Iterator[tuple[str, int]]:
    """Yield topic and queue id of each queue with messages, some more than once."""
    for part in records:
        if isinstance(part, PlainRecords):
            for run in part.runs:
                yield run.topic, run.queue_id
        else:
            yield part.topic, part.queue_id
