# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Pulls, from the read buffer straight to answers with the records.

The kernel takes pulls that are usual: JSON header without surprises, a queue that needs no second
look for this group and subscription, messages in memory, and as whole as the plain path wants them.
It touches nothing of any other; the plain path (processors/pull.py) takes that one, and alone
decides what is refused or damaged. Polls at the end of a queue are answered, or held by its means.
What is answered is byte for byte what the plain path answers (tests/unit/kernel). Records are
copied once, from the mapping of the log into the answer.
"""

import cython
from cython.cimports.core_broker.kernel.fast_path import FastHandler, FastPath
from cython.cimports.core_broker.kernel.fields import (
    EXPRESSION_TYPE_FIELD,
    GROUP_FIELD,
    SUBSCRIPTION_FIELD,
    TOPIC_FIELD,
    NamedHeader,
)
from cython.cimports.core_broker.kernel.mapping import Mapping
from cython.cimports.core_broker.kernel.octets import get32, get64, put_decimal
from cython.cimports.core_broker.kernel.prefetch import prefetch
from cython.cimports.core_broker.kernel.sources import PullSource
from cython.cimports.core_broker.kernel.templates import put_lengths, put_text
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcpy

COMMIT_FLAG = cython.declare(int64_t, 1)
SUSPEND_FLAG = cython.declare(int64_t, 2)
#: The broker that answers without messages recommend.
MASTER_ID = cython.declare(int64_t, 0)
FRAME_HEAD = cython.declare(cython.int, 8)
#: Size in a unit that stands for no message.
BLANK_SIZE = cython.declare(int64_t, 2147483647)
#: Nobody may be given more messages at once.
CHOSEN_MAX = cython.declare(cython.int, 512)
#: Neighbouring records with no more than this between them are looked for in memory together.
GAP_BYTES = cython.declare(int64_t, 65536)
SPAN_BYTES = cython.declare(int64_t, 4 << 20)
#: What the numbers of an answer and its frame head take, beside the parts that were cut out.
NUMBERS_BYTES = cython.declare(cython.int, 128)
HEADER_MAX = cython.declare(cython.int, 1024)

Record = cython.struct(place=int64_t, size=int64_t, offset=int64_t, at=cython.pointer(uint8_t))


@cython.cclass
class CompiledPulls(FastHandler):
    """Takes pulls, and answers them at once.

    `shell.begin()` is called before the first one of a turn, and returns from where to where the
    log may be given out, how long a pull may have waited in ms, and the port on which there are
    none; or None when all pulls need a second look. `shell.source(group, topic, queue_id, flags,
    sub_version, subscription, expression_type) -> PullSource | None` is kept until `forget`;
    `shell.commit(target, offset)` commits, and `shell.mapping(place) -> Mapping | None` finds the
    piece of the log that has a record. `shell.hold(source, line, asked)` holds a pull at the end of
    the queue, and is false when that needs a second look; `asked` is what `_asked` returns.
    `configure` comes before anything else.
    """

    #: Pulls and messages that went this way.
    pulls = cython.declare(int64_t, visibility="readonly")
    messages = cython.declare(int64_t, visibility="readonly")
    #: Those that found nothing.
    missed = cython.declare(int64_t, visibility="readonly")

    #: Whether anything may be pulled in this turn.
    is_open = cython.declare(cython.bint, visibility="readonly")

    _shell: object
    _sources: dict
    # Of answers with messages, at the end of a queue, and when nothing matched.
    _parts: tuple
    _end_parts: tuple
    _unmatched_parts: tuple
    _turn: int64_t
    _waited_max_ms: cython.double
    _closed_port: cython.int
    _mapping: Mapping
    _now: cython.double  # when the turn began, in s of the monotonic clock; 0 is not known
    _records: Record[512]
    # What one answer may have, and after how many units it ends; what of the log is given out.
    _count_max: int64_t
    _bytes_max: int64_t
    _scanned_max: int64_t
    _log_from: int64_t
    _log_end: int64_t

    def __init__(self, shell: object) -> None:
        self._shell = shell
        self._sources = {}
        self._turn = -1
        self.answers_alone = True

    def configure(
        self, answer_parts: tuple, count_max: int, bytes_max: int, scanned_max: int
    ) -> None:
        """Put settings in force.

        The parts are what stands in an answer before the opaque, the suggested broker and the next,
        first and last offset, and at its end: in answers with messages, at the end of a queue, and
        when nothing matched.
        """
        longest = max(sum(map(len, parts)) for parts in answer_parts)
        if longest + NUMBERS_BYTES > HEADER_MAX or count_max > CHOSEN_MAX:
            raise ValueError("the answers of pulls are too large for the kernel")
        self._parts, self._end_parts, self._unmatched_parts = answer_parts
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._scanned_max = scanned_max

    def forget(self) -> None:
        """Ask the shell again for every source."""
        self._sources.clear()

    def begin(self) -> None:
        """Ask the shell what may be pulled now."""
        self._begin(-1, 0)

    def gather(
        self,
        source: PullSource,
        offset: int64_t,
        count_max: int64_t,
        bytes_max: int64_t,
        opaque: int64_t,
    ) -> bytes | None:
        """The answer to one pull, or None when it is for the plain path; `bytes_max` -1 is none.

        For pulls that come from elsewhere, after `begin` when `is_open`.
        """
        return self._gather(source, offset, count_max, bytes_max, opaque, False)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, asked: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: NamedHeader = cython.cast(NamedHeader, asked.header)
        line: object = asked.line
        if self._turn != asked.turn:
            self._begin(asked.turn, asked.line.arrived)
        if not self.is_open or asked.waited_ms > self._waited_max_ms:
            return False
        if asked.line._stalled or asked.line._write_paused or line.local_port == self._closed_port:
            return False
        if header.flag or not header.read_pull():
            return False
        source: PullSource = self._source(header)
        if source is None:
            return False
        answer: bytes
        if header.offset == source.queue.max_offset and header.offset > 0:
            answer = None
            if header.flags & SUSPEND_FLAG:
                if not self._shell.hold(source, line, _asked(header)):
                    return False
            else:
                answer = self._without(self._end_parts, source, header.opaque, header.offset)
            self.missed += 1
        else:
            answer = self._gather(
                source, header.offset, header.count_max, header.bytes_max, header.opaque, True
            )
            if answer is None:
                return False
        if header.flags & COMMIT_FLAG and header.commit > 0:
            self._shell.commit(source.target, header.commit)
        if answer is not None:
            asked.line.answer_made(answer)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, turn: int64_t, now: cython.double) -> cython.int:
        bounds = self._shell.begin()
        self._turn = turn
        self._now = now
        self.is_open = bounds is not None
        if bounds is not None:
            self._log_from, self._log_end, self._waited_max_ms, self._closed_port = bounds
        return 0

    @cython.cfunc
    def _source(self, header: NamedHeader) -> PullSource:
        key: bytes = header.key()
        if key is None:
            return None
        found = self._sources.get(key)
        if found is None:
            found = self._shell.source(
                header.text(GROUP_FIELD),
                header.text(TOPIC_FIELD),
                header.queue_id,
                header.flags,
                header.sub_version,
                header.text(SUBSCRIPTION_FIELD),
                header.text(EXPRESSION_TYPE_FIELD),
            )
            if found is not None:
                self._sources[key] = found
        return found

    # -- one answer --

    @cython.cfunc
    def _gather(
        self,
        source: PullSource,
        offset: int64_t,
        count_max: int64_t,
        bytes_max: int64_t,
        opaque: int64_t,
        may_miss: cython.bint,
    ) -> bytes:
        low: int64_t = source.queue.min_offset
        high: int64_t = source.queue.max_offset
        after: int64_t = offset
        total: int64_t = 0
        count: cython.int
        record: Record
        if offset < low or offset >= high:
            return None
        if bytes_max < 0 or bytes_max > self._bytes_max:
            bytes_max = self._bytes_max
        count = self._choose(
            source, cython.address(after), high, min(count_max, self._count_max), bytes_max
        )
        if count == 0 and after > offset and may_miss:
            self.missed += 1
            return self._without(self._unmatched_parts, source, opaque, after)
        if count <= 0 or not self._find(count):
            return None
        for i in range(count):
            if i + 1 < count:
                prefetch(self._records[i + 1].at, self._records[i + 1].size)
            record = self._records[i]
            if not source.owns(record.at, record.place, record.size, record.offset):
                return None
            total += record.size
        source.pulls += 1
        source.messages += count
        source.stored_bytes += total
        self.pulls += 1
        self.messages += count
        return self._written(
            self._parts, source.suggested, count, total, opaque, (after, low, high)
        )

    @cython.cfunc
    def _without(self, parts: tuple, source: PullSource, opaque: int64_t, after: int64_t) -> bytes:
        """The answer without messages."""
        low: int64_t = source.queue.min_offset
        high: int64_t = source.queue.max_offset
        return self._written(parts, MASTER_ID, 0, 0, opaque, (after, low, high))

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _choose(
        self,
        source: PullSource,
        after: cython.pointer(int64_t),
        high: int64_t,
        count_max: int64_t,
        bytes_max: int64_t,
    ) -> cython.int:
        """Pick units from `after` on, and move it behind the last one that was looked at.

        Returns how many; 0 when none, or one that the plain path must judge. Its loop is that of
        Reader._choose in store/reader.py.
        """
        count: cython.int = 0
        total: int64_t = 0
        at: int64_t = after[0]
        stop: int64_t = min(high, at + self._scanned_max)
        unit: cython.pointer(cython.const[uint8_t])
        place: int64_t
        size: int64_t
        while at < stop:
            unit = source.unit(at)
            if unit == cython.NULL:
                return 0
            place = get64(unit)
            size = get32(unit + 8)
            if place < self._log_from or size <= 0 or size >= BLANK_SIZE:
                return 0
            if count and (count >= count_max or total + size > bytes_max):
                break
            if place > self._log_end - size:
                return 0
            if source.wants(get64(unit + 12)):
                self._records[count].place = place
                self._records[count].size = size
                self._records[count].offset = at
                count += 1
                total += size
            at += 1
        after[0] = at
        return count

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _find(self, count: cython.int) -> cython.int:
        """Find the chosen records in memory; 0 when one is not there."""
        i: cython.int = 0
        j: cython.int
        k: cython.int
        start: int64_t
        end: int64_t
        mapping: Mapping
        while i < count:
            start = self._records[i].place
            end = start + self._records[i].size
            mapping = self._mapped(start, end)
            if mapping is None:
                return 0
            j = i + 1
            while j < count and self._follows(j, start, end, mapping.end):
                end = self._records[j].place + self._records[j].size
                j += 1
            if not mapping.is_resident(start, end, self._now):
                return 0
            for k in range(i, j):
                self._records[k].at = mapping.base + (self._records[k].place - mapping.start)
            i = j
        return 1

    @cython.cfunc
    def _mapped(self, start: int64_t, end: int64_t) -> Mapping:
        mapping: Mapping = self._mapping
        if mapping is None or not mapping.has(start, end):
            self._mapping = mapping = self._shell.mapping(start)
            if mapping is not None and not mapping.has(start, end):
                return None
        return mapping

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _follows(
        self, number: cython.int, start: int64_t, end: int64_t, mapped_end: int64_t
    ) -> cython.bint:
        """Whether a record is looked for together with those before, from `start` to `end`."""
        place: int64_t = self._records[number].place
        behind: int64_t = place + self._records[number].size
        if place < end or place - end > GAP_BYTES:
            return False
        return behind <= mapped_end and behind - start <= SPAN_BYTES

    @cython.cfunc
    def _written(
        self,
        parts: tuple,
        suggested: int64_t,
        count: cython.int,
        total: int64_t,
        opaque: int64_t,
        offsets: tuple[int64_t, int64_t, int64_t],
    ) -> bytes:
        """Write the answer with the records that were found."""
        head: uint8_t[1024]
        to: cython.pointer(uint8_t)
        i: cython.int
        at: cython.pointer(uint8_t) = put_text(head + FRAME_HEAD, parts[0])
        at = put_text(put_decimal(at, opaque), parts[1])
        at = put_text(put_decimal(at, suggested), parts[2])
        at = put_text(put_decimal(at, offsets[0]), parts[3])
        at = put_text(put_decimal(at, offsets[1]), parts[4])
        at = put_text(put_decimal(at, offsets[2]), parts[5])
        put_lengths(head, at - head, total)
        answer: bytes = PyBytes_FromStringAndSize(cython.NULL, at - head + total)
        to = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(answer))
        memcpy(to, head, at - head)
        to += at - head
        for i in range(count):
            memcpy(to, self._records[i].at, self._records[i].size)
            to += self._records[i].size
        return answer


@cython.cfunc
def _asked(header: NamedHeader) -> tuple:
    """What a pull that is held must be known by."""
    size = None if header.bytes_max < 0 else header.bytes_max
    return (
        header.code,
        header.opaque,
        header.offset,
        header.count_max,
        header.flags,
        header.commit,
        header.suspend_ms,
        header.sub_version,
        size,
        header.text(SUBSCRIPTION_FIELD),
        header.text(EXPRESSION_TYPE_FIELD),
    )
