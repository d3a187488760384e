"""A follower: heartbeats and pushes of its leader.

A follower writes entries only behind an entry that it has compared with its leader's in this term,
and commits nothing behind it. DLedger follows without a comparison of its own, and may commit an
entry that its leader never had, when messages arrive late. A follower never drops committed
entries: it refuses such a truncation, and reports the problem.
Compatible with DLedgerLeaderElector.handleHeartBeat and DLedgerEntryPusher.EntryHandler.
"""

from typing import NamedTuple

from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.messages import (
    Entry,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    Response,
)
from core_broker.dledger.model import NOTHING, LogRefused, Role, Truncate
from core_broker.dledger.state import NodeState

#: Pushes that wait for earlier entries, and bytes of their bodies.
WAITING_MAX = 1024
WAITING_BYTES_MAX = 64 * 1024 * 1024


class _Waiting(NamedTuple):
    request: PushRequest
    token: object
    since_ms: int
    size: int


class _Truncating(NamedTuple):
    request: PushRequest
    token: object
    entry: Entry
    #: True when the entry must be written behind the kept ones.
    must_write: bool


class Following:
    """The follower's state for one leader of one term."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        state.problem = ""
        self.heard_ms = state.now_ms
        #: Last entry known to be equal to the leader's.
        self._verified = NOTHING
        #: Last entry of the leader, as far as comparisons and commits told; NOTHING before one.
        self._leader_end = NOTHING
        self._waiting: dict[int, _Waiting] = {}
        self._truncating: _Truncating | None = None

    @property
    def is_silent(self) -> bool:
        """True when the leader said nothing for too long."""
        return self._state.now_ms - self.heard_ms > self._state.timing.silence_ms

    def suspect(self, patience_ms: int) -> None:
        """The leader's connection is lost: vote soon unless it says something."""
        state = self._state
        self.heard_ms = min(self.heard_ms, state.now_ms - state.timing.silence_ms + patience_ms)

    def heartbeat(self) -> Response:
        """The leader lives."""
        self.heard_ms = self._state.now_ms
        return Response(group=self._state.group, term=self._state.term)

    def pushed(self, request: PushRequest, token: object) -> None:
        """Take a push of the leader of the present term."""
        self.heard_ms = self._state.now_ms
        entries = request.entries
        if request.type is PushKind.COMMIT:
            self._commit(request)
            # A follower that has started again must be compared first; DLedger ignores the answer.
            is_behind = self._verified < min(request.commit_index, self._state.log.end_index)
            code = DLedgerCode.INCONSISTENT_STATE if is_behind else DLedgerCode.SUCCESS
            self._answer(request, token, code)
        elif not entries or any(
            entry.index != entries[0].index + number or min(entry.index, entry.pos, entry.term) < 0
            for number, entry in enumerate(entries)
        ):
            self._answer(request, token, DLedgerCode.UNEXPECTED_ARGUMENT)
        elif request.type is PushKind.APPEND:
            self._append(request, token)
        else:
            self._drop_waiting()
            if request.type is PushKind.COMPARE:
                self._compare(request, token)
            else:
                self._truncate(request, token)
        self._prove(request)

    def tick(self) -> None:
        """Answer pushes whose earlier entries did not come in time."""
        state = self._state
        if not self._waiting:
            return
        first = min(self._waiting)
        if state.now_ms - self._waiting[first].since_ms > state.timing.gap_ms:
            self._drop_waiting()

    # -- append --

    def _append(self, request: PushRequest, token: object) -> None:
        first, end = request.entries[0].index, self._state.log.end_index
        if first > end + 1 and self._verified == end:
            self._wait(request, token, first)
            return
        self._answer(request, token, self._written(request.entries), request)
        while (following := self._waiting.pop(self._state.log.end_index + 1, None)) is not None:
            code = self._written(following.request.entries)
            self._answer(following.request, following.token, code, following.request)

    def _written(self, entries: list[Entry]) -> DLedgerCode:
        """Compare the entries that the log has, write the others; return the answer."""
        log = self._state.log
        end = log.end_index
        known = [entry for entry in entries if entry.index <= end]
        if not all(self._has(entry) for entry in known):
            return DLedgerCode.INCONSISTENT_STATE
        if known:
            self._verified = max(self._verified, known[-1].index)
        fresh = entries[len(known) :]
        if not fresh:
            return DLedgerCode.SUCCESS
        if self._verified != end or fresh[0].index != end + 1:
            return DLedgerCode.INCONSISTENT_STATE
        if any(not log.end_term <= entry.term <= self._state.term for entry in fresh):
            return DLedgerCode.INCONSISTENT_TERM
        try:
            log.append(fresh)
        except LogRefused as refusal:
            self._state.problem = str(refusal)
            return refusal.code
        self._state.problem = ""
        self._verified = log.end_index
        return DLedgerCode.SUCCESS

    def _wait(self, request: PushRequest, token: object, first: int) -> None:
        size = sum(len(entry.body) for entry in request.entries)
        held = sum(each.size for each in self._waiting.values())
        if first in self._waiting:
            self._answer(request, token, DLedgerCode.REPEATED_PUSH)
        elif len(self._waiting) >= WAITING_MAX or held + size > WAITING_BYTES_MAX:
            self._answer(request, token, DLedgerCode.PUSH_REQUEST_IS_FULL)
        else:
            self._waiting[first] = _Waiting(request, token, self._state.now_ms, size)

    def _drop_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            self._answer(each.request, each.token, DLedgerCode.INCONSISTENT_STATE)

    def end(self) -> None:
        """Another role or term begins."""
        self._drop_waiting()

    # -- compare, truncate --

    def _compare(self, request: PushRequest, token: object) -> None:
        entry = request.entries[0]
        if not self._has(entry):
            self._answer(request, token, DLedgerCode.INCONSISTENT_STATE)
            return
        self._verified = max(self._verified, entry.index)
        self._answer(request, token, DLedgerCode.SUCCESS, request)

    def _has(self, entry: Entry) -> bool:
        log = self._state.log
        return log.begin_index <= entry.index <= log.end_index and log.matches(entry)

    def _truncate(self, request: PushRequest, token: object) -> None:
        state, log, entry = self._state, self._state.log, request.entries[0]
        is_kept = self._has(entry)
        keep = entry.index if is_kept else entry.index - 1
        if state.is_empty:
            self._finish(_Truncating(request, token, entry, must_write=True))
        elif is_kept and keep < self._verified:
            # Late: the leader has compared later entries since.
            self._answer(request, token, DLedgerCode.SUCCESS)
        elif keep < state.commit_index or keep > log.end_index:
            state.problem = (
                f"leader {state.leader_id} begins at entry {entry.index} of term {entry.term}, but"
                f" this member has the entries {log.begin_index} to {log.end_index}, committed up"
                f" to {state.commit_index}: remove the store of this member"
            )
            self._answer(request, token, DLedgerCode.INDEX_OUT_OF_RANGE)
        elif keep == log.end_index:
            self._finish(_Truncating(request, token, entry, must_write=not is_kept))
        else:
            self._truncating = _Truncating(request, token, entry, must_write=not is_kept)
            state.effects.append(Truncate(keep))

    def truncated(self, refusal: LogRefused | None) -> None:
        """The log ends where `Truncate` said, or is unchanged."""
        truncating, self._truncating = self._truncating, None
        assert truncating is not None
        if refusal is not None:
            self._state.problem = str(refusal)
            self._answer(truncating.request, truncating.token, refusal.code)
            return
        self._verified = min(self._verified, self._state.log.end_index)
        self._finish(truncating)
        self._prove(truncating.request)

    def _prove(self, request: PushRequest) -> None:
        """End the time as a new member when the log has all that the leader had at first.

        The first comparison names the last entry of the leader. A leader has every committed
        entry, also those that this member acknowledged before the loss of its disk.
        """
        if request.type is PushKind.COMPARE and request.entries:
            self._leader_end = max(self._leader_end, request.entries[0].index)
        if self._leader_end != NOTHING:
            self._leader_end = max(self._leader_end, request.commit_index)
            if self._verified >= self._leader_end:
                self._state.prove()

    def _finish(self, truncating: _Truncating) -> None:
        log, code = self._state.log, DLedgerCode.SUCCESS
        if truncating.must_write:
            try:
                log.append([truncating.entry])
            except LogRefused as refusal:
                self._state.problem = str(refusal)
                code = refusal.code
        if code == DLedgerCode.SUCCESS:
            self._state.problem = ""
            self._verified = log.end_index
            self._commit(truncating.request)
        self._answer(truncating.request, truncating.token, code)

    # -- answers --

    def _commit(self, request: PushRequest) -> None:
        self._state.commit(min(request.commit_index, self._verified))

    def _answer(
        self,
        request: PushRequest,
        token: object,
        code: DLedgerCode,
        committing: PushRequest | None = None,
    ) -> None:
        if committing is not None and code == DLedgerCode.SUCCESS:
            self._commit(committing)
        self._state.answer(token, push_response(self._state, request, code))


def push_response(state: NodeState, request: PushRequest, code: DLedgerCode) -> PushResponse:
    """Return the answer to a push, with the range of the log."""
    response = PushResponse(
        group=state.group,
        code=code,
        term=request.term,
        begin_index=state.log.begin_index,
        end_index=state.log.end_index,
    )
    if request.entries:
        response.index = request.entries[0].index
        response.count = len(request.entries)
    return response


def may_follow(state: NodeState, request: HeartbeatRequest | PushRequest) -> DLedgerCode | None:
    """Follow the sender of a message if it is the leader of this or a later term; None if so."""
    leader = str(request.leader_id)
    if leader not in state.peers:
        return DLedgerCode.UNKNOWN_MEMBER
    if leader == state.id:
        return DLedgerCode.UNEXPECTED_MEMBER
    if request.term < state.term:
        return DLedgerCode.EXPIRED_TERM
    if request.term > state.term:
        state.set_term(request.term)
    if state.role is Role.LEADER or state.leader_id not in (None, leader):
        return DLedgerCode.INCONSISTENT_LEADER
    if state.role is not Role.FOLLOWER:
        state.follow(leader)
    return None
