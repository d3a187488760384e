"""The memberships of the log, and changes by one server.

A membership holds from the moment its entry is in the log (Raft thesis, section 4.1), and stops to
hold when the entry is replaced. A change adds or removes at most one voter, so the quorums of two
neighbouring memberships overlap.
"""

from enum import Enum

import msgspec

from core_broker.raft.model import (
    MEMBERS_MAX,
    Entry,
    EntryKind,
    Membership,
    SnapshotMeta,
)
from core_broker.raft.refusals import RaftBroken, Reason


class ChangeKind(Enum):
    """What happens to one node."""

    ADD_VOTER = "add voter"
    ADD_LEARNER = "add learner"
    REMOVE = "remove"


class MembershipHistory:
    """The snapshot's membership and those of later entries; the last one holds."""

    def __init__(self, snapshot: SnapshotMeta, entries: list[Entry]) -> None:
        later = [entry for entry in entries if entry.index > snapshot.index]
        self._history = [(snapshot.index, snapshot.membership), *memberships_of(later)]

    @property
    def current(self) -> Membership:
        """The membership that holds."""
        return self._history[-1][1]

    @property
    def current_index(self) -> int:
        """Index of the entry, or of the snapshot, of the membership that holds."""
        return self._history[-1][0]

    def at(self, index: int) -> Membership:
        """Return the membership behind entry `index`, for a snapshot."""
        return next(membership for start, membership in reversed(self._history) if start <= index)

    def append(self, entries: list[Entry]) -> None:
        """Take the memberships of new entries."""
        self._history += memberships_of(entries)

    def replace_tail(self, entries: list[Entry]) -> None:
        """Forget the memberships from the first entry on, then take those of `entries`.

        Raises RaftBroken, before any change, for a membership that cannot be read.
        """
        fresh = memberships_of(entries)
        while len(self._history) > 1 and self._history[-1][0] >= entries[0].index:
            self._history.pop()
        self._history += fresh

    def restore(self, snapshot: SnapshotMeta) -> None:
        """Start again from a snapshot."""
        self._history = [(snapshot.index, snapshot.membership)]

    def compact(self, index: int) -> None:
        """Forget the memberships that no snapshot from `index` on needs."""
        while len(self._history) > 1 and self._history[1][0] <= index:
            del self._history[0]


def memberships_of(entries: list[Entry]) -> list[tuple[int, Membership]]:
    """Return index and membership of the entries that have one; raises RaftBroken."""
    try:
        return [
            (entry.index, Membership.decode(entry.data))
            for entry in entries
            if entry.kind is EntryKind.MEMBERSHIP
        ]
    except msgspec.DecodeError as error:
        raise RaftBroken(f"A membership in the log cannot be read: {error}.") from error


def changed(before: Membership, kind: ChangeKind, node_id: int) -> Membership | Reason:
    """Return the membership after a change of one node, or why the change is refused."""
    voters = set(before.voters) - {node_id}
    learners = set(before.learners) - {node_id}
    if kind is ChangeKind.ADD_VOTER:
        voters.add(node_id)
    elif kind is ChangeKind.ADD_LEARNER:
        learners.add(node_id)
    if not voters:
        return Reason.LAST_VOTER
    if len(voters) + len(learners) > MEMBERS_MAX:
        return Reason.TOO_MANY_MEMBERS
    after = Membership(tuple(sorted(voters)), tuple(sorted(learners)))
    return Reason.NO_CHANGE if after == before else after
