"""One connection, the same on both sides: each peer may send requests, answers and one-way notices.

A connection is an asyncio protocol. The frame splitter makes commands of the received bytes, or of
those that the compiled fast path leaves (intake.py): a request goes to the endpoint's dispatch, an
answer to the caller of `invoke`. Callbacks never block. Event loop only.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from core_broker.errors import ClientError, ConnectionClosed, ProtocolError
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.addresses import host_port, record_address
from core_broker.remoting.codes import CommandFlag, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection_state import ConnectionState
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.iteration import AnswerWriter
from core_broker.remoting.kernel_age import KernelAge
from core_broker.remoting.loop_watchdog import FRAME, Begin, RequestTimes
from core_broker.remoting.pending_requests import PendingRequests, next_opaque

if TYPE_CHECKING:
    from core_broker.remoting.endpoint import Endpoint

BUSY_REMARK = "[OVERLOAD]system busy, start flow control for a while"

_BUSY = ResponseCode.SYSTEM_BUSY
_RESPONSE = CommandFlag.RESPONSE.value
_ONEWAY = CommandFlag.ONEWAY.value


class Connection(asyncio.BufferedProtocol):
    """A peer of a server or a client; behind a compiled fast path `state` is compiled, too."""

    def __init__(self, endpoint: "Endpoint", state: ConnectionState | None = None) -> None:
        self.peer_host = ""
        self.peer_port = 0
        #: The peer's address in record form; empty for IPv6, because the slow path handles IPv6.
        self.peer_record = b""
        self.local_port = 0
        self.limits = endpoint.limits
        self.state = state or ConnectionState()
        #: Writes the answers instead of the connection; set by the compiled fast path.
        self.writer: AnswerWriter | None = None
        self._endpoint = endpoint
        self.iteration = endpoint.iteration
        self._dispatch = endpoint.dispatch
        self._read_buffer = endpoint.read_buffer
        self._splitter = FrameSplitter(endpoint.limits.frame_bytes_max)
        self._age = KernelAge()
        self._transport: asyncio.Transport
        self._backlog: list[RemotingCommand] = []
        self._backlog_arrived = 0.0
        self._pending = PendingRequests()
        self._unfinished_at_check = 0

    @property
    def peer(self) -> str:
        """The peer's address as ip:port."""
        return f"{self.peer_host}:{self.peer_port}"

    @property
    def closed(self) -> bool:
        """True once the connection is closed."""
        return self.state.is_closed

    @property
    def held(self) -> int:
        """Requests of the peer without an answer."""
        return self.state.held

    @property
    def unsent_bytes(self) -> int:
        """Bytes in the transport's write buffer, which the socket has not accepted yet."""
        return 0 if self.state.is_closed else self._transport.get_write_buffer_size()

    @property
    def is_drained(self) -> bool:
        """True when closed, or when every request is answered and every answer is sent."""
        state = self.state
        waits = state.held or state.out or self._backlog or self.unsent_bytes
        return state.is_closed or not waits

    def hold(self, request: RemotingCommand) -> None:
        """Count a request as held; a later `answer` ends the hold."""
        request.held = True
        self.state.held += 1

    def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        """Answer a request, at once or later; drops answers to one-way and answered requests."""
        if not request.held:
            return
        request.held = False
        self.state.held -= 1
        self._reply(request, response)

    def send(self, command: RemotingCommand) -> None:
        """Send a one-way request; raises ConnectionClosed on a closing connection.

        An answer of another connection is forwarded unchanged, also its opaque.
        """
        if self.state.is_closing:
            raise ConnectionClosed(self.peer, self.state.close_reason)
        if not command.is_response:
            command.flag |= _ONEWAY
            command.opaque = next_opaque()
        self._queue(command)

    async def invoke(self, command: RemotingCommand, timeout_ms: float) -> RemotingCommand:
        """Send a request and return the answer, with any response code; raises TransportErrors."""
        if self.state.is_closing:
            raise ConnectionClosed(self.peer, self.state.close_reason)
        if len(self._pending) >= self.limits.asked_max:
            raise ClientError(f"{len(self._pending)} requests to {self.peer} wait for answers.")
        command.opaque = next_opaque()
        self._queue(command)
        return await self._pending.answer_to(command, self.peer, timeout_ms)

    def close(self, reason: str) -> None:
        """Close after sending the queued answers."""
        if self.state.close(reason or "closed"):
            self._mark_dirty()

    def abort(self, reason: str) -> None:
        """Close now and drop unsent answers."""
        self.state.close(reason)
        if not self.state.is_closed:
            self._transport.abort()

    @property
    def answer_capacity_bytes(self) -> int:
        """Bytes of answers that can be queued now; 0 while the peer reads too slowly."""
        state = self.state
        if state.is_stalled or state.is_write_paused:
            return 0
        return max(self.limits.write_high_water_bytes - state.out_bytes, 0)

    def answer_frame(self, request: RemotingCommand, frame: bytes) -> None:
        """Answer a request with an encoded frame."""
        if request.held:
            request.held = False
            self.answer_frames(frame, 1)

    def answer_frames(self, frames: bytes, count: int) -> None:
        """Answer `count` held requests with frames."""
        self.state.held -= count
        if not self.state.is_closed:
            self.state.out.append(frames)
            self.count_out(len(frames))

    # The end of the iteration and the idle sweep, called by the endpoint.

    def flush(self) -> None:
        """Write all answers of this iteration with a single call."""
        state = self.state
        answers = state.take_answers()
        if state.is_closed:
            return
        if answers:
            if not state.is_write_paused:  # writes to a peer that does not read are no traffic
                state.idle_checks = 0
            self._transport.write(answers)
            if state.is_write_paused and self.cut_off_slow_reader():
                return
        if state.is_closing:
            self._transport.close()
        elif state.is_stalled and not state.is_write_paused:
            self._resume()

    def drop_answers(self) -> None:
        """Close without sending the answers of this iteration."""
        self.state.take_answers()
        self.abort("the answers could not be stored")

    def check_idle(self) -> int:
        """Count one idle sweep, and return the number of sweeps since the last traffic."""
        state = self.state
        received_bytes = state.unfinished_bytes - self._unfinished_at_check
        self._unfinished_at_check = state.unfinished_bytes
        # A pending request to the peer has its own timeout, so the connection is not idle.
        if self._pending or received_bytes > self.limits.drip_bytes_max:
            state.idle_checks = 0
        else:
            state.idle_checks += 1
        return state.idle_checks

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set addresses and limits of the open connection."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer_host, self.peer_port = host_port(transport.get_extra_info("peername"))
        self.peer_record = record_address(self.peer_host, self.peer_port)
        self.local_port = host_port(transport.get_extra_info("sockname"))[1]
        self._transport.set_write_buffer_limits(high=self.limits.write_high_water_bytes)
        if not self._endpoint.opened(self):
            self.abort("too many connections")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the read buffer that all connections of the endpoint share."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived in the read buffer."""
        state = self.state
        if state.is_closing:
            return
        state.arrived = self.iteration.began or self.iteration.begin()
        if state.has_receive_backlog or nbytes == len(self._read_buffer):
            self.date_back(nbytes)
        self._take(self._read_buffer[:nbytes])

    def eof_received(self) -> bool:
        """Close after the answers to the received requests; TLS has no half-closed connections."""
        self.close("the peer closed it")
        return self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Stall reading, because the transport's buffer is above the high-water mark."""
        self.state.is_write_paused = True
        self._endpoint.slow_readers.add(self)
        self._stall()

    def resume_writing(self) -> None:
        """Resume reading, because the transport's buffer has drained."""
        self.state.is_write_paused = False
        self._endpoint.slow_readers.discard(self)
        if self.state.is_stalled:
            self._resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the close; every pending `invoke` raises ConnectionClosed."""
        state = self.state
        state.lose(str(exc) if exc else "the peer closed it")
        self._backlog.clear()
        self._endpoint.unfinished_bytes -= state.unfinished_bytes
        self._pending.fail(self.peer, state.close_reason)
        self._endpoint.lost(self)

    # Requests in

    def take_rest(self, data: memoryview) -> bytes:
        """Take the bytes a compiled fast path left; returns the beginning of an incomplete frame.

        The caller puts the beginning before the next read. A frame too long for the read buffer is
        collected here: `state.is_collecting` is True until the frame is complete.
        """
        self._take(data)
        begin = self._splitter.release()
        self.state.is_collecting = self._splitter.pending_bytes > 0
        return begin

    def date_back(self, read_bytes: int) -> None:
        """Correct the arrival time by the backlog in the socket's receive queue."""
        state = self.state
        state.arrived = self._age.since(self._transport, read_bytes, state.arrived)
        state.has_receive_backlog = self._age.pending > 0

    def count_unfinished(self, count: int) -> None:
        """Update the number of bytes of incomplete frames, here and in the endpoint."""
        change = count - self.state.unfinished_bytes
        self.state.unfinished_bytes = count
        self._endpoint.count_unfinished(self, change)

    def _take(self, data: memoryview) -> None:
        splitter, state = self._splitter, self.state
        began = self._endpoint.watchdog.begin()
        commands = splitter.feed(data)
        if commands:
            # Only complete requests count as traffic: a peer must not stay connected by dripping.
            state.idle_checks = 0
            self._run(commands, began)
        if splitter.fault is not None:
            self._endpoint.count_malformed(self, splitter.fault, is_oversize=splitter.oversize)
            self._endpoint.watchdog.end(began, FRAME)
            self.close(str(splitter.fault))
        elif splitter.pending_bytes != state.unfinished_bytes:
            self.count_unfinished(splitter.pending_bytes)

    def _run(self, commands: Iterable[RemotingCommand], begin: Begin) -> None:
        """Handle commands in order; commands behind a stall or close go to the backlog.

        The first command is always handled; after the slow path's budget of the iteration, the
        connection stalls until the iteration's end.
        """
        state, remaining = self.state, iter(commands)
        times = RequestTimes(self._endpoint.watchdog, begin)
        for command in remaining:
            if times.now_s > self.iteration.budget_end and times.now_s > begin.wall:
                self._stall()
                self._mark_dirty()
            if state.is_stalled or state.is_closing:
                self._backlog += (command, *remaining)
                self._backlog_arrived = state.arrived
                break
            self._receive(command)
            times.handled(command)
        times.end(self.peer)

    def _receive(self, command: RemotingCommand) -> None:
        flag = command.flag
        if flag & _RESPONSE:
            self._endpoint.counters.late_answers += not self._pending.answered(command)
            return
        if not flag & _ONEWAY:
            if self.state.held >= self.limits.in_flight_max:
                self._endpoint.counters.busy += 1
                self._reply(command, RemotingCommand.response(_BUSY, BUSY_REMARK))
                return
            command.held = True
            self.state.held += 1
        try:
            response = self._dispatch(self, command)
        except Exception as error:  # noqa: BLE001 - failure() logs the error and answers
            response = self._endpoint.failure(self, command, error)
        if response is not None:
            self.answer(command, response)

    def _reply(self, request: RemotingCommand, response: RemotingCommand) -> None:
        if self.state.is_closed:
            return
        try:
            self._queue(response.answer_to(request))
        except (ProtocolError, UnicodeEncodeError) as fault:
            self._queue(self._endpoint.failure(self, request, fault).answer_to(request))

    def _queue(self, command: RemotingCommand) -> None:
        head, body = command.encode_head(), command.body
        size = len(head) + len(body)
        if size > FRAME_BYTES_MAX:
            raise ProtocolError(f"{command} needs a frame of {size} bytes, over the limit")
        out = self.state.out
        out.append(head)
        if body:
            out.append(body)
        self.count_out(size)

    def count_out(self, size: int) -> None:
        """Count bytes appended to `state.out`, and enforce the write limits."""
        state = self.state
        state.out_bytes += size
        if state.out_bytes >= self.limits.write_high_water_bytes:
            self._stall()
            if state.out_bytes > self.limits.write_bytes_max:
                self._cut_off()
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        if self.state.mark_dirty():
            self.iteration.mark_dirty(self.writer or self)

    def cut_off_slow_reader(self) -> bool:
        """Close and return True when the unsent bytes, of this peer or of all, exceed a limit."""
        unsent = self._transport.get_write_buffer_size()
        limits, endpoint = self.limits, self._endpoint
        if unsent > limits.write_bytes_max or endpoint.unsent_bytes > limits.unsent_bytes_max:
            self._cut_off()
            return True
        return False

    def _stall(self) -> None:
        if self.state.stall() and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume(self) -> None:
        state = self.state
        state.resume()
        backlog, self._backlog, state.arrived = self._backlog, [], self._backlog_arrived
        self._run(backlog, self._endpoint.watchdog.begin())
        if not state.is_stalled and not self._transport.is_closing():
            self._transport.resume_reading()
            self._endpoint.resumed(self)

    def _cut_off(self) -> None:
        if not self._transport.is_closing():
            self._endpoint.count_slow_reader(self)
        self.abort("the peer does not read its answers")
