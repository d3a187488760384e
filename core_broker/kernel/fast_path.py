# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The compiled fast path: from received bytes to answers.

    Poller           one per server: reads the connections without TLS (poller.py)
    FastProtocol     one per connection: handles what a read has received (fast_protocol.py)
    FastPath         one per server: finds the handler of each frame in a read
    FastHandler      one per kind of request: sends (sends.py), pulls, commits, heartbeats
    FastConnection   one per connection: collects and sends the answers (fast_connection.py)

A handler takes a request whole or leaves the request untouched. FastPath takes the frames of a read
from the first one up to a frame that no handler takes. That frame and all frames behind it go to
the connection (remoting/connection.py), so that answers keep the order of their requests.
"""

import cython
from cython.cimports.core_broker.kernel.clock import monotonic_s
from cython.cimports.core_broker.kernel.connection_state import ConnectionState
from cython.cimports.core_broker.kernel.fast_connection import FastWrites
from cython.cimports.core_broker.kernel.fields import NamedHeader
from cython.cimports.core_broker.kernel.memory import Memory
from cython.cimports.core_broker.kernel.octets import get32
from cython.cimports.core_broker.kernel.scan import Header
from cython.cimports.libc.stdint import uint8_t, uint32_t

FRAME_HEAD = cython.declare(cython.int, 8)
FRAME_MAX = cython.declare(uint32_t, 16 << 20)
LENGTH_BYTES = cython.declare(cython.int, 4)
#: Minimum requests in the first half of a read that is split into two iterations.
PAUSE_COUNT_MIN = cython.declare(cython.int, 16)


@cython.cclass
class FastHandler:
    """Takes one kind of request.

    A handler may keep facts about the broker as long as `path.iteration` is the same.
    """

    def take(self, path, body, body_bytes):
        """Handle the request in hand and write the answer to `path.out`; false leaves it untouched.

        A handler with `answers_directly` gives the answer to `path.protocol` instead. Steps that
        may fail come before the first step with an effect.
        """
        return False

    def hold_answers(self, protocol, answers, count):
        """Keep `count` answers to a connection until the disk has the messages."""
        raise NotImplementedError


@cython.cclass
class FastPath:
    """Takes requests from the read buffer of one server; `handlers` are by request code.

    With a guard only requests that pass the guard are taken.
    """

    def __init__(self, read_buffer: object, handlers: dict, guard: Guard | None = None):
        self._guard = guard
        self._view = read_buffer
        self._bytes = read_buffer
        self._buffer = cython.cast(cython.pointer(uint8_t), cython.address(self._bytes[0]))
        self._buffer_bytes = self._bytes.shape[0]
        code: cython.int
        if len(handlers) > HANDLERS_MAX:
            raise ValueError(f"the kernel has handlers for {HANDLERS_MAX} request codes at most")
        for code in handlers:
            self._codes[self._handler_count] = code
            self._handler_count += 1
        self._handlers = list(handlers.values())
        self.header = NamedHeader() if guard is None else guard.header
        self.out = Memory()
        self.writes = FastWrites()

    def take(self, protocol, start, end, pause_at):
        """Take requests from bytes `start` … `end` of the buffer; return the end of the last one.

        With many requests `take` pauses behind `pause_at`; 0 never pauses.
        """
        frame: cython.pointer(uint8_t) = self._buffer + start
        stop: cython.pointer(uint8_t) = self._buffer + end
        body: cython.pointer(uint8_t)
        size: uint32_t
        word: uint32_t
        count: cython.int = 0
        header: Header = self.header
        guard: Guard = self._guard
        state: ConnectionState = protocol.state
        previous: FastHandler = None
        handler: FastHandler
        self.protocol = protocol
        self.is_paused = False
        self.waited_ms = (monotonic_s() - state.arrived) * 1000
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
                handler = self._handler_of(header.code)
                if handler is None:
                    break
                body = frame + FRAME_HEAD + word
                if guard is not None and not guard.passes(
                    protocol.address, body, size - LENGTH_BYTES - word
                ):
                    break
                if (
                    count
                    and handler is not previous
                    and (
                        handler.waits_for_disk
                        or previous.waits_for_disk
                        or handler.answers_directly
                    )
                ):
                    self._deliver(previous, count)
                    count = 0
                previous = handler
                if not handler.take(self, body, size - LENGTH_BYTES - word):
                    break
                count += not handler.answers_directly
                frame += LENGTH_BYTES + size
                if state.out_bytes + self.out.count >= protocol._high_water_bytes:
                    break
                if handler.waits_for_disk:
                    if state.held + count >= protocol._in_flight_max:
                        break
                elif pause_at and count >= PAUSE_COUNT_MIN and frame - self._buffer >= pause_at:
                    self.is_paused = True
                    break
        except BaseException:
            # Handlers must ask their shells again: the iteration's facts may be out of date.
            self.iteration += 1
            raise
        finally:
            if count:
                self._deliver(previous, count)
            self.protocol = None
        return frame - self._buffer

    def _handler_of(self, code):
        i: cython.int
        for i in range(self._handler_count):
            if self._codes[i] == code:
                return self._handlers[i]
        return None

    def _deliver(self, handler, count):
        """Give `count` answers of a handler to the connection."""
        answers: bytes = self.out.take()
        if not len(answers):
            # One-way notices have no answer.
            return 0
        if handler.waits_for_disk:
            handler.hold_answers(self.protocol, answers, count)
            self.protocol.state.held += count
        else:
            self.protocol.add_answers(answers)
        return 0
