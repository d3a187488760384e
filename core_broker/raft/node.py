"""A node of a Raft group: events go in by methods, effects come out as `Ready` values.

Pure and deterministic: no clock, no I/O, no threads; time is counted in ticks, and the only random
choice, the length of an election timeout, uses the injected source. The same events produce the
same effects. One thread at a time may call a node.

    tick · receive · propose · change_membership · transfer_leadership · read   →  take_ready()
    persisted · applied                                                         ←  the caller

At most one Ready waits for `persisted`. The effects of events in between go into the next Ready:
one sync serves many events.
"""

import random

from core_broker.raft.config import RaftConfig
from core_broker.raft.election import Election, Outcome, decide_vote
from core_broker.raft.follower import Follower
from core_broker.raft.leader import Leader
from core_broker.raft.membership import ChangeKind
from core_broker.raft.messages import (
    AppendRequest,
    AppendResponse,
    Heartbeat,
    HeartbeatResponse,
    LeaderMessage,
    Message,
    ReadRequest,
    ReadResponse,
    SnapshotChunk,
    SnapshotResponse,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from core_broker.raft.model import HardState, LogView, Membership
from core_broker.raft.ready import Ready, Receipt, Status
from core_broker.raft.refusals import RaftBroken, RaftRefused, Reason
from core_broker.raft.state import NodeState, Role

#: Messages that promise entries or a snapshot on disk.
_PROMISES = (AppendResponse, SnapshotResponse)


class RaftNode:
    """One node. `view` shows the persisted log; `applied_index` is what the state machine has."""

    def __init__(
        self,
        config: RaftConfig,
        view: LogView,
        source: random.Random,
        applied_index: int | None = None,
    ) -> None:
        self._state = NodeState(config, view, source, applied_index)
        self._follower = Follower(self._state)
        self._leader: Leader | None = None
        self._election: Election | None = None
        self._role = Role.FOLLOWER
        self._told_hard_state = view.hard_state
        self._told_status = self.status
        self._waiting: Ready | None = None
        self._waiting_to = 0
        self._reads: list[tuple[int, int]] = []
        self._refused_reads: list[int] = []

    # -- questions --

    @property
    def status(self) -> Status:
        """Role, term and leader."""
        return Status(self._role, self._state.term, self._state.leader_id)

    @property
    def membership(self) -> Membership:
        """The membership that holds, committed or not."""
        return self._state.membership

    @property
    def committed_index(self) -> int:
        """Index of the last entry known to be committed."""
        return self._state.log.committed

    @property
    def applied_index(self) -> int:
        """Index of the last entry reported as applied."""
        return self._state.log.applied

    @property
    def last_index(self) -> int:
        """Index of the newest entry of the log, persisted or not."""
        return self._state.log.last_index

    def term_at(self, index: int) -> int | None:
        """Return the term of an entry, None when it is compacted or missing."""
        return self._state.log.term(index)

    def match_indexes(self) -> dict[int, int]:
        """Return the acknowledged index of each follower; empty unless leader."""
        if self._leader is None:
            return {}
        return {
            node_id: progress.match_index
            for node_id, progress in self._leader.replication.progress.items()
        }

    def membership_at(self, index: int) -> Membership:
        """Return the membership behind an entry, from the last snapshot on: for a new snapshot."""
        return self._state.memberships.at(index)

    # -- requests; each raises RaftRefused and then has no effect --

    def propose(self, data: bytes) -> Receipt:
        """Append an entry as the leader; `Receipt` says how to recognise its commit."""
        entry = self._as_leader().propose(data)
        return Receipt(entry.index, entry.term)

    def change_membership(self, kind: ChangeKind, node_id: int) -> Receipt:
        """Add or remove one node as the leader; the change holds at once."""
        entry = self._as_leader().change_membership(kind, node_id)
        self._settle()
        return Receipt(entry.index, entry.term)

    def transfer_leadership(self, target: int) -> None:
        """Hand the leadership to another voter; proposals are refused meanwhile."""
        self._as_leader().transfer(target)

    def read(self, context: int) -> None:
        """Ask for a linearizable read; the answer is in `Ready.reads` or `refused_reads`.

        The answer may be lost when this node is a follower: the caller sets a deadline. A context
        is never used twice, also not after a restart.
        """
        state = self._state
        if self._leader is not None:
            self._leader.read(state.id, context)
        elif state.leader_id is not None:
            state.send(ReadRequest(state.id, state.leader_id, state.term, context))
        else:
            raise RaftRefused(Reason.NO_LEADER, None)

    def campaign(self) -> None:
        """Start an election now, with a pre-vote when configured; nothing for a leader."""
        if self._leader is None and self._is_promotable():
            self._begin_election(is_pre_vote=self._state.config.pre_vote)

    # -- events --

    def tick(self) -> None:
        """Let one tick pass."""
        state = self._state
        if self._leader is not None:
            if not self._leader.tick():
                self._become_follower(state.term, None)
            self._settle()
            return
        state.election_elapsed += 1
        if state.election_elapsed >= state.election_timeout:
            state.reset_timer()
            self.campaign()

    def receive(self, message: Message) -> None:
        """Take a message of another node; messages for other nodes are ignored."""
        state = self._state
        if message.target != state.id or message.source == state.id:
            return
        if isinstance(message, ReadRequest):
            if self._leader is not None:
                self._leader.on_read_request(message)
        elif isinstance(message, ReadResponse):
            self._reads.append((message.context, message.index))
        elif self._has_valid_term(message):
            self._dispatch(message)
            self._settle()

    def persisted(self) -> None:
        """Accept that the last Ready is on disk, and its snapshot installed."""
        ready = self._waiting
        assert ready is not None, "take_ready comes first"
        self._waiting = None
        self._state.log.persisted(ready.snapshot, self._waiting_to)
        if ready.hard_state is not None:
            self._told_hard_state = ready.hard_state
        self._settle()

    def applied(self, index: int) -> None:
        """Accept that the state machine has applied the entries up to `index`."""
        self._state.log.applied_to(index)

    def compacted(self) -> None:
        """Accept that the view has a newer snapshot and may have removed entries."""
        self._state.memberships.compact(self._state.log.view.snapshot.index)

    # -- effects --

    def take_ready(self) -> Ready | None:
        """Return the next effects; None without any, or while a Ready waits for `persisted`."""
        if self._waiting is not None:
            return None
        state = self._state
        if self._leader is not None:
            self._leader.flush()
            self._reads += self._leader.confirmed
            self._leader.confirmed.clear()
        if not self._has_effects():
            return None
        hard_state = HardState(state.term, state.vote)
        is_new = hard_state != self._told_hard_state
        at_once = [
            each for each in state.messages if not is_new and not isinstance(each, _PROMISES)
        ]
        after = [each for each in state.messages if is_new or isinstance(each, _PROMISES)]
        status = self.status
        ready = Ready(
            messages=tuple(at_once),
            hard_state=hard_state if is_new else None,
            chunks=tuple(state.chunks),
            snapshot=state.log.pending_snapshot,
            entries=tuple(state.log.take_unwritten()),
            messages_after=tuple(after),
            committed=tuple(state.log.take_committed(state.config.apply_bytes_max)),
            reads=tuple(self._reads),
            refused_reads=tuple(self._refused_reads),
            status=status if status != self._told_status else None,
        )
        self._told_status = status
        state.messages.clear()
        state.chunks.clear()
        self._reads.clear()
        self._refused_reads.clear()
        self._waiting = ready
        self._waiting_to = state.log.last_index
        return ready

    def _has_effects(self) -> bool:
        state, log, told = self._state, self._state.log, self._told_status
        return bool(
            state.messages
            or state.chunks
            or log.pending_snapshot is not None
            or log.has_unwritten
            or log.has_committed
            or self._reads
            or self._refused_reads
            or (state.term, state.vote) != (self._told_hard_state.term, self._told_hard_state.vote)
            or (self._role, state.term, state.leader_id) != (told.role, told.term, told.leader_id)
        )

    # -- terms and roles --

    def _has_valid_term(self, message: Message) -> bool:
        """Compare terms; return whether the message is for the present term."""
        state = self._state
        if message.term > state.term:
            if isinstance(message, VoteRequest):
                if not message.is_transfer and self._has_live_leader():
                    return False
                if message.is_pre_vote:
                    return True
            elif isinstance(message, VoteResponse) and message.is_pre_vote and message.is_granted:
                return True
            is_from_leader = isinstance(message, LeaderMessage)
            self._become_follower(message.term, message.source if is_from_leader else None)
        elif message.term < state.term:
            self._answer_old_term(message)
            return False
        return True

    def _answer_old_term(self, message: Message) -> None:
        """Tell a leader or candidate of an old term about the new one."""
        state = self._state
        if isinstance(message, LeaderMessage):
            state.send(AppendResponse(state.id, message.source, state.term, 0, is_rejected=True))
        elif isinstance(message, VoteRequest):
            state.send(
                VoteResponse(state.id, message.source, state.term, False, message.is_pre_vote)
            )

    def _has_live_leader(self) -> bool:
        """Whether a leader is known and was heard of within the shortest election timeout."""
        state = self._state
        return (
            state.config.check_quorum
            and state.leader_id is not None
            and (self._leader is not None or state.election_elapsed < state.config.election_ticks)
        )

    def _dispatch(self, message: Message) -> None:
        state = self._state
        match message:
            case VoteRequest():
                decide_vote(state, message)
            case AppendRequest() | Heartbeat() | SnapshotChunk():
                self._follow(message)
            case VoteResponse() if self._election is not None:
                self._election.count(message)
                self._count_votes()
            case AppendResponse() if self._leader is not None:
                self._leader.on_append_response(message)
            case HeartbeatResponse() if self._leader is not None:
                self._leader.on_heartbeat_response(message)
            case SnapshotResponse() if self._leader is not None:
                self._leader.on_snapshot_response(message)
            case TimeoutNow() if self._leader is None and self._is_promotable():
                self._begin_election(is_pre_vote=False, is_transfer=True)
            case _:
                pass  # the message is for an earlier role

    def _follow(self, message: LeaderMessage) -> None:
        state = self._state
        if self._leader is not None:
            raise RaftBroken(
                f"Nodes {state.id} and {message.source} are both leaders of term {state.term}: a"
                " node lost its vote after it told it."
            )
        if self._role is not Role.FOLLOWER:
            self._become_follower(state.term, message.source)
        state.election_elapsed = 0
        state.leader_id = message.source
        if isinstance(message, AppendRequest):
            self._follower.on_append(message)
        elif isinstance(message, Heartbeat):
            self._follower.on_heartbeat(message)
        else:
            self._follower.on_chunk(message)

    def _become_follower(self, term: int, leader_id: int | None) -> None:
        state = self._state
        if self._leader is not None:
            self._refused_reads += self._leader.end()
            self._reads += self._leader.confirmed
            self._leader = None
        self._election = None
        self._role = Role.FOLLOWER
        if term > state.term:
            state.term = term
            state.vote = None
        state.leader_id = leader_id
        state.reset_timer()

    def _is_promotable(self) -> bool:
        """Whether this node may become leader."""
        state = self._state
        return state.id in state.membership.voters and state.log.pending_snapshot is None

    def _begin_election(self, *, is_pre_vote: bool, is_transfer: bool = False) -> None:
        state = self._state
        state.leader_id = None
        if is_pre_vote:
            self._role = Role.PRE_CANDIDATE
        else:
            self._role = Role.CANDIDATE
            state.term += 1
            state.vote = state.id
        state.reset_timer()
        self._election = Election(state, is_pre_vote=is_pre_vote, is_transfer=is_transfer)
        self._count_votes()

    def _count_votes(self) -> None:
        assert self._election is not None
        outcome = self._election.outcome
        if outcome is Outcome.LOST:
            self._become_follower(self._state.term, None)
        elif outcome is Outcome.WON and self._role is Role.PRE_CANDIDATE:
            self._begin_election(is_pre_vote=False)
        elif outcome is Outcome.WON:
            self._election = None
            self._role = Role.LEADER
            self._state.leader_id = self._state.id
            self._leader = Leader(self._state)

    def _settle(self) -> None:
        """Commit what a leader can, and end a leadership whose removal is committed."""
        if self._leader is not None:
            self._leader.advance()
            if self._leader.is_removed:
                self._leader.flush()  # the followers learn the commit
                self._become_follower(self._state.term, None)

    def _as_leader(self) -> Leader:
        if self._leader is None:
            raise RaftRefused(Reason.NOT_LEADER, self._state.leader_id)
        return self._leader
