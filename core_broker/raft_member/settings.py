"""Settings and limits of a running member of a Raft group."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core_broker.raft.config import RaftConfig
from core_broker.raft_member.frames import CLUSTER_ID_CHARS_MAX, FRAME_BYTES_MAX
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls

#: Length of a tick, seconds: the interval of heartbeats, and a tenth of the shortest election
#: timeout.
TICK_S = 0.1
#: Maximum wait for the outcome of a proposal, a membership change or a barrier, seconds.
OUTCOME_TIMEOUT_S = 5.0
#: Applied entries behind the last snapshot after which the next snapshot is taken.
SNAPSHOT_ENTRIES = 10_000
#: The same in bytes.
SNAPSHOT_BYTES = 64 * 1024 * 1024
#: Entries before a snapshot that stay in memory for followers that are a little behind.
KEPT_ENTRIES = 1_000
#: The same in bytes.
KEPT_BYTES_MAX = 8 * 1024 * 1024
#: Committed entries applied between two events of the loop, bytes.
APPLIED_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class MemberAddress:
    """Where a member listens for other members, and where it serves its clients."""

    host: str
    port: int
    #: Address for clients, "host:port", as NotLeader names it.
    service: str


@dataclass(frozen=True, kw_only=True)
class MemberSettings:
    """Settings of one member. Raises ValueError for values that cannot work."""

    #: Name of the group; members with another name are refused.
    cluster_id: str
    node_id: int
    #: The members by node id, also those that may join later; the own address is the one to bind.
    addresses: Mapping[int, MemberAddress]
    folder: Path
    #: The voters of a new group, the same on all of them; None for all of `addresses`; empty for a
    #: member that joins a running group. Ignored once the folder has a state.
    initial_voters: tuple[int, ...] | None = None
    #: Address to listen on; empty for the host of the own address.
    bind_host: str = ""
    #: Addresses and CIDR blocks that may connect; empty for the hosts of `addresses`.
    allowed_peers: tuple[str, ...] = ()
    #: TLS of the own port and of connections to other members; None for none.
    server_tls: ServerTls | None = None
    client_tls: ClientTls | None = None
    tick_s: float = TICK_S
    outcome_timeout_s: float = OUTCOME_TIMEOUT_S
    snapshot_entries: int = SNAPSHOT_ENTRIES
    snapshot_bytes: int = SNAPSHOT_BYTES
    kept_entries: int = KEPT_ENTRIES
    kept_bytes_max: int = KEPT_BYTES_MAX
    #: Limits of the core; None for the usual ones. All members use the same values.
    core: RaftConfig | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 < len(self.cluster_id) <= CLUSTER_ID_CHARS_MAX:
            raise ValueError(f"cluster_id must have 1 to {CLUSTER_ID_CHARS_MAX} characters")
        if self.node_id not in self.addresses:
            raise ValueError(f"addresses must name this member, {self.node_id}")
        if self.core is not None and self.core.node_id != self.node_id:
            raise ValueError(f"core is for node {self.core.node_id}, not for {self.node_id}")
        config = self.config
        largest = max(
            *(config.message_bytes_max, config.proposal_bytes_max, config.snapshot_chunk_bytes_max)
        )
        if 2 * largest > FRAME_BYTES_MAX:  # MessagePack adds up to 35 % to the smallest entries
            raise ValueError(f"messages of {largest} bytes exceed half of {FRAME_BYTES_MAX}")
        if (
            min(self.tick_s, self.outcome_timeout_s, self.snapshot_entries, self.snapshot_bytes)
            <= 0
        ):
            raise ValueError("timings and bounds of snapshots must be positive")

    @property
    def own_address(self) -> MemberAddress:
        """The address of this member."""
        return self.addresses[self.node_id]

    @property
    def voters(self) -> tuple[int, ...]:
        """The voters of a new group, sorted."""
        voters = self.addresses if self.initial_voters is None else self.initial_voters
        return tuple(sorted(voters))

    @property
    def config(self) -> RaftConfig:
        """The settings of the core."""
        return self.core or RaftConfig(self.node_id, apply_bytes_max=APPLIED_BYTES_MAX)

    @property
    def election_timeout_s(self) -> float:
        """The longest election timeout, seconds."""
        return 2 * self.config.election_ticks * self.tick_s
