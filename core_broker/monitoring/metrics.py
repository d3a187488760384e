"""The registry of metrics of one process, rendered as Prometheus text.

The code that counts owns the counters; sources read the counters at each scrape. Metric names are
the names of RocketMQ 5, so that existing dashboards work.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

#: Metric name -> help text. Names that end in _total are counters, other names are gauges.
METRIC_HELP = {
    "rocketmq_messages_in_total": "Messages stored",
    "rocketmq_messages_out_total": "Messages delivered to consumers",
    "rocketmq_throughput_in_total": "Bytes of the messages stored",
    "rocketmq_throughput_out_total": "Bytes of the messages delivered to consumers",
    "rocketmq_send_to_dlq_messages_total": "Messages moved to a dead-letter topic",
    "rocketmq_producer_connections": "Connections of producers",
    "rocketmq_consumer_connections": "Connections of consumers",
    "rocketmq_consumer_lag_messages": "Messages a group has not consumed",
    "rocketmq_consumer_lag_latency": "Age in ms of the oldest message a group has not consumed",
    "rocketmq_processor_watermark": "Requests held by the processor",
    "rocketmq_broker_permission": "brokerPermission in force",
    "rocketmq_topic_number": "Topics",
    "rocketmq_consumer_group_number": "Subscription groups",
    "rocketmq_storage_size": "Bytes of the commit log",
    "rocketmq_storage_flush_behind_bytes": "Bytes of the commit log not yet on disk",
    "rocketmq_storage_put_latency": "Put time in ms of the messages of a minute, by quantile",
    "rocketmq_storage_damaged_places": "Damaged places of the store, found since the start",
    "rocketmq_storage_repaired_units_total": "Damaged queue units rebuilt from the commit log",
    "rocketmq_storage_dispatch_behind_bytes": "Bytes of the commit log not yet in the queues",
    "rocketmq_storage_message_reserve_time": "Age in ms of the oldest message stored",
    "rocketmq_auth_refusals_total": "Requests refused by access control",
    "rocketmq_remoting_connections": "Open connections",
    "rocketmq_remoting_opened_total": "Connections opened",
    "rocketmq_remoting_tls_opened_total": "Connections opened with TLS",
    "rocketmq_tls_certificate_expiry_timestamp_seconds": "End of validity of the TLS certificate",
    "rocketmq_tls_reloads_total": "Reloads of the TLS files, by result",
    "rocketmq_remoting_closed_total": "Connections closed by the server, by reason",
    "rocketmq_remoting_failures_total": "Requests not handled, responses not expected, by reason",
    "rocketmq_event_loop_holds_total": "Steps that held the event loop over 50 ms, by cause",
    "rocketmq_flow_control_total": "Requests refused with SYSTEM_BUSY, by the reason in the remark",
    "rocketmq_ha_slaves": "Slaves that copy the commit log",
    "rocketmq_ha_slave_lag_bytes": "Bytes of the commit log that a slave has not acknowledged",
    "rocketmq_ha_slave_transferred_bytes_per_second": "Bytes sent to a slave in the last second",
    "rocketmq_ha_closed_connections_total": "Connections of slaves that ended, by reason",
    "rocketmq_ha_unreplicated_sends_total": "Sends answered without enough copies, by code",
    "rocketmq_ha_lag_bytes": "Bytes of the master's commit log that this slave does not have yet",
    "rocketmq_ha_received_bytes_total": "Bytes of the master's commit log received by this slave",
    "rocketmq_ha_connections_total": "Connections of this slave to its master",
    "rocketmq_ha_last_packet_timestamp": "Time of the master's last packet or heartbeat, ms",
    "rocketmq_ha_state": "State of this slave's connection to its master: 1 for the current one",
    "rocketmq_replica_role": "Role under controllers: 1 for the current one",
    "rocketmq_replica_epoch": "Epoch of the master that this broker is or follows; -1 for none",
    "rocketmq_replica_confirm_offset": "End of the messages that the whole sync-state set has",
    "rocketmq_replica_sync_state_set_size": "Members of the sync-state set, on the master",
    "rocketmq_replica_sync_state_set_epoch": "Number of the sync-state set, on the master",
    "rocketmq_replica_role_changes_total": "Changes of role or master of this broker",
    "rocketmq_replica_elections_won_total": "Elections that made this broker the master",
    "rocketmq_raft_role": "Role of this member of a Raft group: 1 for the current one",
    "rocketmq_raft_failed": "Whether a fault has ended this member of a Raft group",
    "rocketmq_raft_term": "Term of a Raft group, as this member knows",
    "rocketmq_raft_last_index": "Index of the last entry of the Raft log",
    "rocketmq_raft_commit_index": "Index of the last committed entry of the Raft log",
    "rocketmq_raft_applied_index": "Index of the last entry that the state machine has",
    "rocketmq_raft_snapshot_index": "Index of the last entry of the newest snapshot",
    "rocketmq_raft_log_bytes": "Bytes of the Raft log in memory",
    "rocketmq_raft_waiting_proposals": "Proposals that wait for a quorum",
    "rocketmq_raft_proposals_total": "Proposals at this member of a Raft group, by outcome",
    "rocketmq_raft_events_total": "Elections won, changes of leader, and snapshots, by event",
    "rocketmq_raft_proposal_latency": "Latency in ms of the last proposals, by quantile",
    "rocketmq_raft_peer_connected": "Whether the connection to a peer of the Raft group is open",
    "rocketmq_raft_peer_lag_entries": "Entries of the leader's log that a peer does not have yet",
    "rocketmq_raft_dropped_messages_total": "Raft messages to a peer that were dropped",
    "rocketmq_controller_role": "2: the controller leads its group, 1: it follows",
    "rocketmq_controller_active_broker_num": "Brokers that send heartbeats",
    "rocketmq_controller_election_total": "Elections of masters, by result",
    "rocketmq_controller_failovers_total": "Elections by this leader that replaced a master",
    "rocketmq_controller_broker_sets": "Broker sets that the controllers know",
    "rocketmq_controller_broker_sets_without_master": "Broker sets for which no master is elected",
    "rocketmq_controller_request_total": "Requests handled, by code",
    "rocketmq_namesrv_brokers": "Brokers registered",
    "rocketmq_namesrv_topics": "Topics with a route",
    "rocketmq_namesrv_requests_total": "Requests answered",
    "rocketmq_namesrv_refused_changes_total": "Changes of key-values or settings above a limit",
    "rocketmq_namesrv_connections": "Open connections",
}


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples: pairs of labels and value."""

    name: str
    samples: Sequence[tuple[Mapping[str, str], float]]


#: Counters of a remoting endpoint that count closed connections, by reason.
_CLOSED = (
    *("refused", "malformed", "oversize", "unfinished", "slow_readers", "idle", "unstored"),
    *("silent", "plain_refused", "tls_failed", "tls_displaced", "tls_unavailable"),
)
#: Counters of a remoting endpoint that count failed requests and unexpected responses.
_FAILURES = ("busy", "failed", "late_answers")


def remoting_families(connections: int, counters: Mapping[str, int]) -> Iterable[Family]:
    """Return the metrics of a listening endpoint from its counters by name."""
    yield Family("rocketmq_remoting_connections", [({}, connections)])
    yield Family("rocketmq_remoting_opened_total", [({}, counters["opened"])])
    yield Family("rocketmq_remoting_tls_opened_total", [({}, counters["tls_opened"])])
    for family, names in (
        ("rocketmq_remoting_closed_total", _CLOSED),
        ("rocketmq_remoting_failures_total", _FAILURES),
    ):
        yield Family(family, [({"reason": name}, counters[name]) for name in names])


def tls_families(state: Mapping[str, Any]) -> Iterable[Family]:
    """Return the metrics of a server's certificate from its state in /varz."""
    if (expires_s := state["certificate_expires_s"]) is not None:
        yield Family("rocketmq_tls_certificate_expiry_timestamp_seconds", [({}, expires_s)])
    results = (("loaded", "reloads"), ("failed", "reload_failures"))
    samples = [({"result": result}, float(state[name])) for result, name in results]
    yield Family("rocketmq_tls_reloads_total", samples)


def event_loop_family(holds: Mapping[tuple[str, str, str], int]) -> Family:
    """Return the metric of a loop's watchdog; the keys are step, request code and cause."""
    names = ("step", "request_code", "cause")
    samples = [(dict(zip(names, key, strict=True)), float(n)) for key, n in holds.items()]
    return Family("rocketmq_event_loop_holds_total", samples)


@dataclass(slots=True)
class Metrics:
    """The metrics of one process; `labels` are added to every sample."""

    labels: Mapping[str, str] = field(default_factory=dict)
    _sources: list[Callable[[], Iterable[Family]]] = field(default_factory=list)
    _registry: "CollectorRegistry | None" = None

    def source(self, read: Callable[[], Iterable[Family]]) -> None:
        """Add a function that reads counters; every scrape calls the function on the event loop."""
        self._sources.append(read)

    async def render(self) -> bytes:
        """Return the exposition text.

        Counters are read on the event loop, which owns them; the text is formatted in a thread.
        """
        families = [family for read in self._sources for family in read()]
        return await asyncio.to_thread(self._format, families)

    def _format(self, families: list[Family]) -> bytes:
        # Imported at the first scrape: the import takes longer than the rest of the start.
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry()
            ProcessCollector(registry=self._registry)
        scrape = CollectorRegistry()
        scrape.register(_ReadMetrics([self._metric(family) for family in families]))
        return generate_latest(scrape) + generate_latest(self._registry)

    def _metric(self, family: Family) -> "Metric":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kind = CounterMetricFamily if family.name.endswith("_total") else GaugeMetricFamily
        names = list(self.labels) + (list(family.samples[0][0]) if family.samples else [])
        metric = kind(family.name, METRIC_HELP[family.name], labels=names)
        for labels, value in family.samples:
            metric.add_metric([*self.labels.values(), *labels.values()], value)
        return metric


@dataclass(slots=True, eq=False)
class _ReadMetrics:
    """A Prometheus collector over values that were read before."""

    metrics: "list[Metric]"

    def collect(self) -> "list[Metric]":
        return self.metrics
