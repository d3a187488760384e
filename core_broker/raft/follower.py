"""A follower's answers to its leader: entries, heartbeats, snapshots."""

from core_broker.raft.messages import (
    AppendRequest,
    AppendResponse,
    Heartbeat,
    HeartbeatResponse,
    SnapshotChunk,
    SnapshotResponse,
)
from core_broker.raft.model import SnapshotMeta
from core_broker.raft.refusals import RaftBroken
from core_broker.raft.state import NodeState


class Follower:
    """Takes the log of a leader; also holds a snapshot's progress between leaders."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._incoming: SnapshotMeta | None = None
        self._next_offset = 0

    def on_append(self, request: AppendRequest) -> None:
        """Append entries behind the common prefix, or reject with a hint."""
        log = self._state.log
        if not is_contiguous(request):
            return
        if request.prev_index < log.committed:
            self._acknowledge(request.source, log.committed)
            return
        if log.term(request.prev_index) != request.prev_term:
            hint_index = min(request.prev_index, log.last_index)
            hint_index, hint_term = log.newest_not_above(hint_index, request.prev_term)
            self._state.send(
                AppendResponse(
                    self._state.id,
                    request.source,
                    self._state.term,
                    request.prev_index,
                    is_rejected=True,
                    hint_index=hint_index,
                    hint_term=hint_term,
                )
            )
            return
        last_index = request.prev_index + len(request.entries)
        fresh = log.missing(request.entries)
        if fresh:
            self._state.replace_tail(fresh)
        log.commit_to(min(request.commit, last_index))
        self._acknowledge(request.source, last_index)

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Take the commit index and answer."""
        state = self._state
        state.log.commit_to(heartbeat.commit)
        answer = HeartbeatResponse(state.id, heartbeat.source, state.term, heartbeat.round)
        state.send(answer)

    def on_chunk(self, chunk: SnapshotChunk) -> None:
        """Take a chunk in order; the last one replaces the log by the snapshot."""
        state = self._state
        log = state.log
        snapshot = chunk.snapshot
        if snapshot.index <= log.committed:
            self._acknowledge(chunk.source, log.committed)
            return
        if log.term(snapshot.index) == snapshot.term:  # the log already has the entry
            log.commit_to(snapshot.index)
            self._acknowledge(chunk.source, snapshot.index)
            return
        if not self._is_acceptable(chunk):
            return
        if self._incoming != snapshot and chunk.offset == 0:
            self._incoming = snapshot
            self._next_offset = 0
            state.chunks.clear()
        if self._incoming == snapshot and chunk.offset == self._next_offset:
            state.chunks.append(chunk)
            self._next_offset += len(chunk.data)
            if self._next_offset == snapshot.size:
                self._incoming = None
                log.restore(snapshot)
                state.memberships.restore(snapshot)
                self._acknowledge(chunk.source, snapshot.index)
                return
        next_offset = self._next_offset if self._incoming == snapshot else 0
        answer = SnapshotResponse(state.id, chunk.source, state.term, snapshot.index, next_offset)
        state.send(answer)

    def _is_acceptable(self, chunk: SnapshotChunk) -> bool:
        """Whether the chunk lies inside its snapshot; raises RaftBroken above the limit."""
        size = chunk.snapshot.size
        size_max = self._state.config.snapshot_bytes_max
        if size > size_max:
            raise RaftBroken(
                f"The leader's snapshot has {size} bytes, above snapshot_bytes_max, {size_max}."
            )
        end = chunk.offset + len(chunk.data)
        return 0 <= chunk.offset <= end <= size and (len(chunk.data) > 0 or size == 0)

    def _acknowledge(self, leader_id: int, index: int) -> None:
        self._state.send(AppendResponse(self._state.id, leader_id, self._state.term, index))


def is_contiguous(request: AppendRequest) -> bool:
    """Whether the entries follow `prev_index` without a gap, in rising terms up to the sender's."""
    index, term = request.prev_index, request.prev_term
    for entry in request.entries:
        index += 1
        if entry.index != index or not term <= entry.term <= request.term:
            return False
        term = entry.term
    return request.prev_index >= 0
