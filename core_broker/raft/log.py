"""The log as the core sees it: the persisted part by a view, and the tail that is not on disk yet.

    compacted | persisted (view)         | unstable (in memory)
              first_index .. stable_index  stable_index + 1 .. last_index

`applied <= handed <= committed`, and only persisted entries are handed out. A snapshot that is
being installed replaces the whole log.
"""

from core_broker.raft.model import Entry, LogView, SnapshotMeta
from core_broker.raft.refusals import RaftBroken


class RaftLog:
    """The entries of a node, with commit and apply progress."""

    def __init__(self, view: LogView, applied_index: int | None = None) -> None:
        self.view = view
        self.stable_index = view.last_index
        #: A received snapshot that is not installed yet.
        self.pending_snapshot: SnapshotMeta | None = None
        self.committed = max(view.snapshot.index, applied_index or 0)
        self.handed = self.committed
        self.applied = self.committed
        self._unstable: list[Entry] = []
        #: Index up to which unstable entries were handed out for persistence.
        self._written_to = self.stable_index
        if self.committed > self.stable_index:
            raise RaftBroken(
                f"The state machine has applied entry {self.committed}, but the log ends at"
                f" {self.stable_index}."
            )

    # -- questions --

    @property
    def first_index(self) -> int:
        """Index of the oldest entry that can be read."""
        if self.pending_snapshot is not None:
            return self.pending_snapshot.index + 1
        return self.view.first_index

    @property
    def last_index(self) -> int:
        """Index of the newest entry."""
        return self.stable_index + len(self._unstable)

    @property
    def last_term(self) -> int:
        """Term of the newest entry."""
        term = self.term(self.last_index)
        assert term is not None
        return term

    def term(self, index: int) -> int | None:
        """Return the term of an entry; None when the entry is compacted or behind the end."""
        if index > self.last_index:
            return None
        if index > self.stable_index:
            return self._unstable[index - self.stable_index - 1].term
        if self.pending_snapshot is not None:
            return self.pending_snapshot.term if index == self.pending_snapshot.index else None
        return self.view.term(index)

    def slice(self, first: int, end: int, bytes_max: int) -> list[Entry]:
        """Return entries from `first`, before `end`, of at most `bytes_max`, at least one."""
        end = min(end, self.last_index + 1)
        if first >= end:
            return []
        entries: list[Entry] = []
        if first <= self.stable_index:
            stable_end = min(end, self.stable_index + 1)
            entries = self.view.entries(first, stable_end, bytes_max)
            if end == stable_end or len(entries) < stable_end - first:
                return entries
        size = sum(entry.size for entry in entries)
        start = max(first - self.stable_index - 1, 0)
        for entry in self._unstable[start : end - self.stable_index - 1]:
            size += entry.size
            if entries and size > bytes_max:
                break
            entries.append(entry)
        return entries

    def is_up_to_date(self, last_index: int, last_term: int) -> bool:
        """Return whether a log with this end may become the leader's (Raft, section 5.4.1)."""
        return (last_term, last_index) >= (self.last_term, self.last_index)

    def newest_not_above(self, index: int, term: int) -> tuple[int, int]:
        """Return index and term of the newest entry up to `index` whose term is at most `term`.

        The pair is (index, 0) where the term is compacted. Skips a whole term of a diverged log in
        one exchange.
        """
        while True:
            own = self.term(index)
            if own is None:
                return index, 0
            if own <= term:
                return index, own
            index -= 1

    # -- changes --

    def append(self, entries: list[Entry]) -> None:
        """Add entries at the end."""
        self._unstable += entries

    def missing(self, entries: tuple[Entry, ...]) -> list[Entry]:
        """Return the tail of `entries` that is missing or differs; the entry before matches.

        Raises RaftBroken when a committed entry differs.
        """
        for position, entry in enumerate(entries):
            if self.term(entry.index) != entry.term:
                if entry.index <= self.committed:
                    raise RaftBroken(
                        f"Entry {entry.index} of term {entry.term} conflicts with a committed"
                        f" entry of term {self.term(entry.index)}."
                    )
                return list(entries[position:])
        return []

    def replace_tail(self, entries: list[Entry]) -> None:
        """Remove all entries from the first of `entries` on, then add `entries`."""
        first = entries[0].index
        if first > self.stable_index:
            del self._unstable[first - self.stable_index - 1 :]
        else:
            self._unstable.clear()
            self.stable_index = first - 1
        self._written_to = min(self._written_to, first - 1)
        self._unstable += entries

    def commit_to(self, index: int) -> bool:
        """Raise the commit index; return whether it rose."""
        if index > self.last_index:
            raise RaftBroken(
                f"Entry {index} is committed, but this node's log ends at {self.last_index}: the"
                " node lost entries after it acknowledged them."
            )
        if index <= self.committed:
            return False
        self.committed = index
        return True

    def restore(self, snapshot: SnapshotMeta) -> None:
        """Replace the whole log by a snapshot that the caller installs next."""
        self.pending_snapshot = snapshot
        self._unstable.clear()
        self.stable_index = self._written_to = self.committed = snapshot.index

    # -- persistence and application --

    def take_unwritten(self) -> list[Entry]:
        """Return the entries to persist next; an entry is handed out once per content."""
        entries = self._unstable[self._written_to - self.stable_index :]
        self._written_to = self.last_index
        return entries

    @property
    def has_unwritten(self) -> bool:
        """Whether entries must be persisted."""
        return self._written_to < self.last_index

    def persisted(self, installed: SnapshotMeta | None, written_to: int) -> None:
        """Accept that a snapshot is installed and that entries up to `written_to` are on disk.

        Entries that were replaced in the meantime stay unstable.
        """
        if installed is not None and installed == self.pending_snapshot:
            self.pending_snapshot = None
            self.handed = self.applied = installed.index
        stable = min(written_to, self._written_to)
        if self.pending_snapshot is None and stable > self.stable_index:
            del self._unstable[: stable - self.stable_index]
            self.stable_index = stable

    def take_committed(self, bytes_max: int) -> list[Entry]:
        """Return the next entries to apply; none before the last ones are reported applied."""
        if self.pending_snapshot is not None or self.handed > self.applied:
            return []
        end = min(self.committed, self.stable_index) + 1
        entries = self.slice(self.handed + 1, end, bytes_max)
        if entries:
            self.handed = entries[-1].index
        return entries

    @property
    def has_committed(self) -> bool:
        """Whether `take_committed` would return entries."""
        return (
            self.pending_snapshot is None
            and self.handed == self.applied
            and self.handed < min(self.committed, self.stable_index)
        )

    def applied_to(self, index: int) -> None:
        """Accept that the entries up to `index` are applied; older reports change nothing."""
        self.applied = max(self.applied, min(index, self.handed))
