"""The fast path in Python as a stage of the intake (remoting/intake.py): takes common sends.

The stage finds the frames at the beginning of a read, gives header and body to the taker of sends
(python_sends.py), and the taker's answers to the connection.
"""

import time

from core_broker.config import BrokerConfig
from core_broker.fastpath.contracts import SendShell
from core_broker.fastpath.python_guard import PythonGuard
from core_broker.fastpath.python_queues import PythonTopic
from core_broker.fastpath.python_sends import HEADER_STARTS, PythonSends
from core_broker.fastpath.sends import FastSends, SendClasses
from core_broker.processors.context import BrokerContext
from core_broker.processors.turn import Turn
from core_broker.remoting.connection import Connection
from core_broker.remoting.frame_layout import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES_MAX,
    LENGTH_BYTES,
    unpack_frame_head,
)


class PythonFastPath:
    """Takes the sends at the beginning of a read; shared by all connections."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self._taker: PythonSends
        admissions = None if ctx.gate is None else ctx.gate.admissions
        self._guard = None if admissions is None else PythonGuard(admissions)
        self.sends = FastSends(ctx, turn, SendClasses(self._make_taker, PythonTopic), _is_enabled)

    def _make_taker(self, shell: SendShell) -> PythonSends:
        self._taker = PythonSends(shell)
        return self._taker

    def slow_path_begins(self) -> None:
        """Ask the broker again before the next send: the slow path may change anything."""
        self._taker.ask_again()

    def end_iteration(self) -> None:
        """Ask the broker again before the next send, in the next iteration."""
        self._taker.ask_again()

    def take(self, connection: Connection, data: memoryview) -> int:
        """Take sends from the beginning of a read up to the first frame for the slow path.

        Returns the number of taken bytes.
        """
        state = connection.state
        received, peer_record = bytes(data), connection.peer_record
        if not received.startswith(HEADER_STARTS, FRAME_HEAD_BYTES):
            return 0
        if state.is_stalled or not peer_record:
            return 0
        taker, guard, limits = self._taker, self._guard, connection.limits
        capacity = limits.write_high_water_bytes - state.out_bytes
        count_max = limits.in_flight_max - state.held
        if count_max <= 0 or not taker.is_open((time.monotonic() - state.arrived) * 1000):
            return 0
        answers: list[bytes] = []
        start, end = 0, len(received)
        try:
            while end - start >= FRAME_HEAD_BYTES:
                length, word = unpack_frame_head(received, start)
                body_at = start + FRAME_HEAD_BYTES + word
                stop = start + LENGTH_BYTES + length
                if word > HEADER_BYTES_MAX or length > limits.frame_bytes_max:
                    break
                if not body_at <= stop <= end:
                    break
                header, body = received[start + FRAME_HEAD_BYTES : body_at], received[body_at:stop]
                if guard is not None and not guard.passes(connection.peer_host, header, body):
                    break
                answer = taker.take(peer_record, header, body)
                if answer is None:
                    break
                answers.append(answer)
                start = stop
                capacity -= len(answer)
                if capacity <= 0 or len(answers) >= count_max:
                    break
        finally:
            if answers:
                self._deliver(connection, answers)
        return start

    def _deliver(self, connection: Connection, answers: list[bytes]) -> None:
        """Queue answers on the connection, or hold the answers until the disk has the messages."""
        frames = answers[0] if len(answers) == 1 else b"".join(answers)
        if self._taker.waits_for_disk:
            self._taker.hold_answers(connection, frames, len(answers))
            connection.state.held += len(answers)
            return
        state = connection.state
        state.out.append(frames)
        if state.out_bytes + len(frames) >= connection.limits.write_high_water_bytes:
            connection.count_out(len(frames))
            return
        state.out_bytes += len(frames)
        if state.mark_dirty():
            connection.iteration.mark_dirty(connection.writer or connection)


def _is_enabled(config: BrokerConfig) -> bool:
    return True
