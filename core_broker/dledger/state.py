"""The state that the parts of a node share."""

from collections.abc import Sequence
from random import Random

from core_broker.dledger.messages import AnyResponse, HeartbeatRequest, TransferRequest, VoteRequest
from core_broker.dledger.model import (
    NOTHING,
    Answer,
    Effect,
    EntryLog,
    Role,
    SaveTerm,
    Send,
    Timing,
)


class NodeState:
    """Term, vote, role and effects of one member."""

    def __init__(
        self,
        group: str,
        self_id: str,
        peers: Sequence[str],
        log: EntryLog,
        timing: Timing,
        random: Random,
        *,
        term: int,
        vote: str | None,
        commit_index: int,
        is_new: bool = False,
    ) -> None:
        self.group = group
        self.id = self_id
        self.peers = tuple(peers)
        self.others = tuple(each for each in peers if each != self_id)
        self.quorum = len(self.peers) // 2 + 1
        self.log = log
        self.timing = timing
        # A crash may come after the write of entries of a term, and before that of the term.
        self.term = max(term, log.end_term, 0)
        self.vote = vote if self.term == term else None
        self.role = Role.CANDIDATE
        self.leader_id: str | None = None
        self.commit_index = min(commit_index, log.end_index)
        #: True on a member that started without a term on its disk, or without committed entries,
        #: until it has copied the log of a leader: it may have lost votes, and has lost, or may
        #: have lost, entries that count as committed.
        self.is_new = is_new and len(self.peers) > 1
        #: Whether the store takes messages.
        self.can_write = True
        self.now_ms = 0
        #: Why the member cannot follow its leader, "" when it can.
        self.problem = ""
        self.effects: list[Effect] = []
        self._random = random

    def delay_ms(self, bounds: tuple[int, int]) -> int:
        """Return the first number plus a random part of the second."""
        return bounds[0] + self._random.randrange(bounds[1])

    def set_vote(self, vote: str | None) -> None:
        """Vote in the present term."""
        self.vote = vote
        self._save()

    def set_term(self, term: int) -> None:
        """Go to a later term as a candidate that has not voted."""
        assert term > self.term
        self.term, self.vote = term, None
        self.role, self.leader_id = Role.CANDIDATE, None
        self._save()

    def prove(self) -> None:
        """The member has all entries of its leader, for which it may have voted before."""
        if self.is_new:
            self.is_new, self.vote = False, self.vote or self.leader_id
            self._save()

    def _save(self) -> None:
        self.effects.append(SaveTerm(self.term, self.vote, self.is_new))

    def follow(self, leader_id: str) -> None:
        """Follow the leader of the present term."""
        self.role, self.leader_id = Role.FOLLOWER, leader_id

    def commit(self, index: int) -> None:
        """Advance the commit index."""
        self.commit_index = max(self.commit_index, min(index, self.log.end_index))

    def send(self, target: str, request: VoteRequest | HeartbeatRequest | TransferRequest) -> None:
        """Send a request with its ids."""
        request.group, request.local_id, request.remote_id = self.group, self.id, target
        self.effects.append(Send(target, request))

    def answer(self, token: object, response: AnyResponse) -> None:
        """Answer a request."""
        self.effects.append(Answer(token, response))

    @property
    def is_empty(self) -> bool:
        """True without entries."""
        return self.log.end_index == NOTHING
