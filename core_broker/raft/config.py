"""Settings and limits of a node. All nodes of a group use the same values."""

from dataclasses import dataclass

from core_broker.raft.model import ENTRY_OVERHEAD_BYTES

#: Ticks without a leader's message before a follower starts an election, at least; the timeout of
#: an election is random, below twice this value.
ELECTION_TICKS = 10
#: Ticks between the heartbeats of a leader.
HEARTBEAT_TICKS = 1
#: Data of one entry, bytes.
PROPOSAL_BYTES_MAX = 1024 * 1024
#: Entries of one message, bytes; a larger single entry is sent alone.
MESSAGE_BYTES_MAX = 1024 * 1024
#: Unacknowledged messages with entries per follower.
IN_FLIGHT_MESSAGES_MAX = 64
#: Unacknowledged entries per follower, bytes.
IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024
#: Entries that a leader accepted and that are not committed, bytes.
UNCOMMITTED_BYTES_MAX = 64 * 1024 * 1024
#: Committed entries handed out at once, bytes.
APPLY_BYTES_MAX = 4 * 1024 * 1024
#: Reads that wait for the confirmation of the leadership.
PENDING_READS_MAX = 4096
#: One chunk of a snapshot, bytes.
SNAPSHOT_CHUNK_BYTES_MAX = 512 * 1024
#: A snapshot that a follower accepts, bytes.
SNAPSHOT_BYTES_MAX = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Id, timing in ticks, and limits of a node."""

    node_id: int
    election_ticks: int = ELECTION_TICKS
    heartbeat_ticks: int = HEARTBEAT_TICKS
    #: Ask for an election's chances before the term is raised: a node that returns from a
    #: partition does not depose a live leader.
    pre_vote: bool = True
    #: A leader without answers of a quorum steps down, and nodes with a live leader refuse votes.
    #: The rule serves availability; no read depends on the lease, so clocks may drift.
    check_quorum: bool = True
    proposal_bytes_max: int = PROPOSAL_BYTES_MAX
    message_bytes_max: int = MESSAGE_BYTES_MAX
    in_flight_messages_max: int = IN_FLIGHT_MESSAGES_MAX
    in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX
    uncommitted_bytes_max: int = UNCOMMITTED_BYTES_MAX
    apply_bytes_max: int = APPLY_BYTES_MAX
    pending_reads_max: int = PENDING_READS_MAX
    snapshot_chunk_bytes_max: int = SNAPSHOT_CHUNK_BYTES_MAX
    snapshot_bytes_max: int = SNAPSHOT_BYTES_MAX

    def __post_init__(self) -> None:
        """Raise ValueError for values that cannot work."""
        if self.node_id < 1:
            raise ValueError(f"node_id {self.node_id} must be positive")
        if not 0 < self.heartbeat_ticks < self.election_ticks:
            raise ValueError(
                f"heartbeat_ticks {self.heartbeat_ticks} must be positive and below"
                f" election_ticks {self.election_ticks}"
            )
        if self.uncommitted_bytes_max < self.proposal_bytes_max + ENTRY_OVERHEAD_BYTES:
            raise ValueError("uncommitted_bytes_max must hold one entry of proposal_bytes_max")
        if min(self.in_flight_messages_max, self.snapshot_chunk_bytes_max) < 1:
            raise ValueError("in_flight_messages_max and snapshot_chunk_bytes_max must be positive")
