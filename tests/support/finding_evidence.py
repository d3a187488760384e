"""Evidence for the tests of the rules: a healthy cluster, with parts to replace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from console.gateway import BrokerFailure, BrokerRef
from console.gateway.brokers.listing import BrokerRow, NameServer, broker_row
from console.gateway.brokers.settings import ClusterSettings, Setting
from console.gateway.groups.listing import GroupRow
from console.gateway.groups.metrics import GroupMetrics
from console.gateway.groups.progress import GroupQueue
from console.gateway.health.members import GroupDiagnosis, Member
from console.gateway.health.snapshot import Measured, Part, Runtime, Snapshot
from console.gateway.replicas.model import ReplicaSets
from console.gateway.topics.listing import TopicRow
from console.gateway.topics.metrics import TopicMetrics
from console.services.findings.finding import Finding, NotChecked
from console.services.findings.rules.rule import Evidence, Rule
from console.services.findings.samples import Sample, Samples
from console.services.findings.thresholds import Thresholds
from core_broker.remoting.bodies.inventory import GANTRY_CODES_KEY

NOW_MS = 1_800_000_000_000
MASTER = BrokerRef("broker-a", 0, "10.0.0.1:10911")
SLAVE = BrokerRef("broker-a", 1, "10.0.0.2:10911")
OTHER = BrokerRef("broker-b", 0, "10.0.0.3:10911")
#: An unreachable broker whose share of the evidence is missing.
LOST = BrokerFailure("broker-b", OTHER.addr, "connection refused")
#: The same with its last values.
STALE = replace(LOST, as_of_ms=NOW_MS - 60_000)


def broker(ref: BrokerRef = MASTER, *, disk: str = "0.5", **values: Any) -> BrokerRow:
    table = {
        "commitLogDiskRatio": disk,
        "commitLogDirCapacity": "Total : 100.0 GiB, Free : 50.0 GiB.",
    }
    return broker_row(ref, "DefaultCluster", table, **values)


def runtime(ref: BrokerRef = MASTER, *, ahead_s: int = 0, **table: str) -> Runtime:
    """A broker that started ten hours ago, by a clock that is ahead."""
    started_ms = NOW_MS - 36_000_000 + ahead_s * 1000
    texts = {
        "bootTimestamp": str(started_ms),
        "runtime": "[ 0 days, 10 hours, 0 minutes, 0 seconds ]",
        GANTRY_CODES_KEY: "60000,60001,60002",
        **table,
    }
    return Runtime(ref, texts, NOW_MS - 20, NOW_MS + 20)


def group(name: str = "billing", **values: Any) -> GroupRow:
    fields = {"system": False, "enabled": True, "retry_max": 16, "drift": False}
    return GroupRow(**{"name": name, **fields, "brokers": ("broker-a",), **values})


def metrics(**values: Any) -> GroupMetrics:
    """Metrics of a group that consumes `orders` in time."""
    fields: dict[str, Any] = {
        "lag": 0,
        "retry_lag": 0,
        "pending_since_ms": None,
        "rate": 1.0,
        "topics": ("orders",),
        "clients": 1,
        "dead_letters": 0,
    }
    return GroupMetrics(**{**fields, **values})


def behind(age_s: float = 600, **values: Any) -> GroupMetrics:
    return metrics(**{"lag": 1_234, "pending_since_ms": NOW_MS - int(age_s * 1000), **values})


def topic(name: str = "orders", **values: Any) -> TopicRow:
    fields: dict[str, Any] = {
        "kind": "normal",
        "perm": 6,
        "read_queues": 4,
        "write_queues": 4,
        "brokers": ("broker-a",),
        "order": False,
        "drift": False,
        "unread_queues": 0,
    }
    return TopicRow(**{"name": name, **fields, **values})


def topic_metrics(**values: Any) -> TopicMetrics:
    fields: dict[str, Any] = {
        "stored": 100,
        "total": 100,
        "last_write_ms": NOW_MS - 1000,
        "in_rate": 1.0,
        "lags": {"billing": 0},
    }
    return TopicMetrics(**{**fields, **values})


def measured(by_name: Mapping[str, Any], left_out: int = 0) -> Part[Measured[Any]]:
    return Part(Measured(by_name, dict.fromkeys(by_name, NOW_MS), left_out))


def settings(**values: Mapping[str, str]) -> Part[ClusterSettings]:
    found = tuple(Setting(name, each, None) for name, each in values.items())
    return Part(ClusterSettings(("broker-a", "broker-b"), (), found, ""))


def snapshot(**parts: Any) -> Snapshot:
    """A healthy cluster with one broker, topic and group."""
    healthy: dict[str, Any] = {
        "brokers": Part((broker(),)),
        "runtimes": Part((runtime(),)),
        "name_servers": Part((NameServer("10.0.0.9:9876", {}, None),)),
        "settings": settings(autoCreateTopicEnable={"broker-a": "false"}),
        "replication": Part({}),
        "replica_sets": Part(ReplicaSets((), ())),
        "topics": Part((topic(),)),
        "topic_metrics": measured({"orders": topic_metrics()}),
        "groups": Part((group(),)),
        "group_metrics": measured({"billing": metrics()}),
    }
    return Snapshot(taken_ms=NOW_MS, **{**healthy, **parts})


def sample(age_s: float = 60, **values: Any) -> Sample:
    fields: dict[str, Any] = {"dead_letters": {}, "complete": True, "disks": {}, "offsets": {}}
    fields |= {"lags": {}, "owners": {}}
    return Sample(NOW_MS - int(age_s * 1000), **{**fields, **values})


def samples(*found: Sample) -> Samples:
    kept = Samples()
    for each in found:
        kept.add(each)
    return kept


def member(client_id: str, expression: str = "*", queues: int | None = 2) -> Member:
    """A member with a subscription to `orders`; `queues` None: the client did not answer."""
    if queues is None:
        return Member(client_id, None, None)
    owned = frozenset(("orders", "broker-a", number) for number in range(queues))
    return Member(client_id, frozenset({("orders", "TAG", expression)}), owned)


def queue(queue_id: int, lag: int, offset: int = 10) -> GroupQueue:
    return GroupQueue("orders", "broker-a", queue_id, offset + lag, offset, None)


def diagnosis(*members: Member, **values: Any) -> GroupDiagnosis:
    fields: dict[str, Any] = {"not_asked": 0, "broadcasting": False, "queues": ()}
    return GroupDiagnosis("billing", NOW_MS, members, **{**fields, **values})


def evidence(
    found: Snapshot | None = None,
    *,
    kept: Samples | None = None,
    diagnosed: GroupDiagnosis | None = None,
    waiting: int = 0,
    **thresholds: int,
) -> Evidence:
    return Evidence(
        found or snapshot(),
        samples(sample()) if kept is None else kept,
        Thresholds(**thresholds),
        {} if diagnosed is None else {diagnosed.group: diagnosed},
        waiting,
    )


def run(rule: Rule, given: Evidence) -> tuple[list[Finding], list[NotChecked]]:
    """Return the findings and the parts that were not checked."""
    results = list(rule.check(given))
    return (
        [each for each in results if isinstance(each, Finding)],
        [each for each in results if isinstance(each, NotChecked)],
    )


def finding(rule: Rule, given: Evidence) -> Finding:
    """Return the only finding; everything was checked."""
    findings, missing = run(rule, given)
    assert not missing, [str(each.reason) for each in missing]
    (one,) = findings
    assert one.rule == rule.id
    return one


def passes(rule: Rule, given: Evidence) -> bool:
    """Return True when the rule checked everything and found nothing."""
    return run(rule, given) == ([], [])


def reasons(rule: Rule, given: Evidence) -> list[str]:
    """Return why the rule checked nothing."""
    findings, missing = run(rule, given)
    assert findings == []
    return [f"{each.where} {each.reason}".strip() for each in missing]
