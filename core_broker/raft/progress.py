"""A leader's knowledge about the log of one follower, and the limits of sending."""

from collections import deque
from enum import Enum

from core_broker.raft.config import RaftConfig
from core_broker.raft.model import Entry, SnapshotMeta

#: Heartbeat answers without an answer to a chunk before the chunk is sent again.
CHUNK_REPEAT_HEARTBEATS = 3


class Mode(Enum):
    """How a leader sends to a follower."""

    #: One message per heartbeat or answer, until the common prefix is found.
    PROBE = "probe"
    #: A pipeline of messages, bounded by the window.
    REPLICATE = "replicate"
    #: Chunks of a snapshot, one at a time.
    SNAPSHOT = "snapshot"


class Progress:
    """Progress of one follower."""

    def __init__(self, next_index: int, config: RaftConfig, *, is_active: bool) -> None:
        self.mode = Mode.PROBE
        #: Highest entry known to equal the leader's; it only rises.
        self.match_index = 0
        #: First entry of the next message.
        self.next_index = next_index
        #: Whether the follower answered since the last check of the quorum.
        self.is_active = is_active
        #: Commit index of the last message.
        self.sent_commit = 0
        #: Highest heartbeat round that the follower answered.
        self.acked_round = 0
        self.snapshot: SnapshotMeta | None = None
        self.snapshot_offset = 0
        self._config = config
        self._is_waiting = False
        self._heartbeats_waited = 0
        self._window: deque[tuple[int, int]] = deque()
        self._window_bytes = 0

    @property
    def is_paused(self) -> bool:
        """Whether the next message must wait for an answer or a heartbeat's answer."""
        if self.mode is Mode.REPLICATE:
            return (
                len(self._window) >= self._config.in_flight_messages_max
                or self._window_bytes >= self._config.in_flight_bytes_max
            )
        return self._is_waiting

    def sent(self, entries: list[Entry], commit: int) -> None:
        """Count a sent message."""
        self.sent_commit = commit
        if self.mode is not Mode.REPLICATE:
            self._is_waiting = True
            self._heartbeats_waited = 0
        elif entries:
            self.next_index = entries[-1].index + 1
            size = sum(entry.size for entry in entries)
            self._window.append((entries[-1].index, size))
            self._window_bytes += size

    def resume(self) -> None:
        """Allow one more message: the follower lives, and the last message may be lost."""
        if self.mode is Mode.SNAPSHOT:
            self._heartbeats_waited += 1
            if self._heartbeats_waited < CHUNK_REPEAT_HEARTBEATS:
                return
        self._is_waiting = False
        if self.mode is Mode.REPLICATE and self.is_paused:
            self._window_bytes -= self._window.popleft()[1]

    def acknowledged(self, index: int, first_index: int) -> bool:
        """Take an answer; return whether `match_index` rose. `first_index` is the leader's."""
        has_risen = index > self.match_index
        self.match_index = max(self.match_index, index)
        self.next_index = max(self.next_index, index + 1)
        if self.mode is Mode.REPLICATE:
            while self._window and self._window[0][0] <= index:
                self._window_bytes -= self._window.popleft()[1]
        elif self.mode is Mode.PROBE:
            if index == self.match_index:
                self._enter(Mode.REPLICATE, self.match_index + 1)
        elif has_risen and self.match_index + 1 >= first_index:
            self._enter(Mode.REPLICATE, self.match_index + 1)
        return has_risen

    def rejected(self, prev_index: int, hint_index: int) -> bool:
        """Take a rejection; return whether the leader must probe at the new `next_index`."""
        if self.mode is Mode.REPLICATE:
            if prev_index <= self.match_index:
                return False  # an old answer
            self._enter(Mode.PROBE, self.match_index + 1)
            return True
        if self.mode is Mode.SNAPSHOT or prev_index != self.next_index - 1:
            return False
        self.next_index = max(min(prev_index, hint_index + 1), self.match_index + 1)
        self._is_waiting = False
        return True

    def begin_snapshot(self, snapshot: SnapshotMeta) -> None:
        """Send a snapshot from its first byte."""
        self._enter(Mode.SNAPSHOT, self.next_index)
        self.snapshot = snapshot

    def chunk_acknowledged(self, index: int, next_offset: int) -> bool:
        """Take an answer to a chunk; return whether the next chunk may go out."""
        if self.snapshot is None or self.snapshot.index != index:
            return False
        if not 0 <= next_offset <= self.snapshot.size or next_offset == self.snapshot_offset:
            return False
        self.snapshot_offset = next_offset
        self._is_waiting = False
        return True

    def _enter(self, mode: Mode, next_index: int) -> None:
        self.mode = mode
        self.next_index = next_index
        self.snapshot = None
        self.snapshot_offset = 0
        self._is_waiting = False
        self._window.clear()
        self._window_bytes = 0
