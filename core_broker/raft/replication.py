"""A leader's traffic with its followers: entries, heartbeats, snapshots, and the answers.

A follower is probed with one message at a time until the common prefix is found; then messages
flow in a window. A follower whose next entry is compacted gets the snapshot in chunks.
"""

from core_broker.raft.messages import (
    AppendRequest,
    AppendResponse,
    Heartbeat,
    HeartbeatResponse,
    SnapshotChunk,
    SnapshotResponse,
)
from core_broker.raft.progress import Mode, Progress
from core_broker.raft.state import NodeState


class Replication:
    """The progress of all followers of one leader."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._round = 0
        self.progress: dict[int, Progress] = {}
        self.take_membership(is_active=False)

    def take_membership(self, *, is_active: bool) -> None:
        """Follow the membership: forget removed nodes, begin with new nodes."""
        state = self._state
        members = [each for each in state.membership.members if each != state.id]
        for node_id in set(self.progress) - set(members):
            del self.progress[node_id]
        for node_id in members:
            if node_id not in self.progress:
                next_index = state.log.last_index + 1
                self.progress[node_id] = Progress(next_index, state.config, is_active=is_active)

    # -- sending --

    def send_pending(self) -> None:
        """Send missing entries to each follower, up to the limit of the window."""
        for node_id, progress in self.progress.items():
            while not progress.is_paused and self._send(node_id, progress):
                pass

    def begin_round(self) -> int:
        """Send a heartbeat to all followers; return the number of the round."""
        state = self._state
        self._round += 1
        for node_id, progress in self.progress.items():
            commit = min(progress.match_index, state.log.committed)
            state.send(Heartbeat(state.id, node_id, state.term, commit, self._round))
        return self._round

    def _send(self, node_id: int, progress: Progress, *, is_forced: bool = False) -> bool:
        """Send one message; return whether entries were sent and more may follow."""
        state = self._state
        log = state.log
        if progress.mode is Mode.SNAPSHOT:
            self._send_chunk(node_id, progress)
            return False
        prev_index = progress.next_index - 1
        prev_term = log.term(prev_index)
        if prev_term is None or progress.next_index < log.first_index:
            if progress.is_active:  # a dead node would never take the snapshot
                progress.begin_snapshot(log.view.snapshot)
                self._send_chunk(node_id, progress)
            return False
        entries = log.slice(progress.next_index, log.last_index + 1, state.config.message_bytes_max)
        is_told = progress.sent_commit >= log.committed
        if progress.mode is Mode.REPLICATE and not entries and is_told and not is_forced:
            return False
        state.send(
            AppendRequest(
                state.id, node_id, state.term, prev_index, prev_term, tuple(entries), log.committed
            )
        )
        progress.sent(entries, log.committed)
        return bool(entries)

    def _send_chunk(self, node_id: int, progress: Progress) -> None:
        state = self._state
        snapshot = progress.snapshot
        assert snapshot is not None
        offset = progress.snapshot_offset
        data = state.log.view.snapshot_chunk(
            snapshot, offset, state.config.snapshot_chunk_bytes_max
        )
        if data is None:  # a newer snapshot has replaced this one
            snapshot = state.log.view.snapshot
            progress.begin_snapshot(snapshot)
            offset = 0
            data = state.log.view.snapshot_chunk(
                snapshot, offset, state.config.snapshot_chunk_bytes_max
            )
            assert data is not None
        state.send(SnapshotChunk(state.id, node_id, state.term, snapshot, offset, data))
        progress.sent([], progress.sent_commit)

    # -- answers --

    def on_append_response(self, response: AppendResponse) -> bool:
        """Take an answer; return whether the follower's match index rose."""
        log = self._state.log
        progress = self.progress.get(response.source)
        if progress is None:
            return False
        progress.is_active = True
        if response.is_rejected:
            hint = response.hint_index
            if response.hint_term > 0:
                hint = log.newest_not_above(min(hint, log.last_index), response.hint_term)[0]
            progress.rejected(response.index, hint)
            return False
        if response.index > log.last_index:
            return False  # no follower of this term has more entries than its leader
        return progress.acknowledged(response.index, log.first_index)

    def on_heartbeat_response(self, response: HeartbeatResponse) -> bool:
        """Take an answer; return whether the follower is known."""
        progress = self.progress.get(response.source)
        if progress is None:
            return False
        progress.is_active = True
        progress.acked_round = max(progress.acked_round, min(response.round, self._round))
        progress.resume()
        if progress.match_index < self._state.log.last_index and not progress.is_paused:
            # The last messages may be lost; an empty message finds out.
            self._send(response.source, progress, is_forced=True)
        return True

    def on_snapshot_response(self, response: SnapshotResponse) -> None:
        """Take an answer to a chunk."""
        progress = self.progress.get(response.source)
        if progress is not None:
            progress.is_active = True
            progress.chunk_acknowledged(response.index, response.next_offset)

    # -- quorums --

    def quorum_match(self) -> int:
        """Return the highest index that a quorum of voters has persisted."""
        matches = {node_id: each.match_index for node_id, each in self.progress.items()}
        return self._quorum(matches, self._state.log.stable_index)

    def quorum_round(self) -> int:
        """Return the highest heartbeat round that a quorum of voters answered."""
        rounds = {node_id: each.acked_round for node_id, each in self.progress.items()}
        return self._quorum(rounds, self._round)

    def _quorum(self, followers: dict[int, int], own: int) -> int:
        """Return the highest value that a quorum of voters has reached."""
        membership = self._state.membership
        values = sorted(followers.get(voter, own) for voter in membership.voters)
        return values[len(values) - membership.quorum]

    def check_quorum(self) -> bool:
        """Return whether a quorum answered since the last check, and begin the next period."""
        state = self._state
        alive = {node_id for node_id, progress in self.progress.items() if progress.is_active}
        alive.add(state.id)
        for progress in self.progress.values():
            progress.is_active = False
        membership = state.membership
        return len(alive.intersection(membership.voters)) >= membership.quorum
