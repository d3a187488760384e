"""What the state machine of a DLedger member reads and asks for: timing, log, effects."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from core_broker.dledger.codes import DLedgerCode, PushKind
from core_broker.dledger.messages import (
    AnyResponse,
    Entry,
    HeartbeatRequest,
    TransferRequest,
    VoteRequest,
)

#: Index, term and position of what does not exist.
NOTHING = -1


class Role(Enum):
    """The role of a member; every start is that of a candidate."""

    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals, ms; the defaults are DLedger's."""

    heartbeat_ms: int = 2000
    #: Time without heartbeats before a follower votes, and without a quorum before a leader ends.
    silence_ms: int = 6000
    #: Pause between two rounds of votes: the first number plus a random part of the second.
    vote_pause_ms: tuple[int, int] = (300, 700)
    #: Time for the answers of a round: the same two numbers.
    vote_wait_ms: tuple[int, int] = (2000, 1000)
    #: The same pause of a member that takes the leadership over.
    take_over_pause_ms: tuple[int, int] = (30, 70)
    #: Pause after a failed push, and after a failed comparison.
    retry_ms: int = 200
    compare_retry_ms: int = 500
    #: Interval of COMMIT pushes without other pushes, and the delay of a new commit index.
    commit_interval_ms: int = 1000
    commit_delay_ms: int = 50
    #: Time that a push may wait for the entries before its own.
    gap_ms: int = 1000


class LogRefused(Exception):
    """The log cannot take entries; `code` is the answer to the leader."""

    def __init__(self, code: DLedgerCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class EntriesGone(Exception):
    """Entries to be pushed are no longer in the log: their segment was deleted."""


class EntryLog(Protocol):
    """The log of a member. Only entries that are written count."""

    @property
    def begin_index(self) -> int:
        """Index of the first entry; NOTHING in an empty log."""

    @property
    def end_index(self) -> int:
        """Index of the last entry; NOTHING in an empty log."""

    @property
    def end_term(self) -> int:
        """Term of the last entry; NOTHING in an empty log."""

    def term_at(self, index: int) -> int:
        """Return the term of an entry within the log."""

    def matches(self, entry: Entry) -> bool:
        """Return whether the log has this very entry."""

    def batch_end(self, first: int) -> int:
        """Return the last entry of a push that begins with an entry of the log."""

    def size_of(self, first: int, last: int) -> int:
        """Return the bytes of a push with entries of the log."""

    def append(self, entries: list[Entry]) -> None:
        """Write entries of a leader behind the last one; raises LogRefused, with none written.

        The first entry of an empty log may have any index.
        """


@dataclass(frozen=True, slots=True)
class SaveTerm:
    """Write and sync term and vote before any later effect is executed."""

    term: int
    vote: str | None
    #: True until the member has copied the log of a leader (`NodeState.is_new`).
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the node wants to hear of the answer, or that none came."""

    target: str
    request: VoteRequest | HeartbeatRequest | TransferRequest


@dataclass(frozen=True, slots=True)
class Push:
    """Send the entries `first` to `last`, none for COMMIT; the node wants to hear of the answer."""

    target: str
    kind: PushKind
    first: int
    last: int
    term: int
    commit_index: int
    #: Number of the attempt: answers to earlier attempts move nothing back.
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request; `token` names the request."""

    token: object
    response: AnyResponse


@dataclass(frozen=True, slots=True)
class Truncate:
    """Drop all entries behind `keep`; `Node.truncated` tells the node that it is done.

    The node takes no other input before that.
    """

    keep: int


Effect = SaveTerm | Send | Push | Answer | Truncate
