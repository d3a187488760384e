"""Elections: a candidate's requests and the counting of votes, and a voter's decision."""

from enum import Enum

from core_broker.raft.messages import VoteRequest, VoteResponse
from core_broker.raft.state import NodeState


class Outcome(Enum):
    """State of an election or pre-vote."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


class Election:
    """One election or pre-vote of a candidate.

    A pre-vote asks whether an election in the next term could be won; it changes no term and no
    vote (Raft thesis, section 9.6).
    """

    def __init__(self, state: NodeState, *, is_pre_vote: bool, is_transfer: bool = False) -> None:
        self._state = state
        self._is_pre_vote = is_pre_vote
        self._term = state.term + 1 if is_pre_vote else state.term
        self._votes = {state.id: True}
        for voter in state.membership.voters:
            if voter != state.id:
                state.send(
                    VoteRequest(
                        state.id,
                        voter,
                        self._term,
                        state.log.last_index,
                        state.log.last_term,
                        is_pre_vote,
                        is_transfer,
                    )
                )

    def count(self, response: VoteResponse) -> None:
        """Take a vote; the first answer of a voter counts."""
        is_for_this = response.is_pre_vote == self._is_pre_vote
        if is_for_this and (not response.is_granted or response.term == self._term):
            self._votes.setdefault(response.source, response.is_granted)

    @property
    def outcome(self) -> Outcome:
        """The outcome with the votes so far."""
        membership = self._state.membership
        voters = membership.voters
        granted = sum(self._votes.get(voter, False) for voter in voters)
        refused = sum(not self._votes.get(voter, True) for voter in voters)
        if granted >= membership.quorum:
            return Outcome.WON
        if refused > len(voters) - membership.quorum:
            return Outcome.LOST
        return Outcome.PENDING


def decide_vote(state: NodeState, request: VoteRequest) -> None:
    """Answer a request of the current or, in a pre-vote, of a later term.

    A granted vote is part of the hard state; its answer leaves when the hard state is on disk.
    """
    is_free = state.vote == request.source or (state.vote is None and state.leader_id is None)
    may_vote = is_free or (request.is_pre_vote and request.term > state.term)
    is_granted = may_vote and state.log.is_up_to_date(request.last_index, request.last_term)
    term = request.term if is_granted else state.term
    if is_granted and not request.is_pre_vote:
        state.vote = request.source
        state.election_elapsed = 0
    state.send(VoteResponse(state.id, request.source, term, is_granted, request.is_pre_vote))
