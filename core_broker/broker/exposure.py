"""Metrics and internal tables of a broker, for the side port.

Metrics have the names of RocketMQ 5, so that existing dashboards work.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from core_broker.broker.access_control import AccessControl
from core_broker.fastpath import has_kernel
from core_broker.monitoring.metrics import (
    Family,
    Metrics,
    event_loop_family,
    remoting_families,
    tls_families,
)
from core_broker.processors.context import BrokerContext
from core_broker.processors.table import RequestTable
from core_broker.remoting.server import RemotingServer
from core_broker.state import statistics as names

if TYPE_CHECKING:
    from core_broker.fastpath.compiled import CompiledFastPath
    from core_broker.ha.slave import Slave

Samples = list[tuple[dict[str, str], float]]


class Exposure:
    """Reads the broker's tables at each request; stores no copy."""

    def __init__(
        self,
        ctx: BrokerContext,
        requests: RequestTable,
        server: RemotingServer,
        compiled: "CompiledFastPath | None",
        access: AccessControl | None,
        slave: Callable[[], "Slave | None"],
        replica_set: Callable[[], dict[str, Any] | None],
    ) -> None:
        self._ctx = ctx
        self._access = access
        self._slave = slave
        self._replica_set = replica_set
        self._compiled = compiled
        self._requests = requests
        self._server = server

    def add_metrics(self, metrics: Metrics) -> None:
        """Register the metrics of the broker."""
        config = self._ctx.config
        metrics.labels = {
            "cluster": config.broker_cluster_name,
            "node_type": "broker",
            "node_id": config.broker_name,
        }
        for source in (self._traffic, self._tables, self._storage, self._remoting):
            metrics.source(source)

    def varz(self) -> dict[str, Any]:
        """Return the internal counters and tables for /varz."""
        ctx, compiled, slave = self._ctx, self._compiled, self._slave()
        return {
            "broker": {"name": ctx.config.broker_name, "addr": ctx.addr, "boot_ms": ctx.boot_ms},
            "store": asdict(ctx.store.stats())
            | {"writable": ctx.store.writable, "read_only_reason": ctx.store.read_only_reason},
            "remoting": asdict(self._server.counters)
            | {
                "connections": len(self._server.connections),
                "unfinished_bytes": self._server.unfinished_bytes,
                "unsent_bytes": self._server.unsent_bytes,
            },
            "tls": self._server.tls.varz() if self._server.tls else {"mode": "disabled"},
            "event_loop_holds": self._server.watchdog.varz(),
            "kernel": {
                "is_compiled": has_kernel(),
                "messages_sent": compiled.sends.messages if compiled else 0,
                "messages_pulled": compiled.pulls.taker.messages if compiled else 0,
            },
            "flow_control": dict(self._requests.flow.refused),
            "access_control": self._access.varz() if self._access else None,
            "replication": slave.varz() if slave else None,
            "replica_set": self._replica_set(),
            "held_pulls": len(self._requests.held_pulls),
            "waiting_for_clients": len(ctx.tasks),
            "topics": len(ctx.topics),
            "groups": len(ctx.groups),
            "offsets": len(ctx.offsets),
            "locks": len(ctx.locks),
            "consumers": ctx.consumers.connections,
            "producers": ctx.producers.connections,
            "delay_offsets": {
                str(level): ctx.delay_progress.offset(level) for level in ctx.delay_progress.levels
            },
        }

    def _traffic(self) -> Iterator[Family]:
        totals = self._ctx.statistics.totals()
        for family, name in (
            ("rocketmq_messages_in_total", names.TOPIC_PUT_NUMS),
            ("rocketmq_throughput_in_total", names.TOPIC_PUT_SIZE),
        ):
            yield Family(family, _by_topic(totals.get(name, {}).items()))
        for family, name in (
            ("rocketmq_messages_out_total", names.GROUP_GET_NUMS),
            ("rocketmq_throughput_out_total", names.GROUP_GET_SIZE),
        ):
            yield Family(family, _by_group(totals.get(name, {}).items()))
        buried = totals.get(names.DLQ_PUT_NUMS, {}).items()
        yield Family(
            "rocketmq_send_to_dlq_messages_total",
            [({"consumer_group": group}, float(count)) for group, count in buried],
        )

    def _tables(self) -> Iterator[Family]:
        ctx = self._ctx
        yield Family("rocketmq_producer_connections", [({}, ctx.producers.connections)])
        yield Family("rocketmq_consumer_connections", _connections(ctx))
        yield Family("rocketmq_consumer_lag_messages", _by_group(_lags(ctx).items()))
        waiting = len(self._requests.held_pulls)
        yield Family("rocketmq_processor_watermark", [({"processor": "pull"}, waiting)])
        yield Family("rocketmq_broker_permission", [({}, ctx.config.broker_permission)])
        yield Family("rocketmq_topic_number", [({}, len(ctx.topics))])
        yield Family("rocketmq_consumer_group_number", [({}, len(ctx.groups))])

    def _storage(self) -> Iterator[Family]:
        stats = self._ctx.store.stats()
        size = stats.commit_log_max_offset - stats.commit_log_min_offset
        yield Family("rocketmq_storage_size", [({}, size)])
        yield Family("rocketmq_storage_flush_behind_bytes", [({}, stats.to_flush_bytes)])
        quantiles = ("0.99", stats.put_p99_ms), ("0.999", stats.put_p999_ms)
        yield Family(
            "rocketmq_storage_put_latency",
            [({"quantile": each}, value) for each, value in quantiles if value is not None],
        )
        yield Family("rocketmq_storage_damaged_places", [({}, stats.damaged_places)])
        yield Family("rocketmq_storage_repaired_units_total", [({}, stats.repaired_units)])
        oldest_ms = stats.earliest_message_timestamp
        age_ms = self._ctx.now_ms() - oldest_ms if oldest_ms > 0 else 0
        yield Family("rocketmq_storage_message_reserve_time", [({}, age_ms)])

    def _remoting(self) -> Iterator[Family]:
        yield from remoting_families(len(self._server.connections), asdict(self._server.counters))
        if self._server.tls is not None:
            yield from tls_families(self._server.tls.varz())
        yield event_loop_family(self._server.watchdog.counts())
        refused = self._requests.flow.refused.items()
        yield Family("rocketmq_flow_control_total", [({"reason": name}, n) for name, n in refused])
        if self._access is not None:
            denied = self._access.refusals.counts.items()
            yield Family("rocketmq_auth_refusals_total", [({"reason": k}, n) for k, n in denied])


def _by_topic(counts: Iterable[tuple[str, int]]) -> Samples:
    return [({"topic": topic}, float(count)) for topic, count in counts]


def _by_group(counts: Iterable[tuple[str, int]]) -> Samples:
    samples: Samples = []
    for key, count in counts:
        topic, _, group = key.rpartition("@")
        samples.append(({"topic": topic, "consumer_group": group}, float(count)))
    return samples


def _connections(ctx: BrokerContext) -> Samples:
    samples: Samples = []
    for name in ctx.consumers.groups:
        group = ctx.consumers.group(name)
        if group is not None:
            samples.append(({"consumer_group": name}, float(len(group.members))))
    return samples


def _lags(ctx: BrokerContext) -> Counter[str]:
    """Return the consumer lag in messages, by topic@group."""
    lags: Counter[str] = Counter()
    for group, topic, queue_id, offset in ctx.offsets.rows():
        lags[f"{topic}@{group}"] += max(ctx.store.queue_range(topic, queue_id)[1] - offset, 0)
    return lags
