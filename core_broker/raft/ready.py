"""The effects of a node as values, in the order in which the caller must execute them."""

from dataclasses import dataclass

from core_broker.raft.messages import Message, SnapshotChunk
from core_broker.raft.model import Entry, HardState, SnapshotMeta
from core_broker.raft.state import Role


@dataclass(frozen=True, slots=True)
class Status:
    """What a node knows about the leadership."""

    role: Role
    term: int
    leader_id: int | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Place of an accepted proposal in the log.

    The proposal is committed when the entry `index` is applied with the receipt's term. When the
    index is applied with another term, the proposal has failed for ever.
    """

    index: int
    term: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Effects in their order. The caller

    1. sends `messages`;
    2. persists `hard_state`, `chunks`, `snapshot` and `entries` in this order and syncs them: the
       first of `entries` replaces the persisted entry of its index and all later ones; `snapshot`
       says that the chunks are complete and replaces log and state machine;
    3. calls `RaftNode.persisted`, and sends `messages_after`: promises of persisted state;
    4. applies `committed` in order and calls `RaftNode.applied`;
    5. serves each of `reads` once its index is applied, and refuses `refused_reads`.

    A caller that cannot do step 2 stops the node: neither step 3 nor a retry is safe.
    """

    messages: tuple[Message, ...] = ()
    hard_state: HardState | None = None
    chunks: tuple[SnapshotChunk, ...] = ()
    snapshot: SnapshotMeta | None = None
    entries: tuple[Entry, ...] = ()
    messages_after: tuple[Message, ...] = ()
    committed: tuple[Entry, ...] = ()
    #: Context and index of confirmed reads.
    reads: tuple[tuple[int, int], ...] = ()
    #: Contexts of reads that lost their leader.
    refused_reads: tuple[int, ...] = ()
    #: The new status, when it changed.
    status: Status | None = None

    @property
    def must_persist(self) -> bool:
        """Whether step 2 has something to do."""
        return bool(
            self.hard_state is not None or self.chunks or self.snapshot is not None or self.entries
        )
