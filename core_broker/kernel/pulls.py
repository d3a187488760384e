# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Pulls (codes 11 and 361), from the read buffer to answers with records.

The kernel takes common pulls: a compact JSON header, a known source, and records that are in memory
and whole. All other pulls are left untouched to the slow path (processors/pull.py), which alone
refuses pulls and reports damage. A pull at the end of a queue is answered, or held by the slow
path's table of held pulls. Answers are byte for byte equal to the slow path's (tests/unit/kernel).
An answer to a plain connection without unsent answers is sent at once, straight from the mapped
log; other answers are copied once, and sent at the end of the iteration.
"""

import cython
from cython.cimports.core_broker.kernel.connection_state import ConnectionState
from cython.cimports.core_broker.kernel.fast_connection import FastConnection
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
from cython.cimports.core_broker.kernel.pieces import HEAD_MAX, Pieces
from cython.cimports.core_broker.kernel.prefetch import prefetch
from cython.cimports.core_broker.kernel.sources import PullSource
from cython.cimports.core_broker.kernel.templates import put_lengths, put_text
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t

COMMIT_FLAG = cython.declare(int64_t, 1)
SUSPEND_FLAG = cython.declare(int64_t, 2)
#: Broker id that answers without messages suggest.
MASTER_ID = cython.declare(int64_t, 0)
FRAME_HEAD = cython.declare(cython.int, 8)
#: Size in the unit of a blank, which is not a message.
BLANK_SIZE = cython.declare(int64_t, 2147483647)
#: Maximum number of messages of an answer.
CHOSEN_MAX = cython.declare(cython.int, 512)
#: Maximum gap between records of one residency check, bytes, and maximum range of the check.
GAP_BYTES = cython.declare(int64_t, 65536)
SPAN_BYTES = cython.declare(int64_t, 4 << 20)
#: Maximum size of the numbers of an answer and its frame head, beside the template, bytes.
NUMBERS_BYTES = cython.declare(cython.int, 128)

Record = cython.struct(
    offset_physical=int64_t, size=int64_t, offset=int64_t, at=cython.pointer(uint8_t)
)


@cython.cclass
class CompiledPulls(FastHandler):
    """Takes pulls. Contract: PullTaker in fastpath/contracts.py; the shell is fastpath/pulls.py.

    `shell.begin()` is called before the first pull of an iteration and returns a PullWindow, or
    None when the slow path must take all pulls. `shell.source(group, topic, queue_id, sys_flag,
    sub_version, subscription, expression_type)` returns a PullSource or None; a source is kept
    until `forget`. `shell.mapping(offset)` returns the Mapping with a record, or None.
    `shell.commit(target, offset)` commits an offset. `shell.hold(source, connection, request)`
    holds a pull at the end of a queue; false when the slow path must decide. `configure` comes
    before every other call.
    """

    #: Pulls that source messages, and those messages, since the start.
    pulls = cython.declare(int64_t, visibility="readonly")
    messages = cython.declare(int64_t, visibility="readonly")
    #: Pulls that source no message, since the start.
    missed = cython.declare(int64_t, visibility="readonly")
    #: Answers given to the socket at once, since the start.
    sent_at_once = cython.declare(int64_t, visibility="readonly")

    #: True when pulls may be taken in this iteration.
    is_open = cython.declare(cython.bint, visibility="readonly")

    _shell: object
    _sources: dict
    # Templates of answers: with messages, at the end of a queue, without a match.
    _parts: tuple
    _end_parts: tuple
    _unmatched_parts: tuple
    _iteration: int64_t
    _waited_max_ms: cython.double
    _closed_port: cython.int
    _mapping: Mapping
    # Begin of the iteration, in s of the monotonic clock; 0 for unknown.
    _now: cython.double
    _records: Record[512]
    _pieces: Pieces
    # Limits of one answer: messages, bytes, scanned units; readable range of the log.
    _count_max: int64_t
    _bytes_max: int64_t
    _scanned_max: int64_t
    _log_from: int64_t
    _log_end: int64_t

    def __init__(self, shell: object) -> None:
        self._shell = shell
        self._sources = {}
        self._pieces = Pieces()
        self._iteration = -1
        self.answers_directly = True

    def configure(
        self, answer_templates: tuple, count_max: int, bytes_max: int, scanned_max: int
    ) -> None:
        """Put settings in force; `answer_templates` are those of fastpath/templates.py."""
        longest = max(sum(map(len, parts)) for parts in answer_templates)
        if longest + NUMBERS_BYTES > HEAD_MAX or count_max > CHOSEN_MAX:
            raise ValueError("the answers of pulls are too large for the kernel")
        self._parts, self._end_parts, self._unmatched_parts = answer_templates
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._scanned_max = scanned_max

    def forget(self) -> None:
        """Ask the shell for every source again."""
        self._sources.clear()

    def begin(self) -> None:
        """Ask the shell for the window of this iteration."""
        self._begin(-1, 0)

    def gather(
        self,
        source: PullSource,
        offset: int64_t,
        count_max: int64_t,
        bytes_max: int64_t,
        opaque: int64_t,
    ) -> bytes | None:
        """Return the answer to a held pull; None when the slow path must answer.

        `begin` was called and `is_open` is true. A `bytes_max` of -1 is no limit.
        """
        return self._gather(source, offset, count_max, bytes_max, opaque, -1, False)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(
        self, path: FastPath, body: cython.pointer(uint8_t), body_bytes: uint32_t
    ) -> cython.bint:
        header: NamedHeader = cython.cast(NamedHeader, path.header)
        protocol: FastConnection = path.protocol
        state: ConnectionState = protocol.state
        if self._iteration != path.iteration:
            self._begin(path.iteration, state.arrived)
        if not self.is_open or path.waited_ms > self._waited_max_ms:
            return False
        if state.is_stalled or state.is_write_paused or protocol.local_port == self._closed_port:
            return False
        if header.flag or not header.read_pull():
            return False
        source: PullSource = self._source(header)
        if source is None:
            return False
        answer: bytes
        descriptor: cython.int = -1
        if header.offset == source.queue.max_offset and header.offset > 0:
            answer = None
            if header.flags & SUSPEND_FLAG:
                if not self._shell.hold(source, protocol.connection, header.pull_request()):
                    return False
            else:
                answer = self._write_empty(self._end_parts, source, header.opaque, header.offset)
            self.missed += 1
        else:
            # One read sends as much at once as a connection may leave unsent.
            if path.sent_bytes < protocol._high_water_bytes:
                descriptor = protocol.free_descriptor()
            bytes_max, opaque = header.bytes_max, header.opaque
            answer = self._gather(
                source, header.offset, header.count_max, bytes_max, opaque, descriptor, True
            )
            if answer is None:
                return False
            if descriptor >= 0:
                path.sent_bytes += self._pieces._size
        if header.flags & COMMIT_FLAG and header.commit > 0:
            self._shell.commit(source.target, header.commit)
        if answer is not None and len(answer):
            protocol.add_answers(answer)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, iteration: int64_t, now: cython.double) -> cython.int:
        window = self._shell.begin()
        self._iteration = iteration
        self._now = now
        self.is_open = window is not None
        if window is not None:
            self._log_from, self._log_end, self._waited_max_ms, self._closed_port = window
        return 0

    @cython.cfunc
    def _source(self, header: NamedHeader) -> PullSource:
        key: bytes = header.key()
        if key is None:
            return None
        source = self._sources.get(key)
        if source is None:
            source = self._shell.source(
                header.text(GROUP_FIELD),
                header.text(TOPIC_FIELD),
                header.queue_id,
                header.flags,
                header.sub_version,
                header.text(SUBSCRIPTION_FIELD),
                header.text(EXPRESSION_TYPE_FIELD),
            )
            if source is not None:
                self._sources[key] = source
        return source

    # -- one answer --

    @cython.cfunc
    def _gather(
        self,
        source: PullSource,
        offset: int64_t,
        count_max: int64_t,
        bytes_max: int64_t,
        opaque: int64_t,
        descriptor: cython.int,
        may_miss: cython.bint,
    ) -> bytes:
        """Return the unsent bytes of the answer; None when the slow path must answer.

        The answer is sent to a socket, unless its descriptor is -1.
        """
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
            return self._write_empty(self._unmatched_parts, source, opaque, after)
        if count <= 0 or not self._find(count):
            return None
        for i in range(count):
            if i + 1 < count:
                prefetch(self._records[i + 1].at, self._records[i + 1].size)
            record = self._records[i]
            if not source.owns(record.at, record.offset_physical, record.size, record.offset):
                return None
            total += record.size
        source.pulls += 1
        source.messages += count
        source.stored_bytes += total
        self.pulls += 1
        self.messages += count
        self._put(self._parts, source.suggested, count, total, opaque, (after, low, high))
        if descriptor < 0:
            return self._pieces.join()
        self.sent_at_once += 1
        return self._pieces.send(descriptor)

    @cython.cfunc
    def _write_empty(
        self, parts: tuple, source: PullSource, opaque: int64_t, after: int64_t
    ) -> bytes:
        """Return an answer without messages."""
        low: int64_t = source.queue.min_offset
        high: int64_t = source.queue.max_offset
        self._put(parts, MASTER_ID, 0, 0, opaque, (after, low, high))
        return self._pieces.join()

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
        """Choose records by their units from `after` on, and move `after` behind the last unit.

        Returns the number of records; 0 without a match, or when the slow path must judge a unit.
        The loop is the loop of Reader._choose in store/reader.py.
        """
        count: cython.int = 0
        total: int64_t = 0
        at: int64_t = after[0]
        stop: int64_t = min(high, at + self._scanned_max)
        unit: cython.pointer(cython.const[uint8_t])
        offset_physical: int64_t
        size: int64_t
        while at < stop:
            unit = source.unit(at)
            if unit == cython.NULL:
                return 0
            offset_physical = get64(unit)
            size = get32(unit + 8)
            if offset_physical < self._log_from or size <= 0 or size >= BLANK_SIZE:
                return 0
            if count and (count >= count_max or total + size > bytes_max):
                break
            if offset_physical > self._log_end - size:
                return 0
            if source.passes(get64(unit + 12)):
                self._records[count].offset_physical = offset_physical
                self._records[count].size = size
                self._records[count].offset = at
                count += 1
                total += size
            elif not source.knows(get64(unit + 12)):
                return 0
            at += 1
        after[0] = at
        return count

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _find(self, count: cython.int) -> cython.int:
        """Find the addresses of the chosen records; 0 when a record is not in memory."""
        i: cython.int = 0
        j: cython.int
        k: cython.int
        start: int64_t
        end: int64_t
        mapping: Mapping
        while i < count:
            start = self._records[i].offset_physical
            end = start + self._records[i].size
            mapping = self._mapped(start, end)
            if mapping is None:
                return 0
            j = i + 1
            while j < count and self._follows(j, start, end, mapping.end):
                end = self._records[j].offset_physical + self._records[j].size
                j += 1
            if not mapping.is_resident(start, end, self._now):
                return 0
            for k in range(i, j):
                self._records[k].at = mapping.base + (
                    self._records[k].offset_physical - mapping.start
                )
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
        """Return true when a record fits into the residency check of `start` … `end`."""
        offset_physical: int64_t = self._records[number].offset_physical
        record_end: int64_t = offset_physical + self._records[number].size
        if offset_physical < end or offset_physical - end > GAP_BYTES:
            return False
        return record_end <= mapped_end and record_end - start <= SPAN_BYTES

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _put(
        self,
        parts: tuple,
        suggested: int64_t,
        count: cython.int,
        total: int64_t,
        opaque: int64_t,
        offsets: tuple[int64_t, int64_t, int64_t],
    ) -> cython.int:
        """Put the answer with the chosen records into the pieces."""
        i: cython.int
        head: cython.pointer(uint8_t) = self._pieces.head
        at: cython.pointer(uint8_t) = put_text(head + FRAME_HEAD, parts[0])
        at = put_text(put_decimal(at, opaque), parts[1])
        at = put_text(put_decimal(at, suggested), parts[2])
        at = put_text(put_decimal(at, offsets[0]), parts[3])
        at = put_text(put_decimal(at, offsets[1]), parts[4])
        at = put_text(put_decimal(at, offsets[2]), parts[5])
        put_lengths(head, at - head, total)
        self._pieces.begin(at - head)
        for i in range(count):
            self._pieces.add(self._records[i].at, self._records[i].size)
        return 0
