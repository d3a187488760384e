# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""From a read to answers without the plain path: what runs for each read and each write.

    FastLine    of each connection: the read, the frames cut in two, the write
    FastPath    of an endpoint: finds for each frame the kind of request that takes it
    FastHandler    one for each kind of request: sends (sends.py) and others

A kind takes a request whole or leaves it as it is. The frames of a read are taken from the first
on, up to one that nobody takes; that one and the rest go the plain way (remoting/connection.py),
so that answers keep their order.
"""

import asyncio

import cython
from cython.cimports.core_broker.kernel.fields import NamedHeader
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import get32
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.core_broker.kernel.writer import Writer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memcpy
from cython.cimports.posix.time import CLOCK_MONOTONIC, clock_gettime, timespec

FRAME_HEAD = cython.declare(cython.int, 8)
FRAME_MAX = cython.declare(uint32_t, 16 << 20)
LENGTH_BYTES = cython.declare(cython.int, 4)
#: A writer is woken for so many connections, with so many bytes for each in the mean: shorter
#: answers are sent by the loop before it is awake.
LINES_MIN = cython.declare(cython.int, 4)
MEAN_BYTES_MIN = cython.declare(cython.int, 512)
#: What a writer has is looked at after so long at the latest; each busy turn does so before.
SETTLED_S = cython.declare(cython.double, 0.002)
#: A read of so many bytes is two turns, if its first half has so many requests.
PAUSE_BYTES_MIN = cython.declare(cython.int, 32 * 1024)
PAUSE_COUNT_MIN = cython.declare(cython.int, 16)
#: The beginning of a frame is put before the bytes of the next read when it is so short.
CUT_BYTES_MAX = cython.declare(cython.int, 128 * 1024)


@cython.cclass
class FastHandler:
    """Takes one kind of request. What it may find out once a turn it finds out when `turn` grew."""

    def take(self, asked, body, body_bytes):
        """Handle the request and write its answer to `asked.out`; false, and nothing done, if not.

        A kind that answers alone gives its answer to `asked.line` instead.

        Whatever may fail comes before whatever is done.
        """
        return False

    def hold_back(self, line, answers, count):
        """Keep so many answers to a connection until the disk has what was stored."""
        raise NotImplementedError


@cython.cclass
class FastPath:
    """What takes requests from the read buffer of one endpoint."""

    def __init__(self, endpoint: object, kinds: dict):
        self._endpoint = endpoint
        self._dirty = endpoint.dirty
        self._view = endpoint.read_buffer
        self._bytes = endpoint.read_buffer
        self._buffer = cython.cast(cython.pointer(uint8_t), cython.address(self._bytes[0]))
        self._buffer_bytes = self._bytes.shape[0]
        code: cython.int
        if len(kinds) > KINDS_MAX:
            raise ValueError("more kinds of requests than the kernel has room for")
        for code in kinds:
            self._codes[self._kind_count] = code
            self._kind_count += 1
        self._kinds = list(kinds.values())
        self.header = NamedHeader()
        self.out = Memory()

    def end_turn(self):
        """The turn of the event loop is over."""
        self._turn_began = 0.0

    def write_with(self, writer: Writer | None) -> None:
        """Have a writer send the answers of busy turns from now on, or none."""
        self._settle()
        self._writer = writer

    def flush(self, dirty: list) -> None:
        """Write to all connections that have answers."""
        writer: Writer = self._writer
        line: FastLine
        self._settle()
        if writer is None or not _is_worth_a_writer(dirty):
            for connection in dirty:
                connection.flush()
            return
        try:
            for connection in dirty:
                if isinstance(connection, FastLine):
                    line = connection
                    if not writer.is_full and line._may_send():
                        line._is_dirty = False
                        line._out_bytes = 0
                        line._looks = 0
                        line._in_flight = True
                        writer.add(line, line._socket, line._out.pop())
                        continue
                connection.flush()
        finally:
            writer.begin()
        if not self._settles_soon:
            self._settles_soon = True
            asyncio.get_running_loop().call_later(SETTLED_S, self._settle_at_last)

    def _settle_at_last(self) -> None:
        """Even when nothing more happens, who reads slowly gets the rest of an answer."""
        self._settles_soon = False
        self._settle()

    def _settle(self):
        line: FastLine
        if self._writer is None or not self._writer.is_busy:
            return 0
        batch: list = self._writer.join()
        for line, _ in batch:
            line._in_flight = False
        for line, rest in batch:
            if len(rest):
                line._sent(rest)
        return 0

    def take(self, line, start, end, pause_at):
        """Take requests from the buffer's bytes between two; return up to where.

        With many requests it pauses at `pause_at`, if that is not 0.
        """
        frame: cython.pointer(uint8_t) = self._buffer + start
        stop: cython.pointer(uint8_t) = self._buffer + end
        body: cython.pointer(uint8_t)
        size: uint32_t
        word: uint32_t
        count: cython.int = 0
        header: Header = self.header
        taker: FastHandler = None
        kind: FastHandler
        self.line = line
        self.is_paused = False
        self.waited_ms = (_now() - line.arrived) * 1000
        try:
            while stop - frame >= FRAME_HEAD:
                size = get32(frame)
                word = get32(frame + LENGTH_BYTES)
                if size > FRAME_MAX or stop - frame - LENGTH_BYTES < size:
                    break
                if size < LENGTH_BYTES or word >> 24 or word > size - LENGTH_BYTES:
                    break
                if not header.read(frame + FRAME_HEAD, word):
                    break
                kind = self._kind_of(header.code)
                if kind is None:
                    break
                if (
                    count
                    and kind is not taker
                    and (kind.waits_for_disk or taker.waits_for_disk or kind.answers_alone)
                ):
                    self._deliver(taker, count)
                    count = 0
                taker = kind
                body = frame + FRAME_HEAD + word
                if not kind.take(self, body, size - LENGTH_BYTES - word):
                    break
                count += not kind.answers_alone
                frame += LENGTH_BYTES + size
                if line._out_bytes + self.out.count >= line._high_water_bytes:
                    break
                if kind.waits_for_disk:
                    if line._held + count >= line._in_flight_max:
                        break
                elif pause_at and count >= PAUSE_COUNT_MIN and frame - self._buffer >= pause_at:
                    self.is_paused = True
                    break
        except BaseException:
            # What a kind found out for this turn may not hold any more.
            self.turn += 1
            raise
        finally:
            if count:
                self._deliver(taker, count)
            self.line = None
        return frame - self._buffer

    def _kind_of(self, code):
        i: cython.int
        for i in range(self._kind_count):
            if self._codes[i] == code:
                return self._kinds[i]
        return None

    def _deliver(self, kind, count):
        """Hand over the answers that a kind has made."""
        answers: bytes = self.out.take()
        if not len(answers):
            # Notices are not answered.
            return 0
        if kind.waits_for_disk:
            kind.hold_back(self.line, answers, count)
            self.line._held += count
        else:
            self.line.answer_made(answers)
        return 0


@cython.cclass
class FastLine:
    """The part of a connection that runs for each read and write, for a class with the others.

    The names with an underscore are those of Connection (remoting/connection.py), whose methods
    find here what they keep. `use` comes before anything else.
    """

    def use(self, path: FastPath):
        """Begin to take requests the hot way."""
        limits = self._endpoint.limits
        self._path = path
        self._in_flight_max = limits.in_flight_max
        self._high_water_bytes = limits.write_high_water_bytes
        self._cut = b""
        self._socket = -1
        self.peer_record = b""

    def send_through(self, descriptor: cython.int):
        """A writer may send to this socket, which the transport closes after `connection_lost`."""
        self._socket = descriptor

    def settle(self):
        """Wait until a writer has nothing of this connection any more."""
        if self._in_flight:
            self._path._settle()

    @property
    def _transport(self):
        """What the connection is written to; nobody else writes meanwhile."""
        if self._in_flight:
            self._path._settle()
        return self._wire

    @_transport.setter
    def _transport(self, transport):
        self._wire = transport

    def get_buffer(self, sizehint: cython.Py_ssize_t):
        """Where the next bytes go: into the one buffer, behind the beginning of a frame."""
        count: cython.Py_ssize_t = len(self._cut)
        if count == 0:
            return self._path._view
        memcpy(self._path._buffer, PyBytes_AS_STRING(self._cut), count)
        return self._path._view[count:]

    def buffer_updated(self, nbytes: cython.Py_ssize_t):
        """Bytes have arrived."""
        path: FastPath = self._path
        end: int64_t = len(self._cut) + nbytes
        start: int64_t = 0
        if self._closing:
            return
        if path._turn_began == 0.0:
            path.turn += 1
            path._turn_began = self._endpoint.begin_turn()
        self.arrived = path._turn_began
        if self._has_backlog or end == path._buffer_bytes:
            self._look_at_backlog(nbytes)
        if self._held < self._in_flight_max and not (self._is_collecting or self._stalled):
            start = path.take(self, 0, end, end // 2 if end >= PAUSE_BYTES_MIN else 0)
            if path.is_paused:
                # The peer reads the first answers while the rest is handled.
                self._endpoint.end_turn()
                if self.closed or self._closing:
                    return
                path.turn += 1
                path._turn_began = self._endpoint.begin_turn()
                if not self._stalled:
                    start = path.take(self, start, end, 0)
            if start > 0:
                self._looks = 0
            if _is_short_begin(path._buffer + start, end - start):
                self._cut = PyBytes_FromStringAndSize(
                    cython.cast(cython.p_char, path._buffer + start), end - start
                )
                if end - start != self._unfinished:
                    self._count_unfinished(end - start)
                return
        self._cut = b""
        path.turn += 1
        self._take_plain(path._view[start:end])

    def flush(self):
        """Write everything that this turn answered, in one piece."""
        out: list = self._out
        if self.closed or self._closing or self._stalled or self._write_paused or len(out) != 1:
            self._flush_plain()
            return
        self._is_dirty = False
        self._out_bytes = 0
        self._looks = 0
        answers = out.pop()
        self._transport.write(answers)
        if self._write_paused:
            self._end_write()

    def _may_send(self):
        """Whether the usual is to be written, and nothing waits that was written before."""
        if self._socket < 0 or self.closed or self._closing or self._stalled:
            return False
        if self._write_paused or len(self._out) != 1:
            return False
        return not (self._wire.get_write_buffer_size() or self._wire.is_closing())

    def _sent(self, rest):
        """The writer is done, but for the rest: the transport sends it when the peer reads."""
        if self.closed or self._wire.is_closing():
            return 0
        self._wire.write(rest)
        if self._write_paused:
            self._end_write()
        return 0

    def answer_made(self, answers):
        """Send answers that are frames already."""
        path: FastPath = self._path
        if self.closed:
            return 0
        self._out.append(answers)
        self._out_bytes += len(answers)
        if self._out_bytes >= self._high_water_bytes:
            self._grow_out(0)
        elif not self._is_dirty:
            self._is_dirty = True
            if path._turn_began == 0.0:
                self._endpoint.mark_dirty(self)
            else:
                path._dirty.append(self)
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_worth_a_writer(dirty: list) -> cython.bint:
    """Whether these connections have much to be sent."""
    line: FastLine
    missing: int64_t = MEAN_BYTES_MIN * len(dirty)
    if len(dirty) < LINES_MIN:
        return False
    for connection in dirty:
        if isinstance(connection, FastLine):
            line = connection
            missing -= line._out_bytes
    return missing <= 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _now() -> cython.double:
    """Seconds of the monotonic clock."""
    time: timespec
    clock_gettime(CLOCK_MONOTONIC, cython.address(time))
    return time.tv_sec + time.tv_nsec * 1e-9


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_short_begin(at: cython.pointer(uint8_t), count: int64_t) -> cython.bint:
    """Whether there is only the beginning of one frame, short enough to be read once more."""
    needed: int64_t
    if count < LENGTH_BYTES:
        return True
    needed = cython.cast(int64_t, get32(at)) + LENGTH_BYTES
    return count < needed <= CUT_BYTES_MAX
