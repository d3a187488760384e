"""State and counters of a member as values, and as metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core_broker.monitoring.metrics import Family
from core_broker.raft.state import Role


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """What a member knows about another one."""

    is_connected: bool
    #: Messages that got lost without a connection or in a full queue.
    dropped: int
    #: Index up to which the other log is known to be equal; None unless this member leads.
    match_index: int | None


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """State of a member at one moment."""

    role: Role
    term: int
    leader_id: int | None
    voters: tuple[int, ...]
    learners: tuple[int, ...]
    last_index: int
    commit_index: int
    applied_index: int
    snapshot_index: int
    #: Entries in memory, bytes.
    log_bytes: int
    #: Proposals that wait for their outcome.
    waiting: int
    peers: Mapping[int, PeerStatus]
    #: Proposals by outcome: applied, not_leader, full, uncertain.
    outcomes: Counter[str]
    #: elections_won, leader_changes, snapshots_taken, snapshots_installed.
    events: Counter[str]
    #: Latencies of the last applied proposals, ms, unordered.
    latencies_ms: tuple[float, ...]
    #: Why the member stopped by itself; None while it works.
    failure: str | None

    def latency_ms(self, quantile: float) -> float | None:
        """Return a quantile of the latencies, None without any."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(int(quantile * len(ordered)), len(ordered) - 1)] if ordered else None


def raft_families(status: MemberStatus) -> Iterator[Family]:
    """Return the metrics of a member."""
    roles = [({"role": role.value}, float(role is status.role)) for role in Role]
    yield Family("rocketmq_raft_role", roles)
    yield Family("rocketmq_raft_failed", [({}, float(status.failure is not None))])
    for name in ("term", "last_index", "commit_index", "applied_index", "snapshot_index"):
        yield Family(f"rocketmq_raft_{name}", [({}, float(getattr(status, name)))])
    yield Family("rocketmq_raft_log_bytes", [({}, float(status.log_bytes))])
    yield Family("rocketmq_raft_waiting_proposals", [({}, float(status.waiting))])
    for name, counts, label in (
        ("rocketmq_raft_proposals_total", status.outcomes, "outcome"),
        ("rocketmq_raft_events_total", status.events, "event"),
    ):
        yield Family(name, [({label: each}, float(count)) for each, count in counts.items()])
    quantiles = [(each, status.latency_ms(each)) for each in (0.5, 0.99)]
    yield Family(
        "rocketmq_raft_proposal_latency",
        [({"quantile": str(each)}, value) for each, value in quantiles if value is not None],
    )
    peers = status.peers.items()
    yield Family(
        "rocketmq_raft_peer_connected",
        [({"peer": str(each)}, float(peer.is_connected)) for each, peer in peers],
    )
    yield Family(
        "rocketmq_raft_dropped_messages_total",
        [({"peer": str(each)}, float(peer.dropped)) for each, peer in peers],
    )
    yield Family(
        "rocketmq_raft_peer_lag_entries",
        [
            ({"peer": str(each)}, float(max(status.last_index - peer.match_index, 0)))
            for each, peer in peers
            if peer.match_index is not None
        ],
    )
