"""Values of the Raft core: entries, hard state, membership, snapshots, and the view of the log.

Indexes count from 1 and terms from 1; 0 means "before the first". Node ids are positive integers.
"""

from enum import IntEnum
from typing import Protocol

import msgspec

#: Overhead of an entry in a message, bytes, added to the data by every limit in bytes.
ENTRY_OVERHEAD_BYTES = 32
#: Maximum members of a group, voters and learners together.
MEMBERS_MAX = 15


class EntryKind(IntEnum):
    """Meaning of the data of an entry."""

    NORMAL = 0
    #: First entry of a leader's term, without data.
    NOOP = 1
    #: A membership, encoded by `Membership.encode`, in force from the entry on.
    MEMBERSHIP = 2


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the replicated log."""

    index: int
    term: int
    kind: EntryKind
    data: bytes

    @property
    def size(self) -> int:
        """Size that limits in bytes count."""
        return len(self.data) + ENTRY_OVERHEAD_BYTES


class HardState(msgspec.Struct, frozen=True):
    """Term of a node, and the candidate with the node's vote in the term."""

    term: int = 0
    vote: int | None = None


class Membership(msgspec.Struct, frozen=True):
    """The members of a group. Voters elect and commit; learners only receive the log.

    Both tuples are sorted and have no common id.
    """

    voters: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a membership that no node may use."""
        members = self.voters + self.learners
        if len(set(members)) != len(members) or any(each < 1 for each in members):
            raise ValueError(f"illegal member ids {members}: ids are positive and occur once")
        if self.voters != tuple(sorted(self.voters)) or self.learners != tuple(
            sorted(self.learners)
        ):
            raise ValueError(f"member ids must be sorted: {members}")
        if len(members) > MEMBERS_MAX:
            raise ValueError(f"{len(members)} members exceed MEMBERS_MAX, {MEMBERS_MAX}")

    @property
    def members(self) -> tuple[int, ...]:
        """Voters, then learners."""
        return self.voters + self.learners

    @property
    def quorum(self) -> int:
        """Number of voters that elect and commit."""
        return len(self.voters) // 2 + 1

    def encode(self) -> bytes:
        """Return the data of a MEMBERSHIP entry: a JSON object."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Membership":
        """Read the data of a MEMBERSHIP entry; raises msgspec.ValidationError."""
        return msgspec.json.decode(data, type=cls)


class SnapshotMeta(msgspec.Struct, frozen=True):
    """A snapshot of the state machine behind the entry `index`, without the bytes.

    The first snapshot of a group has index 0, no bytes, and the initial membership.
    """

    index: int
    term: int
    membership: Membership
    #: Length of the snapshot, bytes.
    size: int = 0
    #: CRC-32 of all bytes.
    checksum: int = 0


class LogView(Protocol):
    """Read access to the persisted state of a node; the core reads nothing else.

    The view shows at least the entries whose persistence was reported, and the core asks for no
    others. Compaction may raise `first_index` up to `snapshot.index + 1` at any time.
    """

    @property
    def hard_state(self) -> HardState:
        """The last persisted hard state."""

    @property
    def snapshot(self) -> SnapshotMeta:
        """The newest snapshot."""

    @property
    def first_index(self) -> int:
        """Index of the oldest entry; 1 + `last_index` in an empty log."""

    @property
    def last_index(self) -> int:
        """Index of the newest entry; the snapshot's index in an empty log."""

    def term(self, index: int) -> int | None:
        """Return the term of an entry in `first_index - 1` to `last_index`, else None."""

    def entries(self, first: int, end: int, bytes_max: int) -> list[Entry]:
        """Return entries from `first`, before `end`, of at most `bytes_max`, at least one."""

    def membership_entries(self) -> list[Entry]:
        """Return all entries of kind MEMBERSHIP, in order."""

    def snapshot_chunk(self, snapshot: SnapshotMeta, offset: int, bytes_max: int) -> bytes | None:
        """Return bytes of a snapshot, or None when a newer snapshot has replaced it."""
