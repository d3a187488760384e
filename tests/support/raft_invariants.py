"""The safety properties of Raft (section 5.2 of the paper), checked on every event of a cluster."""

import zlib

from core_broker.raft.model import Entry
from core_broker.raft.state import Role
from tests.support.raft_hosts import Host


class Invariants:
    """What all nodes of a cluster did; each method raises AssertionError for a violation."""

    def __init__(self) -> None:
        #: Applied entries by index: equal on all nodes.
        self.applied: dict[int, Entry] = {}
        self._leaders: dict[int, int] = {}
        self._entries: dict[tuple[int, int], tuple[Entry, int | None]] = {}
        #: Term of the first node that applied an entry: the entry was committed by this term.
        self._committed_by: dict[int, int] = {}
        self._states: dict[int, int] = {}

    def status_seen(self, host: Host) -> None:
        """Election safety, and leader completeness for entries committed in earlier terms."""
        node, storage = host.node, host.storage
        assert node is not None
        assert storage is not None
        status = node.status
        if status.role is not Role.LEADER:
            return
        known = self._leaders.setdefault(status.term, host.id)
        assert known == host.id, f"term {status.term} has two leaders: {known} and {host.id}"
        for index, term in self._committed_by.items():
            if term < status.term and index > storage.snapshot.index:
                found = node.term_at(index)
                assert found == self.applied[index].term, (
                    f"leader {host.id} of term {status.term} has term {found} at {index},"
                    f" but {self.applied[index]} was committed by term {term}"
                )

    def entries_persisted(self, host: Host, entries: tuple[Entry, ...]) -> None:
        """Log matching: index and term determine an entry and the entry before it."""
        assert host.storage is not None
        for entry in entries:
            before = host.storage.term(entry.index - 1)
            known = self._entries.setdefault((entry.index, entry.term), (entry, before))
            assert known == (entry, before), f"node {host.id}: {entry} after {before}, not {known}"

    def entry_applied(self, host: Host, entry: Entry) -> None:
        """State machine safety: no index is applied with two entries."""
        assert host.node is not None
        known = self.applied.setdefault(entry.index, entry)
        assert known == entry, f"node {host.id} applied {entry}, another node {known}"
        self._committed_by.setdefault(entry.index, host.node.status.term)

    def state_reached(self, host: Host) -> None:
        """Equal indexes have equal states, whether by entries or by snapshots."""
        digest = zlib.crc32(host.machine.save())
        known = self._states.setdefault(host.machine.applied, digest)
        assert known == digest, f"node {host.id} has another state at {host.machine.applied}"
