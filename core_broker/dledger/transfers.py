"""Transfers of the leadership: from a leader to a follower, on request or by the leader's own rule.

    leader      51005 from an operator, a preferred member, or no space for messages
                → appends stop → 51005 to the transferee → its answer, or 3 s → appends go on
    transferee  own log has the leader's last entry → votes in the next term at once → leader: 200

A leader whose store takes no messages for some time hands over to a follower that can go on;
DLedger's leader stays, and the group takes no messages until that disk has space. Such a follower
has all entries, and can be the master at once, so nothing gets worse when the others are full, too:
a full one refuses. Compatible with DLedgerServer.handleLeadershipTransfer, checkPreferredLeader and
DLedgerLeaderElector.handleTakeLeadership.
"""

from typing import NamedTuple

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.leader import Leadership
from core_broker.dledger.messages import AnyResponse, Response, TransferRequest
from core_broker.dledger.model import Role, Send
from core_broker.dledger.progress import PushState
from core_broker.dledger.state import NodeState

#: Entries that a transferee may lack, exclusive, and its time to get them, ms: DLedger's.
LAG_MAX = 1000
CATCH_UP_MS = 1000
#: Time for the election of a transferee, ms: the leader's wait for the answer.
TAKE_MS = 3000
#: Interval of checks for a preferred member, ms: DLedger's; and the pause behind a failed transfer.
CHECK_MS = 1000
RETRY_MS = 10_000
#: Time without space for messages before a leader hands over, ms.
FULL_MS = 5000


class _Handing(NamedTuple):
    request: TransferRequest
    #: The request of an operator; None for the leader's own rule.
    token: object | None


class _Taking(NamedTuple):
    request: TransferRequest
    token: object
    deadline_ms: int
    has_begun: bool = False

    @property
    def term(self) -> int:
        """The term of the new leadership."""
        return self.request.term + 1

    @property
    def last_index(self) -> int:
        """The last entry of the leader."""
        return self.request.take_leadership_ledger_index


class Transfers:
    """The transfers of one member, from it and to it."""

    def __init__(self, state: NodeState, preferred: tuple[str, ...]) -> None:
        self._state = state
        self._preferred = preferred
        self._handing: _Handing | None = None
        self._taking: _Taking | None = None
        self._next_ms = 0
        self._full_since_ms: int | None = None
        #: Members that a full leader has asked since it is full.
        self._asked: set[str] = set()

    # -- leader --

    @property
    def transferee(self) -> str | None:
        """The member that takes this member's leadership over."""
        state, handing = self._state, self._handing
        if handing is None or state.role is not Role.LEADER or handing.request.term != state.term:
            return None
        return str(handing.request.transferee_id)

    def hand_over(
        self, request: TransferRequest, token: object, leadership: Leadership | None
    ) -> None:
        """Take the request of an operator; the answer comes with the outcome."""
        state, target = self._state, str(request.transferee_id)
        code = None
        if target not in state.peers:
            code = DLedgerCode.UNKNOWN_MEMBER
        elif request.term != state.term:
            code = DLedgerCode.INCONSISTENT_TERM
        elif leadership is None:
            code = DLedgerCode.NOT_LEADER
        elif target == state.id:
            code = DLedgerCode.UNEXPECTED_ARGUMENT
        elif state.log.end_index - leadership.progress[target].match >= LAG_MAX:
            code = DLedgerCode.FALL_BEHIND_TOO_MUCH
        elif self._handing is not None:
            code = DLedgerCode.LEADER_TRANSFERRING
        if code is None:
            self._ask(target, token)
        else:
            state.answer(token, self._response(code))

    def tick_leader(self, leadership: Leadership) -> None:
        """Hand over to a preferred member, and from a member that takes no messages."""
        state = self._state
        if state.can_write:
            self._full_since_ms = None
            self._asked.clear()
        elif self._full_since_ms is None:
            self._full_since_ms = state.now_ms
        if self._handing is not None or state.now_ms < self._next_ms:
            return
        self._next_ms = state.now_ms + CHECK_MS
        target = self._preferred_target(leadership)
        if target is None and self._is_full_for_long:
            target = self._roomy_target(leadership)
        if target is not None:
            self._ask(target, None)

    @property
    def _is_full_for_long(self) -> bool:
        since_ms = self._full_since_ms
        return since_ms is not None and self._state.now_ms - since_ms >= FULL_MS

    def _preferred_target(self, leadership: Leadership) -> str | None:
        state = self._state
        if state.id in self._preferred:
            return None
        lags = {
            peer: state.log.end_index - progress.match
            for peer, progress in leadership.progress.items()
            if peer in self._preferred
            and leadership.is_live(peer)
            and (progress.push_state is PushState.APPEND or state.is_empty)
        }
        target = min(lags, key=lags.__getitem__, default=None)
        return target if target is not None and lags[target] < LAG_MAX else None

    def _roomy_target(self, leadership: Leadership) -> str | None:
        """Return a follower that can be the master at once with this log."""
        state, end = self._state, self._state.log.end_index
        # A leader that could not even append its own entry is no master yet: nothing is lost.
        is_stuck = state.commit_index < end and state.log.term_at(end) < state.term
        found = [
            peer
            for peer, progress in leadership.progress.items()
            if leadership.is_live(peer)
            and progress.match == end
            and (is_stuck or progress.known_commit == end)
        ]
        if self._asked.issuperset(found):
            self._asked.clear()
        target = next((peer for peer in found if peer not in self._asked), None)
        if target is not None:
            self._asked.add(target)
        return target

    def _ask(self, target: str, token: object | None) -> None:
        state = self._state
        request = TransferRequest(
            leader_id=state.id,
            term=state.term,
            take_leadership_ledger_index=state.log.end_index,
            transfer_id=state.id,
            transferee_id=target,
        )
        self._handing = _Handing(request, token)
        state.send(target, request)

    def answered(self, sent: Send, response: AnyResponse | None) -> None:
        """Take the answer of the transferee, None for none."""
        handing = self._handing
        if handing is None or sent.request is not handing.request:
            return
        self._handing = None
        if self._state.role is Role.LEADER and self._state.term == handing.request.term:
            self._next_ms = self._state.now_ms + RETRY_MS
        if handing.token is not None:
            answer = response or self._response(DLedgerCode.NETWORK_ERROR)
            self._state.answer(handing.token, answer)

    # -- transferee --

    def take_over(self, request: TransferRequest, token: object) -> None:
        """Take the request of the leader; the answer comes with the outcome."""
        state = self._state
        code = None
        if request.transfer_id != state.leader_id:
            code = DLedgerCode.INCONSISTENT_LEADER
        elif not state.can_write:
            code = DLedgerCode.DISK_FULL
        elif self._taking is not None or state.is_new:
            code = DLedgerCode.TAKE_LEADERSHIP_FAILED
        if code is None:
            self._taking = _Taking(request, token, state.now_ms + CATCH_UP_MS)
        else:
            state.answer(token, self._response(code))

    def must_vote(self) -> bool:
        """True once, when the election of this member must begin."""
        state, taking = self._state, self._taking
        if taking is None:
            return False
        if not taking.has_begun and state.term != taking.request.term:
            self._finish(DLedgerCode.INCONSISTENT_TERM)
        elif not taking.has_begun and state.log.end_index >= taking.last_index:
            deadline_ms = state.now_ms + TAKE_MS
            self._taking = taking._replace(deadline_ms=deadline_ms, has_begun=True)
            return True
        elif state.now_ms > taking.deadline_ms:
            self._finish(DLedgerCode.TAKE_LEADERSHIP_FAILED)
        return False

    def role_changed(self) -> None:
        """Answer the leader when the election of this member is decided."""
        state, taking = self._state, self._taking
        if state.role is not Role.LEADER:
            self._full_since_ms = None
        if taking is None or not taking.has_begun:
            return
        if state.term > taking.term:
            self._finish(DLedgerCode.EXPIRED_TERM)
        elif state.role is Role.FOLLOWER:
            self._finish(DLedgerCode.TAKE_LEADERSHIP_FAILED)
        elif state.role is Role.LEADER:
            self._finish(DLedgerCode.SUCCESS)

    def _finish(self, code: DLedgerCode) -> None:
        taking, self._taking = self._taking, None
        assert taking is not None
        self._state.answer(taking.token, self._response(code))

    def _response(self, code: DLedgerCode) -> Response:
        return Response(group=self._state.group, code=code, term=self._state.term)
