"""Elections: rounds of votes of a candidate, and the decision of a voter.

A round asks all members for a vote in the present term, and ends with the majority, with the answer
of all, or after a time. Its outcome decides about the pause and the term of the next round.
Compatible with DLedgerLeaderElector, with one difference that other members see as an ordinary
answer: a request of a later term raises the own term before the logs are compared, so that a member
that comes back from a partition with a later term and an older log cannot stay apart for ever
(openmessaging/dledger issue 325). DLedger compares first.

A new member, whose log may have lost entries, has half a vote: its acceptance counts when all
members accept. With a full vote, a member that lags could lead without entries that a majority had,
the new member among them; of all members, one has them and refuses. The first election of a group
needs all members, too. To candidates of DLedger, such an acceptance is no answer.
"""

from core_broker.dledger.codes import DLedgerCode, VoteResult
from core_broker.dledger.messages import VoteRequest, VoteResponse
from core_broker.dledger.model import NOTHING, Role
from core_broker.dledger.state import NodeState

#: Refusals because the voter has a longer log.
_LONGER = frozenset(
    {VoteResult.REJECT_EXPIRED_LEDGER_TERM, VoteResult.REJECT_SMALL_LEDGER_END_INDEX}
)
#: Pause before a round of a candidate whose voters had to raise their terms first, ms.
_REVOTE_MS = 20
#: Longer pause for members with longer logs to be candidates, ms.
_LONGER_PAUSE_MS = 1000


class Election:
    """The rounds of a member while it is a candidate."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        # The first round of an unused term comes at once, as in DLedger. After a vote the member
        # may have led the term, and must not lead the same term again with another log.
        self._must_raise = state.vote is not None
        self._next_ms = 0
        self._votes: dict[str, VoteResult] | None = None
        #: The new members that accept.
        self._halves: set[str] = set()
        self._deadline_ms = 0
        #: The term in which the member takes the leadership over on request: pauses are short.
        self._taking_term = NOTHING

    def restart(self, *, must_raise: bool) -> None:
        """Begin as a candidate, after a pause."""
        self._votes = None
        self._must_raise = must_raise
        self._pause()

    def take_over(self) -> None:
        """Begin a round in the next term at once: the leader hands its leadership over."""
        self._votes, self._must_raise = None, True
        self._taking_term = self._state.term + 1
        self._next_ms = 0

    def tick(self) -> bool:
        """Do what is due; True when the member has won."""
        state = self._state
        if self._votes is None:
            return state.now_ms >= self._next_ms and self._begin()
        return state.now_ms >= self._deadline_ms and self._evaluate(is_over=True)

    def answered(self, request: VoteRequest, target: str, response: VoteResponse | None) -> bool:
        """Take an answer, None for none; True when the member has won."""
        state = self._state
        if response is not None and response.term > state.term:
            state.set_term(response.term)
            self.restart(must_raise=False)
            return False
        if self._votes is None or request.term != state.term:
            return False
        result = VoteResult.UNKNOWN if response is None else response.vote_result
        is_half = response is not None and response.code == DLedgerCode.ILLEGAL_MEMBER_STATE
        self._count(target, result, is_half=is_half and result is VoteResult.UNKNOWN)
        return self._evaluate(is_over=False)

    def _count(self, voter: str, result: VoteResult, *, is_half: bool) -> None:
        assert self._votes is not None
        self._votes[voter] = result
        if is_half:
            self._halves.add(voter)
        else:
            self._halves.discard(voter)

    def decide(self, request: VoteRequest) -> VoteResponse:
        """Decide about a vote; the answer must leave after the effects."""
        is_own = request.leader_id == self._state.id
        result = VoteResult.REJECT_UNEXPECTED_LEADER if is_own else self._decide(request)
        response = VoteResponse(group=self._state.group, term=self._state.term, vote_result=result)
        if result is VoteResult.ACCEPT and self._state.is_new:
            response.code = DLedgerCode.ILLEGAL_MEMBER_STATE
            response.vote_result = VoteResult.UNKNOWN
        return response

    def _decide(self, request: VoteRequest) -> VoteResult:
        state, candidate = self._state, str(request.leader_id)
        if candidate not in state.peers:
            return VoteResult.REJECT_UNKNOWN_LEADER
        if request.term < state.term:
            return VoteResult.REJECT_EXPIRED_VOTE_TERM
        if request.term > state.term:
            state.set_term(request.term)
            self.restart(must_raise=False)
        own = (state.log.end_term, state.log.end_index)
        if request.ledger_end_term < own[0]:
            return VoteResult.REJECT_EXPIRED_LEDGER_TERM
        if (request.ledger_end_term, request.ledger_end_index) < own:
            return VoteResult.REJECT_SMALL_LEDGER_END_INDEX
        if state.leader_id not in (None, candidate):
            return VoteResult.REJECT_ALREADY_HAS_LEADER
        if state.vote not in (None, candidate):
            return VoteResult.REJECT_ALREADY_VOTED
        if state.vote is None:
            state.set_vote(candidate)
        return VoteResult.ACCEPT

    def _begin(self) -> bool:
        state = self._state
        if self._must_raise:
            self._must_raise = False
            state.set_term(state.term + 1)
        self._votes, self._halves = {}, set()
        own = self._decide(self._request())
        self._count(state.id, own, is_half=own is VoteResult.ACCEPT and state.is_new)
        self._deadline_ms = state.now_ms + state.delay_ms(state.timing.vote_wait_ms)
        for other in state.others:
            state.send(other, self._request())
        return self._evaluate(is_over=False)

    def _request(self) -> VoteRequest:
        state = self._state
        return VoteRequest(
            leader_id=state.id,
            ledger_end_index=state.log.end_index,
            ledger_end_term=state.log.end_term,
            term=state.term,
        )

    def _evaluate(self, *, is_over: bool) -> bool:
        state, votes = self._state, self._votes
        assert votes is not None
        results = list(votes.values())
        accepting = {voter for voter, result in votes.items() if result is VoteResult.ACCEPT}
        accepted = len(accepting - self._halves)
        everybody = len(accepting | self._halves)
        if accepted >= state.quorum or everybody == len(state.peers):
            self._votes = None
            return state.role is Role.CANDIDATE
        has_leader = VoteResult.REJECT_ALREADY_HAS_LEADER in results
        if not (is_over or has_leader or len(votes) == len(state.peers)):
            return False
        unknown = sum(
            result is VoteResult.UNKNOWN and voter not in self._halves
            for voter, result in votes.items()
        )
        valid = len(results) - unknown
        longer = sum(each in _LONGER for each in results)
        not_ready = results.count(VoteResult.REJECT_TERM_NOT_READY)
        self._votes = None
        self._pause()
        if has_leader:
            self._next_ms += state.timing.silence_ms
        elif valid < state.quorum:
            pass
        elif valid - longer < state.quorum or (self._halves and longer):
            self._next_ms += _LONGER_PAUSE_MS
        elif self._halves and everybody + not_ready == valid:
            # All that answer accept, or may: ask the others again in this term.
            if not_ready:
                self._next_ms = state.now_ms + _REVOTE_MS
        elif accepted + not_ready >= state.quorum:
            self._next_ms = state.now_ms + _REVOTE_MS
        else:
            self._must_raise = True
        return False

    def _pause(self) -> None:
        state = self._state
        timing = state.timing
        is_taking = state.term == self._taking_term
        bounds = timing.take_over_pause_ms if is_taking else timing.vote_pause_ms
        self._next_ms = state.now_ms + state.delay_ms(bounds)
