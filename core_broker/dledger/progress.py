"""How a leader finds the entries that a follower lacks, and sends them.

    COMPARE --the last common entry is found--> TRUNCATE or APPEND
    TRUNCATE --the follower ends with the common entry--> APPEND
    APPEND --406: the follower's log is another one--> COMPARE

Equal entries have equal entries before them, so the last common entry is found by doubling steps
and bisection; DLedger goes back entry by entry, with the same messages. Compatible with
DLedgerEntryPusher.EntryDispatcher.
"""

from collections import deque
from enum import Enum
from typing import NamedTuple

from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.messages import PushResponse
from core_broker.dledger.model import NOTHING, Push
from core_broker.dledger.state import NodeState

#: Pushes without an answer, and bytes of their entries: all must leave within one timeout.
IN_FLIGHT_MAX = 64
IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024


class PushState(Enum):
    """What the leader does for a follower."""

    COMPARE = "compare"
    TRUNCATE = "truncate"
    APPEND = "append"


class _Sent(NamedTuple):
    last: int
    size: int


class Progress:
    """The leader's view of one follower."""

    def __init__(self, state: NodeState, peer: str) -> None:
        #: Last entry that the follower has with all entries before; never decreases in a term.
        self.match = NOTHING
        #: Commit index that the follower has with all entries before.
        self.known_commit = NOTHING
        self.push_state = PushState.COMPARE
        self._state = state
        self._peer = peer
        self._attempt = 0
        self._flight: deque[_Sent] = deque()
        self._flight_bytes = 0
        #: Last entry of a successful comparison; one that is refused behind it is a second attempt.
        self._equal = NOTHING
        self._is_waiting = False
        self._retry_ms = 0
        #: Next entry to send, or the entry to compare or to keep.
        self._index = NOTHING
        #: Highest entry known to be equal, and lowest one known to differ.
        self._low, self._high, self._step = NOTHING, NOTHING, 1
        self._last_push_ms = 0
        self._told_commit = NOTHING
        self._compare()

    def pump(self) -> None:
        """Send what can be sent now."""
        state = self._state
        if state.now_ms < self._retry_ms or self._is_waiting or state.is_empty:
            return
        if self._index < state.log.begin_index:
            self._compare()  # the log was empty, or has lost its first entries since
        if self.push_state is not PushState.APPEND:
            self._is_waiting = True
            self._push(PushKind[self.push_state.name], self._index, self._index)
            return
        while self._index <= state.log.end_index and len(self._flight) < IN_FLIGHT_MAX:
            last = state.log.batch_end(self._index)
            size = state.log.size_of(self._index, last)
            if self._flight and self._flight_bytes + size > IN_FLIGHT_BYTES_MAX:
                break
            self._flight.append(_Sent(last, size))
            self._flight_bytes += size
            self._push(PushKind.APPEND, self._index, last)
            self._index = last + 1
        self._tell_commit()

    def _tell_commit(self) -> None:
        state, timing = self._state, self._state.timing
        quiet_ms = state.now_ms - self._last_push_ms
        is_news = state.commit_index > self._told_commit and quiet_ms >= timing.commit_delay_ms
        if is_news or quiet_ms >= timing.commit_interval_ms:
            self._push(PushKind.COMMIT, NOTHING, NOTHING)

    def _push(self, kind: PushKind, first: int, last: int) -> None:
        state = self._state
        self._last_push_ms, self._told_commit = state.now_ms, state.commit_index
        state.effects.append(
            Push(self._peer, kind, first, last, state.term, state.commit_index, self._attempt)
        )

    # -- answers --

    def answered(self, push: Push, response: PushResponse | None) -> None:
        """Take the answer to a push of this term, None for none."""
        code = None if response is None else response.code
        is_written = push.kind in (PushKind.APPEND, PushKind.TRUNCATE)
        if code == DLedgerCode.SUCCESS and is_written:
            self.match = max(self.match, push.last)
        if push.attempt != self._attempt:
            return
        if push.kind is PushKind.COMMIT:
            if code == DLedgerCode.INCONSISTENT_STATE:
                self._compare()
            elif code == DLedgerCode.SUCCESS:
                self.known_commit = max(self.known_commit, min(push.commit_index, self.match))
        elif push.kind is PushKind.APPEND:
            self._appended(code)
        elif response is not None and push.kind is PushKind.COMPARE:
            self._is_waiting = False
            self._compared(push.first, response)
        elif code == DLedgerCode.SUCCESS:
            self._append_from(push.first + 1)
        else:
            self._compare(self._state.timing.compare_retry_ms)

    def _appended(self, code: int | None) -> None:
        if code == DLedgerCode.SUCCESS:
            self._equal = NOTHING
            while self._flight and self._flight[0].last <= self.match:
                self._flight_bytes -= self._flight.popleft().size
        elif code == DLedgerCode.INCONSISTENT_STATE:
            # Refused right behind an entry that is equal: another comparison finds the same.
            is_again = self._equal == self.match != NOTHING
            self._compare(self._state.timing.compare_retry_ms if is_again else 0)
        else:
            # Lost, or the follower could not take it. One comparison at a time asks for it again:
            # a dead follower costs no more.
            self._compare(self._state.timing.retry_ms)

    def _compared(self, index: int, response: PushResponse) -> None:
        log = self._state.log
        begin, end = response.begin_index, response.end_index
        if response.code == DLedgerCode.SUCCESS:
            self._low = index
            if end == index:
                self._equal = self.match = max(self.match, index)
                self._append_from(index + 1)
                return
        elif response.code != DLedgerCode.INCONSISTENT_STATE:
            self._compare(self._state.timing.compare_retry_ms)
            return
        elif end < log.begin_index or begin > log.end_index:
            self._truncate(log.begin_index)
            return
        else:
            self._high = min(index, end + 1)
        self._choose(max(begin, log.begin_index))

    def _choose(self, least: int) -> None:
        """Choose the next entry to compare, or to keep."""
        if self._low + 1 >= self._high and self._low != NOTHING:
            self._truncate(self._low)
        elif self._high <= least:
            # Nothing is equal: the follower begins again with the leader's first entry.
            self._truncate(self._state.log.begin_index)
        elif self._low == NOTHING:
            self._index = max(least, self._high - self._step)
            self._step *= 2
        else:
            self._index = (self._low + self._high) // 2

    # -- states --

    def _compare(self, pause_ms: int = 0) -> None:
        self._enter(PushState.COMPARE)
        self._index = self._state.log.end_index
        self._low, self._high, self._step = NOTHING, self._index + 1, 1
        self._retry_ms = self._state.now_ms + pause_ms

    def _truncate(self, index: int) -> None:
        self._enter(PushState.TRUNCATE)
        self._index = index

    def _append_from(self, index: int) -> None:
        self._enter(PushState.APPEND)
        self._index = index

    def _enter(self, push_state: PushState) -> None:
        self.push_state = push_state
        self._attempt += 1
        self._flight.clear()
        self._flight_bytes = 0
        self._is_waiting = False
