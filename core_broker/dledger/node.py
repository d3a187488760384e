"""One member of a DLedger group as a state machine: no clock, no I/O, effects as values.

    input (request, answer, time, own append) → changes of the state → effects in order

DLedger's protocol needs a state machine of its own beside core_broker/raft: a leader compares logs
by entries that it sends, not by index and term of the entry before; a group begins in term 0 with
votes and without pre-votes; entries are bytes at positions of a file that all members share, and a
leader finds its own entries there without a proposal. A group may have members of both
implementations, so DLedger's messages, codes and pauses are the rule. The modules election, leader
and follower name the repairs of known defects; other members see ordinary answers.

The caller executes the effects of `take` in order before the next input; SaveTerm must be on the
disk before the effects behind it. Compatible with DLedger 0.3.1.2.
"""

from collections.abc import Sequence
from random import Random

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.election import Election
from core_broker.dledger.follower import Following, may_follow, push_response
from core_broker.dledger.leader import Leadership
from core_broker.dledger.messages import (
    AnyResponse,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    Response,
    TransferRequest,
    VoteRequest,
    VoteResponse,
)
from core_broker.dledger.model import Effect, EntryLog, LogRefused, Push, Role, Send, Timing
from core_broker.dledger.state import NodeState
from core_broker.dledger.transfers import Transfers


class Node:
    """One member. Every call takes the time of a monotonic clock, ms."""

    def __init__(
        self,
        group: str,
        self_id: str,
        peers: Sequence[str],
        log: EntryLog,
        *,
        term: int,
        vote: str | None,
        commit_index: int,
        is_new: bool = False,
        preferred: tuple[str, ...] = (),
        timing: Timing | None = None,
        random: Random | None = None,
    ) -> None:
        """Begin as a candidate; `is_new` without a full vote, see `NodeState.is_new`.

        A leader hands over to a `preferred` member unless it is one.
        """
        self._state = NodeState(
            *(group, self_id, peers, log, timing or Timing(), random or Random()),
            term=term,
            vote=vote,
            commit_index=commit_index,
            is_new=is_new,
        )
        self._transfers = Transfers(self._state, preferred)
        self._election = Election(self._state)
        self._following: Following | None = None
        self._leadership: Leadership | None = None
        self._known = (self._state.term, self._state.role)

    # -- state --

    @property
    def role(self) -> Role:
        """The role in the present term."""
        return self._state.role

    @property
    def term(self) -> int:
        """The present term."""
        return self._state.term

    @property
    def leader_id(self) -> str | None:
        """The leader of the present term; None while unknown."""
        return self._state.leader_id

    @property
    def commit_index(self) -> int:
        """The last entry that a majority has for ever."""
        return self._state.commit_index

    @property
    def problem(self) -> str:
        """Why the member cannot follow its leader, or cannot elect one; "" when it can."""
        state = self._state
        return state.problem or (self.vote_problem if state.role is Role.CANDIDATE else "")

    @property
    def vote_problem(self) -> str:
        """Why the member has no full vote, "" when it has; a follower works without one."""
        if not self._state.is_new:
            return ""
        return (
            "this member began without a term or without committed messages on its disk, and has"
            " not copied the log of a leader: an election that needs its vote needs all members"
        )

    @property
    def matches(self) -> dict[str, int]:
        """On a leader, the last entry that each other member has."""
        leadership = self._leadership
        if leadership is None:
            return {}
        return {peer: each.match for peer, each in leadership.progress.items()}

    @property
    def transferee(self) -> str | None:
        """The member that takes this member's leadership over; no entries may be appended."""
        return self._transfers.transferee

    def set_writable(self, can_write: bool) -> None:
        """Tell whether the store takes messages."""
        self._state.can_write = can_write

    def take(self) -> list[Effect]:
        """Return the effects since the last call."""
        effects, self._state.effects = self._state.effects, []
        return effects

    # -- time and own log --

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        state = self._state
        state.now_ms = now_ms
        if self._leadership is not None:
            if self._leadership.has_quorum:
                self._leadership.tick()
                self._transfers.tick_leader(self._leadership)
            else:
                self._candidate()
        elif self._following is not None:
            self._following.tick()
            if self._following.is_silent:
                self._candidate()
        elif self._election.tick():
            self._lead()
        self._settle()
        self._take_over()

    def appended(self, now_ms: int) -> None:
        """The leader has written entries to its log."""
        self._state.now_ms = now_ms
        if self._leadership is not None:
            self._leadership.pump()

    def suspect(self, peer: str, patience_ms: int, now_ms: int) -> None:
        """The connection of a member is lost; a follower of it votes soon."""
        self._state.now_ms = now_ms
        if self._following is not None and self._state.leader_id == peer:
            self._following.suspect(patience_ms)

    # -- requests --

    def vote_requested(self, request: VoteRequest, token: object, now_ms: int) -> None:
        """Answer a candidate."""
        self._state.now_ms = now_ms
        response: AnyResponse | None = self._foreign(request)
        if response is None:
            response = self._election.decide(request)
            self._settle()
        self._state.answer(token, response)

    def heartbeat_requested(self, request: HeartbeatRequest, token: object, now_ms: int) -> None:
        """Answer a leader."""
        state = self._state
        state.now_ms = now_ms
        response = self._foreign(request)
        if response is None:
            code = may_follow(state, request)
            self._settle()
            if code is None and self._following is not None:
                response = self._following.heartbeat()
            else:
                response = Response(group=state.group, code=code or 0, term=state.term)
        state.answer(token, response)

    def push_requested(self, request: PushRequest, token: object, now_ms: int) -> None:
        """Take a push; the answer may come later."""
        state = self._state
        state.now_ms = now_ms
        foreign = self._foreign(request)
        code = may_follow(state, request) if foreign is None else DLedgerCode(foreign.code)
        self._settle()
        if code is None and self._following is not None:
            self._following.pushed(request, token)
        else:
            state.answer(token, push_response(state, request, code or DLedgerCode.NOT_FOLLOWER))

    def transfer_requested(self, request: TransferRequest, token: object, now_ms: int) -> None:
        """Hand the leadership over, or take it over; the answer may come later."""
        state = self._state
        state.now_ms = now_ms
        foreign = self._foreign(request)
        if foreign is not None:
            state.answer(token, foreign)
        elif request.transfer_id == state.id:
            self._transfers.hand_over(request, token, self._leadership)
        elif request.transferee_id == state.id:
            self._transfers.take_over(request, token)
            self._take_over()
        else:
            code = DLedgerCode.UNEXPECTED_ARGUMENT
            state.answer(token, Response(group=state.group, code=code, term=state.term))

    def truncated(self, refusal: LogRefused | None, now_ms: int) -> None:
        """The log is truncated as the effect Truncate asked, or is unchanged."""
        self._state.now_ms = now_ms
        if self._following is not None:
            # The time of the truncation is not the leader's silence.
            self._following.heartbeat()
            self._following.truncated(refusal)

    # -- answers --

    def answered(self, sent: Send, response: AnyResponse | None, now_ms: int) -> None:
        """Take the answer to a request; None when none came."""
        state, request = self._state, sent.request
        state.now_ms = now_ms
        if isinstance(request, VoteRequest):
            votes = response if isinstance(response, VoteResponse) else None
            if self._election.answered(request, sent.target, votes):
                self._lead()
        elif isinstance(request, HeartbeatRequest):
            beat = response if isinstance(response, Response) else None
            is_current = self._leadership is not None and request.term == state.term
            if (
                is_current
                and self._leadership is not None
                and not self._leadership.beat_answered(sent.target, beat)
            ):
                self._candidate(0 if beat is None else beat.term)
        else:
            self._transfers.answered(sent, response)
        self._settle()

    def pushed(self, push: Push, response: PushResponse | None, now_ms: int) -> None:
        """Take the answer to a push; None when none came."""
        self._state.now_ms = now_ms
        if self._leadership is not None and push.term == self._state.term:
            self._leadership.push_answered(push, response)

    # -- roles --

    def _foreign(
        self, request: VoteRequest | HeartbeatRequest | PushRequest | TransferRequest
    ) -> Response | None:
        """Return the answer to a request for another group or member; None for the own."""
        state = self._state
        code = None
        if request.group != state.group:
            code = DLedgerCode.UNKNOWN_GROUP
        elif request.remote_id != state.id:
            code = DLedgerCode.UNKNOWN_MEMBER
        return None if code is None else Response(group=state.group, code=code, term=state.term)

    def _candidate(self, term: int = 0) -> None:
        """Leave the role, and vote in a later term."""
        state = self._state
        state.role, state.leader_id = Role.CANDIDATE, None
        is_later = term > state.term
        if is_later:
            state.set_term(term)
        self._election.restart(must_raise=not is_later)
        self._settle()

    def _lead(self) -> None:
        state = self._state
        state.role, state.leader_id, state.problem = Role.LEADER, state.id, ""
        state.prove()  # the log of the leader is that of the group
        self._settle()
        assert self._leadership is not None
        self._leadership.tick()

    def _take_over(self) -> None:
        """Begin the election of a member that takes the leadership over, when it may.

        Never with the input of a push: a candidate must not name entries that the effect Truncate
        of the same input drops.
        """
        if self._transfers.must_vote():
            self._state.role, self._state.leader_id = Role.CANDIDATE, None
            self._election.take_over()
            if self._election.tick():
                self._lead()
            self._settle()

    def _settle(self) -> None:
        """Let the parts of the roles follow term and role."""
        state = self._state
        if self._known == (state.term, state.role):
            return
        self._known = (state.term, state.role)
        if self._following is not None:
            self._following.end()
        self._following = Following(state) if state.role is Role.FOLLOWER else None
        self._leadership = Leadership(state) if state.role is Role.LEADER else None
        self._transfers.role_changed()
