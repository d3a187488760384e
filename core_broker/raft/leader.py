"""The leader: proposals, commits, membership changes, reads, transfer.

An instance lives from the won election to the end of the leadership. The rule of section 5.4.2 of
the Raft paper holds: only entries of the leader's own term are committed by counting.
"""

from collections import deque

from core_broker.raft.membership import ChangeKind, changed
from core_broker.raft.messages import (
    AppendResponse,
    HeartbeatResponse,
    ReadRequest,
    ReadResponse,
    SnapshotResponse,
    TimeoutNow,
)
from core_broker.raft.model import ENTRY_OVERHEAD_BYTES, Entry, EntryKind
from core_broker.raft.reads import PendingRead, ReadQueue
from core_broker.raft.refusals import RaftRefused, Reason
from core_broker.raft.replication import Replication
from core_broker.raft.state import NodeState


class Leader:
    """One leadership of a node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.replication = Replication(state)
        self.reads = ReadQueue(state.config.pending_reads_max)
        #: Confirmed local reads that the next Ready hands out: context and index.
        self.confirmed: list[tuple[int, int]] = []
        #: The node that takes over the leadership, during a transfer.
        self.transferee: int | None = None
        self._transfer_elapsed = 0
        self._heartbeat_elapsed = 0
        self._check_elapsed = 0
        self._uncommitted: deque[Entry] = deque()
        self._uncommitted_bytes = 0
        self._append(EntryKind.NOOP, b"")

    # -- requests --

    def propose(self, data: bytes) -> Entry:
        """Append an entry, or raise RaftRefused."""
        if len(data) > self._state.config.proposal_bytes_max:
            raise self._refused(Reason.TOO_LARGE)
        self._check_acceptance(len(data))
        return self._append(EntryKind.NORMAL, data)

    def change_membership(self, kind: ChangeKind, node_id: int) -> Entry:
        """Append a membership that differs in one node, or raise RaftRefused.

        A change must wait for the commit of the last change and of an entry of the leader's term:
        else two leaders could use memberships whose quorums do not overlap (the defect of 2015 in
        the thesis' algorithm).
        """
        state = self._state
        if state.memberships.current_index > state.log.committed:
            raise self._refused(Reason.CHANGE_PENDING)
        if not self.has_committed_in_term:
            raise self._refused(Reason.NO_COMMIT_IN_TERM)
        after = changed(state.membership, kind, node_id)
        if isinstance(after, Reason):
            raise self._refused(after)
        data = after.encode()
        self._check_acceptance(len(data))
        entry = self._append(EntryKind.MEMBERSHIP, data)
        self.replication.take_membership(is_active=True)
        return entry

    def transfer(self, target: int) -> None:
        """Begin to hand over to another voter; give up after an election timeout."""
        if target == self._state.id or target not in self._state.membership.voters:
            raise self._refused(Reason.NOT_A_VOTER)
        self.transferee = target
        self._transfer_elapsed = 0
        self._continue_transfer()

    def read(self, source: int, context: int) -> None:
        """Queue a read of this node or of a follower."""
        if self.reads.is_full:
            raise self._refused(Reason.READS_FULL)
        self.reads.add(source, context)

    # -- events --

    def tick(self) -> bool:
        """Count a tick; return False when the leader must step down for lack of a quorum."""
        config = self._state.config
        self._check_elapsed += 1
        self._transfer_elapsed += 1
        if self._transfer_elapsed >= config.election_ticks:
            self.transferee = None
        if self._check_elapsed >= config.election_ticks:
            self._check_elapsed = 0
            if config.check_quorum and not self.replication.check_quorum():
                return False
        self._heartbeat_elapsed += 1
        if self._heartbeat_elapsed >= config.heartbeat_ticks:
            self._begin_round()
        return True

    def on_append_response(self, response: AppendResponse) -> None:
        """Take a follower's answer to entries or to a whole snapshot."""
        self.replication.on_append_response(response)
        self.advance()
        self._continue_transfer()

    def on_heartbeat_response(self, response: HeartbeatResponse) -> None:
        """Take a follower's answer to a heartbeat."""
        if self.replication.on_heartbeat_response(response):
            self._confirm_reads()

    def on_snapshot_response(self, response: SnapshotResponse) -> None:
        """Take a follower's answer to a chunk."""
        self.replication.on_snapshot_response(response)

    def advance(self) -> None:
        """Commit what a quorum has persisted."""
        log = self._state.log
        index = self.replication.quorum_match()
        if index > log.committed and log.term(index) == self._state.term:
            log.commit_to(index)
            while self._uncommitted and self._uncommitted[0].index <= index:
                self._uncommitted_bytes -= self._uncommitted.popleft().size

    def flush(self) -> None:
        """Begin a round for new reads, and send what the followers lack."""
        if self.reads.has_new and self.has_committed_in_term:
            self._begin_round()
        self.replication.send_pending()

    # -- state --

    @property
    def has_committed_in_term(self) -> bool:
        """Whether an entry of this term is committed: the commit index is then up to date."""
        log = self._state.log
        return log.term(log.committed) == self._state.term

    @property
    def is_removed(self) -> bool:
        """Whether the removal of the leader is committed: the leader must step down."""
        state = self._state
        return (
            state.id not in state.membership.voters
            and state.memberships.current_index <= state.log.committed
        )

    def end(self) -> list[int]:
        """Return the contexts of the local reads that get no answer any more."""
        return [read.context for read in self.reads.drain() if read.source == self._state.id]

    # -- steps --

    def _check_acceptance(self, size: int) -> None:
        if self.transferee is not None:
            raise self._refused(Reason.TRANSFERRING)
        bytes_max = self._state.config.uncommitted_bytes_max
        if self._uncommitted_bytes + size + ENTRY_OVERHEAD_BYTES > bytes_max:
            raise self._refused(Reason.UNCOMMITTED_FULL)

    def _append(self, kind: EntryKind, data: bytes) -> Entry:
        state = self._state
        entry = Entry(state.log.last_index + 1, state.term, kind, data)
        state.append([entry])
        self._uncommitted.append(entry)
        self._uncommitted_bytes += entry.size
        return entry

    def _continue_transfer(self) -> None:
        state = self._state
        if self.transferee is None:
            return
        progress = self.replication.progress[self.transferee]
        if progress.match_index == state.log.last_index:
            state.send(TimeoutNow(state.id, self.transferee, state.term))

    def _begin_round(self) -> None:
        self._heartbeat_elapsed = 0
        number = self.replication.begin_round()
        if self.has_committed_in_term:
            self.reads.begin_round(number, self._state.log.committed)
            self._confirm_reads()  # a single voter needs no answers

    def _confirm_reads(self) -> None:
        for read in self.reads.confirmed(self.replication.quorum_round()):
            self._answer(read)

    def _answer(self, read: PendingRead) -> None:
        state = self._state
        if read.source == state.id:
            self.confirmed.append((read.context, read.index))
        else:
            answer = ReadResponse(state.id, read.source, state.term, read.context, read.index)
            state.send(answer)

    def on_read_request(self, request: ReadRequest) -> None:
        """Queue a follower's read; over the limit the request is dropped, as if lost."""
        if not self.reads.is_full:
            self.reads.add(request.source, request.context)

    def _refused(self, reason: Reason) -> RaftRefused:
        return RaftRefused(reason, self._state.id)
