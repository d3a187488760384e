"""The state that all roles of a node share: term, vote, log, memberships, outgoing messages."""

import random
from enum import Enum

from core_broker.raft.config import RaftConfig
from core_broker.raft.log import RaftLog
from core_broker.raft.membership import MembershipHistory
from core_broker.raft.messages import Message, SnapshotChunk
from core_broker.raft.model import Entry, LogView, Membership


class Role(Enum):
    """The role of a node."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class NodeState:
    """State of one node; `RaftNode` is the only owner."""

    def __init__(
        self,
        config: RaftConfig,
        view: LogView,
        source: random.Random,
        applied_index: int | None = None,
    ) -> None:
        self.config = config
        self.random = source
        self.log = RaftLog(view, applied_index)
        self.memberships = MembershipHistory(view.snapshot, view.membership_entries())
        self.term = view.hard_state.term
        self.vote = view.hard_state.vote
        self.leader_id: int | None = None
        self.election_elapsed = 0
        self.election_timeout = 0
        self.messages: list[Message] = []
        #: Chunks of a received snapshot that are not persisted yet; at most one in normal traffic.
        self.chunks: list[SnapshotChunk] = []
        self.reset_timer()

    @property
    def id(self) -> int:
        """This node's id."""
        return self.config.node_id

    @property
    def membership(self) -> Membership:
        """The membership that holds."""
        return self.memberships.current

    def reset_timer(self) -> None:
        """Begin a new election timeout of random length."""
        self.election_elapsed = 0
        ticks = self.config.election_ticks
        self.election_timeout = ticks + self.random.randrange(ticks)

    def send(self, message: Message) -> None:
        """Queue a message for the next Ready."""
        self.messages.append(message)

    def append(self, entries: list[Entry]) -> None:
        """Add a leader's own entries at the end."""
        self.memberships.append(entries)
        self.log.append(entries)

    def replace_tail(self, entries: list[Entry]) -> None:
        """Replace the tail of the log from the first of `entries` on."""
        self.memberships.replace_tail(entries)
        self.log.replace_tail(entries)
