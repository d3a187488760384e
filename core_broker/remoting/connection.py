"""One connection, the same on both sides: each peer may ask, answer and send notices.

It is an asyncio protocol of callbacks: bytes go through the splitter into commands, a request goes
to the endpoint's dispatch, an answer to whoever asked. Nothing here waits. All state belongs to the
event loop's thread.
"""

import asyncio
import itertools
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from core_broker.errors import ClientError, ConnectionClosed, ProtocolError, RequestTimeout
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.codes import CommandFlag, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.kernel_age import KernelAge

if TYPE_CHECKING:
    from core_broker.remoting.endpoint import Endpoint

BUSY_REMARK = "[OVERLOAD]system busy, start flow control for a while"

_RESPONSE = CommandFlag.RESPONSE.value
_ONEWAY = CommandFlag.ONEWAY.value
_MAPPED_V4 = "::ffff:"
_OPAQUE_MASK = 0x7FFFFFFF
log = logging.getLogger(__name__)
_opaques = itertools.count(1)


class Connection(asyncio.BufferedProtocol):
    """A peer. Made by a server or a client; `closed` never becomes False again."""

    def __init__(self, endpoint: "Endpoint") -> None:
        self.peer_host = ""
        self.peer_port = 0
        self.local_port = 0
        self.closed = False
        self._endpoint = endpoint
        self._dispatch = endpoint.dispatch
        self.limits = endpoint.limits
        self._read_buffer = endpoint.read_buffer
        self._splitter = FrameSplitter(endpoint.limits.frame_bytes_max)
        self._age = KernelAge()
        #: The requests in hand have waited since then at least: seconds of the monotonic clock.
        self.arrived = 0.0
        self._transport: asyncio.Transport
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._is_dirty = False
        self._backlog: list[RemotingCommand] = []
        self._backlog_arrived = 0.0
        self._stalled = False
        self._write_paused = False
        self._held = 0
        self._asked: dict[int, asyncio.Future[RemotingCommand]] = {}
        self._unfinished = 0
        self._unfinished_at_look = 0
        self._looks = 0
        self._closing = ""

    @property
    def peer(self) -> str:
        """The peer's address as ip:port."""
        return f"{self.peer_host}:{self.peer_port}"

    @property
    def held(self) -> int:
        """Requests of the peer that wait for their answers."""
        return self._held

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the system has not taken yet."""
        return 0 if self.closed else self._transport.get_write_buffer_size()

    @property
    def is_drained(self) -> bool:
        """True when the peer waits for nothing and everything is sent."""
        if self.closed:
            return True
        unsent = self._transport.get_write_buffer_size()
        return not (self._held or self._out or self._backlog or unsent)

    def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        """Answer a request, at once or later; a second answer, or one to a notice, is dropped."""
        if not request.held:
            return
        request.held = False
        self._held -= 1
        self._reply(request, response)

    def send(self, command: RemotingCommand) -> None:
        """Send a one-way notice; raises ConnectionClosed when there is nobody to send it to.

        An answer made elsewhere, opaque and all, may be sent on as it is.
        """
        if self.closed or self._closing:
            raise ConnectionClosed(self.peer, self._closing)
        if not command.is_response:
            command.flag |= _ONEWAY
            command.opaque = next(_opaques) & _OPAQUE_MASK
        self._queue(command)

    async def invoke(self, command: RemotingCommand, timeout_ms: float) -> RemotingCommand:
        """Ask the peer and wait for its answer, whatever its code; raises TransportError kinds."""
        if self.closed or self._closing:
            raise ConnectionClosed(self.peer, self._closing)
        if len(self._asked) >= self.limits.asked_max:
            raise ClientError(f"{len(self._asked)} questions to {self.peer} wait for answers.")
        loop = asyncio.get_running_loop()
        command.opaque = opaque = next(_opaques) & _OPAQUE_MASK
        future: asyncio.Future[RemotingCommand] = loop.create_future()
        self._queue(command)
        self._asked[opaque] = future
        timer = loop.call_later(timeout_ms / 1000, self._expire, future, command.code, timeout_ms)
        try:
            return await future
        finally:
            timer.cancel()
            self._asked.pop(opaque, None)

    def close(self, reason: str) -> None:
        """Close after what is already answered has been sent."""
        if not self.closed and not self._closing:
            self._closing = reason or "closed"
            self._mark_dirty()

    def abort(self, reason: str) -> None:
        """Close now and drop what is unsent."""
        self._closing = self._closing or reason
        if not self.closed:
            self._transport.abort()

    @property
    def answer_room(self) -> int:
        """Bytes of answers that may be made now; 0 while the peer has too much to read."""
        if self._stalled or self._write_paused:
            return 0
        return max(self.limits.write_high_water_bytes - self._out_bytes, 0)

    def answer_frame(self, request: RemotingCommand, frame: bytes) -> None:
        """Do as `answer` does, with an answer that is a frame already."""
        if request.held:
            request.held = False
            self.answers_made(frame, 1)

    def answers_made(self, data: bytes, count: int) -> None:
        """Send answers that are frames already, of requests that were held."""
        self._held -= count
        if not self.closed:
            self._out.append(data)
            self._grow_out(len(data))

    # The end of the turn and the idle sweep, called by the endpoint.

    def flush(self) -> None:
        """Write everything that this turn answered, in one piece."""
        self._is_dirty = False
        parts, self._out, self._out_bytes = self._out, [], 0
        if self.closed:
            return
        if parts:
            # Writing to a peer that does not read is no traffic.
            if not self._write_paused:
                self._looks = 0
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
            if self._write_paused and self._reads_too_slowly():
                self._cut_off()
                return
        if self._closing:
            self._transport.close()
        elif self._stalled and not self._write_paused:
            self._resume()

    def drop_answers(self) -> None:
        """Close without sending this turn's answers."""
        self._is_dirty = False
        self._out = []
        self._out_bytes = 0
        self.abort("the answers could not be stored")

    def looked_at(self) -> int:
        """How often the idle sweep has come by since the last traffic, this time included."""
        came = self._unfinished - self._unfinished_at_look
        self._unfinished_at_look = self._unfinished
        # While we wait for an answer, the deadline of the question decides.
        if self._asked or came > self.limits.drip_bytes_max:
            self._looks = 0
        else:
            self._looks += 1
        return self._looks

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer_host, self.peer_port = _host_port(transport.get_extra_info("peername"))
        self.local_port = _host_port(transport.get_extra_info("sockname"))[1]
        self._transport.set_write_buffer_limits(high=self.limits.write_high_water_bytes)
        if not self._endpoint.opened(self):
            self.abort("too many connections")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go: into the one buffer of all connections."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived."""
        if self._closing:
            return
        self.arrived = self._endpoint.turn_began or self._endpoint.begin_turn()
        if self._age.pending or nbytes == len(self._read_buffer):
            self.arrived = self._age.since(self._transport, nbytes, self.arrived)
        self._take(self._read_buffer[:nbytes])

    def eof_received(self) -> bool:
        """The peer sends no more; what it asked is still answered in this turn."""
        self.close("the peer closed it")
        return True

    def pause_writing(self) -> None:
        """The peer reads too slowly."""
        self._write_paused = True
        self._endpoint.slow_readers.add(self)
        self._stall()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._write_paused = False
        self._endpoint.slow_readers.discard(self)
        if self._stalled:
            self._resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; whoever waits for an answer learns it."""
        self.closed = True
        reason = self._closing or (str(exc) if exc else "the peer closed it")
        self._closing = reason
        self._backlog.clear()
        self._endpoint.unfinished_bytes -= self._unfinished
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(ConnectionClosed(self.peer, reason))
        self._endpoint.lost(self)

    # Commands in

    def _take(self, data: memoryview) -> None:
        splitter = self._splitter
        commands = splitter.feed(data)
        if commands:
            # Bytes that make no request are no traffic, or a peer could drip them for ever.
            self._looks = 0
            self._run(commands)
        if splitter.fault is not None:
            self._give_up(splitter.fault)
        elif splitter.pending_bytes != self._unfinished:
            self._count_unfinished(splitter.pending_bytes)

    def _run(self, commands: Iterable[RemotingCommand]) -> None:
        """Handle commands in order, until the peer has too much to read."""
        waiting = iter(commands)
        for command in waiting:
            if self._stalled or self._closing:
                self._backlog += (command, *waiting)
                self._backlog_arrived = self.arrived
                return
            self._receive(command)

    def _receive(self, command: RemotingCommand) -> None:
        flag = command.flag
        if flag & _RESPONSE:
            self._answered(command)
            return
        if not flag & _ONEWAY:
            if self._held >= self.limits.in_flight_max:
                self._endpoint.counters.busy += 1
                busy = RemotingCommand.response(ResponseCode.SYSTEM_BUSY, BUSY_REMARK)
                self._reply(command, busy)
                return
            command.held = True
            self._held += 1
        try:
            response = self._dispatch(self, command)
        except Exception as error:  # noqa: BLE001 - failure() logs it and makes it the answer
            response = self._endpoint.failure(self, command, error)
        if response is not None:
            self.answer(command, response)

    def _answered(self, response: RemotingCommand) -> None:
        future = self._asked.pop(response.opaque, None)
        if future is None or future.done():
            self._endpoint.counters.late_answers += 1
        else:
            future.set_result(response)

    def _expire(
        self, future: "asyncio.Future[RemotingCommand]", code: int, timeout_ms: float
    ) -> None:
        if not future.done():
            future.set_exception(RequestTimeout(self.peer, code, round(timeout_ms)))

    def _give_up(self, fault: ProtocolError) -> None:
        counters = self._endpoint.counters
        if self._splitter.oversize:
            counters.oversize += 1
        else:
            counters.malformed += 1
        log.warning("%s: closing %s: %s", self._endpoint.name, self.peer, fault)
        self.close(str(fault))

    def _count_unfinished(self, count: int) -> None:
        """Keep the sum of what all peers have sent of frames that are not whole yet."""
        endpoint = self._endpoint
        endpoint.unfinished_bytes += count - self._unfinished
        self._unfinished = count
        if count and endpoint.unfinished_bytes > self.limits.unfinished_bytes_max:
            endpoint.counters.unfinished += 1
            log.warning("%s: closing %s: too many unfinished frames", endpoint.name, self.peer)
            self.abort("too many unfinished frames")

    # Commands out

    def _reply(self, request: RemotingCommand, response: RemotingCommand) -> None:
        if self.closed:
            return
        response.opaque = request.opaque
        response.flag = response.flag & ~_ONEWAY | _RESPONSE
        response.serialize_type = request.serialize_type
        try:
            self._queue(response)
        except (ProtocolError, UnicodeEncodeError) as fault:
            failure = self._endpoint.failure(self, request, fault)
            failure.opaque = request.opaque
            failure.serialize_type = request.serialize_type
            self._queue(failure)

    def _queue(self, command: RemotingCommand) -> None:
        head = command.encode_head()
        body = command.body
        size = len(head) + len(body)
        if size > FRAME_BYTES_MAX:
            raise ProtocolError(f"{command} needs a frame of {size} bytes, over the limit")
        self._out.append(head)
        if body:
            self._out.append(body)
        self._grow_out(size)

    def _grow_out(self, size: int) -> None:
        self._out_bytes += size
        if self._out_bytes >= self.limits.write_high_water_bytes:
            self._stall()
            if self._out_bytes > self.limits.write_bytes_max:
                self._cut_off()
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._endpoint.mark_dirty(self)

    # A peer that reads too slowly

    def _stall(self) -> None:
        if not self._stalled:
            self._stalled = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def _resume(self) -> None:
        self._stalled = False
        backlog, self._backlog = self._backlog, []
        self.arrived = self._backlog_arrived
        self._run(backlog)
        if not self._stalled and not self._transport.is_closing():
            self._transport.resume_reading()
            self._endpoint.on_resume(self)

    def _reads_too_slowly(self) -> bool:
        unsent = self._transport.get_write_buffer_size()
        limits, endpoint = self.limits, self._endpoint
        return unsent > limits.write_bytes_max or endpoint.unsent_bytes > limits.unsent_bytes_max

    def _cut_off(self) -> None:
        if not self._transport.is_closing():
            self._endpoint.counters.slow_readers += 1
            log.warning("%s: cutting off %s: it does not read", self._endpoint.name, self.peer)
        self.abort("the peer does not read its answers")


def _host_port(address: tuple[str, int, int, int] | tuple[str, int] | None) -> tuple[str, int]:
    if not address:
        return "", 0
    return address[0].removeprefix(_MAPPED_V4), address[1]
