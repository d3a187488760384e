"""Rules about brokers, name servers, settings and topics: each fires, passes, and says what it
could not check."""

from dataclasses import replace
from typing import Any

import pytest

from console.gateway.brokers.listing import NameServer
from console.gateway.engine.known_brokers import BrokerRef
from console.gateway.health.snapshot import Part, Snapshot
from console.gateway.replicas.model import (
    CONTROLLER,
    Controller,
    ControllerGroup,
    Replica,
    ReplicaSet,
    ReplicaSets,
)
from console.services.findings.finding import Finding, Severity, Target
from console.services.findings.rules import RULES, brokers, replication, settings, topics
from console.services.findings.rules.brokers import DAY_MS, disk_of
from console.services.findings.rules.rule import Rule
from console.services.findings.samples import SAMPLE_EVERY_MS, SAMPLES_MAX, Samples
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.bodies.inventory import GANTRY_TLS_EXPIRY_KEY
from core_broker.remoting.bodies.stats import HAConnectionRuntimeInfo
from tests.support import finding_evidence as given
from tests.support.finding_evidence import (
    MASTER,
    NOW_MS,
    OTHER,
    SLAVE,
    evidence,
    finding,
    passes,
    reasons,
    snapshot,
)

BROKER_A = Target("broker", "broker-a")


def test_a_healthy_cluster_has_no_finding() -> None:
    for rule in RULES:
        assert passes(rule, evidence()), rule.id


def test_a_cluster_without_answers_is_not_healthy() -> None:
    parts = ("brokers", "runtimes", "name_servers", "settings", "replication", "topics")
    sets = ("replica_sets",)
    metrics = ("topic_metrics", "groups", "group_metrics")
    lost = snapshot(**dict.fromkeys((*parts, *sets, *metrics), Part(None, (given.LOST,))))
    for rule in RULES:
        findings, missing = given.run(rule, evidence(lost, waiting=1))
        assert findings == []
        assert missing or rule.id in {"queues-skewed", "console-disk-full"}, rule.id


def test_a_master_that_is_down_is_critical_and_a_slave_a_warning() -> None:
    down = {"state": "down", "reason": "connection refused", "contact_ms": NOW_MS - 5_000}
    found = snapshot(brokers=Part((given.broker(**down), given.broker(SLAVE, **down))))
    master, slave = given.run(brokers.broker_down, evidence(found))[0]
    assert (master.severity, slave.severity) == (Severity.CRITICAL, Severity.WARNING)
    assert (master.target, slave.target) == (BROKER_A, Target("broker", "broker-a:1"))
    assert master.since_ms == NOW_MS - 5_000
    assert slave.concerns(BROKER_A)
    assert "connection refused" in str(master.text)


def test_a_broker_without_registration_is_a_warning() -> None:
    found = snapshot(brokers=Part((given.broker(state="unregistered"),)))
    one = finding(brokers.broker_down, evidence(found))
    assert (one.severity, one.since_ms) == (Severity.WARNING, None)


def test_a_name_server_that_is_down_is_critical_when_it_is_the_last() -> None:
    lost = NameServer("10.0.0.8:9876", {}, "connection refused")
    up = NameServer("10.0.0.9:9876", {}, None)
    one = finding(brokers.name_server_down, evidence(snapshot(name_servers=Part((lost, up)))))
    assert (one.severity, one.target.name) == (Severity.WARNING, "10.0.0.8:9876")
    one = finding(brokers.name_server_down, evidence(snapshot(name_servers=Part((lost,)))))
    assert one.severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("disk", "severity"),
    [("0.75", Severity.WARNING), ("0.9", Severity.CRITICAL), ("0.74", None)],
)
def test_the_usage_of_a_disk(disk: str, severity: Severity | None) -> None:
    found, missing = given.run(
        brokers.disk_full, evidence(snapshot(brokers=Part((given.broker(disk=disk),))))
    )
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert missing == []


def test_a_disk_that_fills_is_a_warning_before_the_threshold() -> None:
    row = given.broker(disk="0.60")
    then = disk_of(given.broker(disk="0.59"))
    assert then is not None
    kept = given.samples(given.sample(600, disks={MASTER.addr: then}))
    found = snapshot(brokers=Part((row,)))
    one = finding(brokers.disk_full, evidence(found, kept=kept))
    # 1 % in ten minutes: 40 % in 400 minutes.
    assert one.values["full_in_h"] == pytest.approx(400 / 60, rel=0.01)
    assert "6 h" in str(one.text)
    assert passes(brokers.disk_full, evidence(found, kept=kept, disk_hours=6))
    young = given.samples(given.sample(60, disks={MASTER.addr: then}))
    assert passes(brokers.disk_full, evidence(found, kept=young))


def test_an_unknown_usage_is_not_checked() -> None:
    row = replace(given.broker(), disk_ratio=None)
    (reason,) = reasons(brokers.disk_full, evidence(snapshot(brokers=Part((row,)))))
    assert reason == "broker-a The broker does not report the usage of its disk."


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(8, "at least 7 s"), (-60, "at least 58 s"), (5, ""), (-5, "")]
)
def test_the_clock_of_a_broker(ahead_s: int, words: str) -> None:
    found = snapshot(runtimes=Part((given.runtime(ahead_s=ahead_s),)))
    if not words:
        assert passes(brokers.clock_offset, evidence(found))
        return
    one = finding(brokers.clock_offset, evidence(found))
    assert words in str(one.text)
    assert ("ahead" if ahead_s > 0 else "behind") in str(one.text)


@pytest.mark.parametrize("text", ["", "ten hours", "[ -1 days ]"])
def test_a_broker_without_a_readable_clock_is_not_checked(text: str) -> None:
    found = snapshot(runtimes=Part((given.runtime(runtime=text),)))
    (reason,) = reasons(brokers.clock_offset, evidence(found))
    assert reason == "broker-a The broker does not report its clock."


@pytest.mark.parametrize(
    ("days", "severity"),
    [(31, None), (29, Severity.WARNING), (2, Severity.CRITICAL), (-1, Severity.CRITICAL)],
)
def test_the_certificates_of_brokers_and_name_servers(days: int, severity: Severity | None) -> None:
    end_ms = NOW_MS + days * DAY_MS
    of_broker = snapshot(runtimes=Part((given.runtime(**{GANTRY_TLS_EXPIRY_KEY: str(end_ms)}),)))
    server = NameServer("10.0.0.9:9876", {}, None, end_ms)
    for found in (of_broker, snapshot(name_servers=Part((server,)))):
        if severity is None:
            assert passes(brokers.certificate_expiry, evidence(found))
            continue
        one = finding(brokers.certificate_expiry, evidence(found))
        assert one.severity is severity
        assert one.since_ms == (end_ms if days < 0 else None)


def test_a_broker_of_apache_does_not_report_its_certificate() -> None:
    answer = given.runtime()
    apache = replace(answer, table={key: answer.table[key] for key in ("bootTimestamp", "runtime")})
    (reason,) = reasons(brokers.certificate_expiry, evidence(snapshot(runtimes=Part((apache,)))))
    assert reason == "broker-a The broker does not report its certificate."


def replicating(*diffs: int) -> Part[dict[str, HARuntimeInfo]]:
    links = [
        HAConnectionRuntimeInfo(addr=f"10.0.0.{n}:1", diff=diff) for n, diff in enumerate(diffs)
    ]
    return Part({"broker-a": HARuntimeInfo(ha_connection_info=links)})


def test_a_master_without_its_slave() -> None:
    rows = Part((given.broker(), given.broker(SLAVE)))
    one = finding(
        replication.replica_missing, evidence(snapshot(brokers=rows, replication=replicating()))
    )
    assert (one.severity, one.target) == (Severity.CRITICAL, BROKER_A)
    assert str(one.text) == "Connected slaves: 0 of 1"
    found = snapshot(brokers=rows, replication=replicating(0))
    assert passes(replication.replica_missing, evidence(found))


def test_a_sync_master_needs_a_slave() -> None:
    roles = given.settings(brokerRole={"broker-a": "SYNC_MASTER", "broker-b": "ASYNC_MASTER"})
    one = finding(replication.replica_missing, evidence(snapshot(settings=roles)))
    assert one.target == BROKER_A


@pytest.mark.parametrize("rule", [replication.replica_missing, replication.replica_behind])
def test_a_broker_without_the_request_is_not_checked(rule: Rule) -> None:
    refused = replace(given.LOST, reason="request type 907 not supported", kind="refused")
    (reason,) = reasons(rule, evidence(snapshot(replication=Part({}, (refused,)))))
    assert "907" in reason


def test_a_slave_behind_its_master() -> None:
    found = snapshot(replication=replicating(0, 65 * 2**20))
    one = finding(replication.replica_behind, evidence(found, replica_mb=64))
    assert one.values["behind_bytes"] == 65 * 2**20
    assert passes(replication.replica_behind, evidence(found, replica_mb=65))


def replica_state(*, master_up: bool = True, leads: bool = True, second_up: bool = True) -> Any:
    def replica(number: int, role: Any, state: Any) -> Replica:
        ref = BrokerRef("broker-a", number, f"10.0.0.{number}:10911")
        values = (None, None, None, True, True, 1)
        return Replica(ref, number, role, state, *values)

    role: Any = "leader" if leads else "follower"
    controllers = (
        Controller("10.0.0.1:9878", "n0", role, None, None),
        Controller("10.0.0.2:9878", None, "unknown", None, None if second_up else "refused"),
    )
    replicas = (replica(1, "master", "up" if master_up else "down"), replica(2, "slave", "up"))
    found = ReplicaSet("broker-a", "C1", "controllers", replicas)
    return ReplicaSets((ControllerGroup(controllers, ("broker-a",)),), (found,))


def test_a_replica_set_needs_a_master() -> None:
    rule = replication.replica_set_without_master
    assert passes(rule, evidence(snapshot(replica_sets=Part(replica_state()))))
    lost = replica_state(master_up=False)
    one = finding(rule, evidence(snapshot(replica_sets=Part(lost))))
    assert (one.severity, one.target) == (Severity.CRITICAL, BROKER_A)
    assert "1 of 2" in str(one.text)
    single = ReplicaSets((), (replace(lost.sets[0], mode="single"),))
    assert passes(rule, evidence(snapshot(replica_sets=Part(single)))), "broker-down says it"


def test_controllers_need_a_leader_and_answer() -> None:
    quorum, down = replication.controllers_without_quorum, replication.controller_down
    healthy = evidence(snapshot(replica_sets=Part(replica_state())))
    assert passes(quorum, healthy)
    assert passes(down, healthy)
    failed = replace(given.LOST, broker=CONTROLLER)
    state = replica_state(leads=False, second_up=False)
    lost = evidence(snapshot(replica_sets=Part(state, (failed,))))
    one = finding(quorum, lost)
    assert (one.severity, one.target.kind) == (Severity.CRITICAL, "controller")
    assert one.related == (BROKER_A,)
    one = finding(down, lost)
    assert (one.severity, one.target.name) == (Severity.WARNING, "10.0.0.2:9878")


@pytest.mark.parametrize(
    "rule",
    [
        replication.replica_set_without_master,
        replication.controllers_without_quorum,
        replication.controller_down,
    ],
)
def test_unknown_replica_sets_are_not_checked(rule: Rule) -> None:
    assert reasons(rule, evidence(snapshot(replica_sets=Part(None, (given.LOST,)))))


def test_different_settings_of_brokers_are_advice() -> None:
    values = {"broker-a": "ASYNC_FLUSH", "broker-b": "SYNC_FLUSH"}
    one = finding(
        settings.settings_drift, evidence(snapshot(settings=given.settings(flushDiskType=values)))
    )
    assert (one.severity, one.target) == (Severity.ADVICE, Target("setting", "flushDiskType"))
    assert one.values["brokers"] == values
    own = given.settings(brokerName=values, secretKey=values)
    assert passes(settings.settings_drift, evidence(snapshot(settings=own)))


def test_automatic_topics_are_advice() -> None:
    values = {"broker-a": "true", "broker-b": "false"}
    found = snapshot(settings=given.settings(autoCreateTopicEnable=values))
    assert finding(settings.auto_create, evidence(found)).values == {"brokers": ["broker-a"]}


def with_topic(**metrics: object) -> Snapshot:
    return snapshot(topic_metrics=given.measured({"orders": given.topic_metrics(**metrics)}))


def test_a_topic_without_a_group_is_a_warning() -> None:
    one = finding(topics.topic_without_consumers, evidence(with_topic(lags={})))
    assert (one.severity, one.target) == (Severity.WARNING, Target("topic", "orders"))
    assert str(one.text).startswith("No consumer group reads the topic")


def test_a_topic_whose_groups_are_all_offline_is_a_warning() -> None:
    idle = given.measured({"billing": given.behind(clients=0)})
    found = replace(with_topic(lags={"billing": 7}), group_metrics=idle)
    one = finding(topics.topic_without_consumers, evidence(found))
    assert one.concerns(Target("group", "billing"))
    unknown = given.measured({"billing": given.behind(clients=None)})
    assert passes(topics.topic_without_consumers, evidence(replace(found, group_metrics=unknown)))


@pytest.mark.parametrize(
    "metrics",
    [{}, {"lags": {}, "stored": 0}, {"lags": {}, "last_write_ms": None},
     {"lags": {}, "last_write_ms": NOW_MS - 25 * 3_600_000}, {"lags": {"billing": 7}}],
)  # fmt: skip
def test_a_topic_needs_no_consumer(metrics: dict[str, object]) -> None:
    assert passes(topics.topic_without_consumers, evidence(with_topic(**metrics)))


def test_topics_without_metrics_are_not_checked() -> None:
    found = snapshot(topic_metrics=given.measured({}, left_out=3))
    (reason,) = reasons(topics.topic_without_consumers, evidence(found))
    assert reason.startswith("Topics without metrics: 3.")


def test_unread_queues_and_different_settings_of_topics() -> None:
    rows = Part((given.topic(unread_queues=2, drift=True), given.topic("%DLQ%x", kind="dlq")))
    found = evidence(snapshot(topics=rows))
    assert finding(topics.unread_queues, found).values["unread_queues"] == 2
    assert finding(topics.topic_drift, found).severity is Severity.WARNING


def test_a_topic_on_one_of_two_brokers_is_advice() -> None:
    two = Part((given.broker(), given.broker(OTHER)))
    one = finding(topics.one_broker, evidence(snapshot(brokers=two)))
    assert (one.severity, one.concerns(BROKER_A)) == (Severity.ADVICE, True)
    both = Part((given.topic(brokers=("broker-a", "broker-b")),))
    assert passes(topics.one_broker, evidence(snapshot(brokers=two, topics=both)))
    # A slave is no second broker.
    pair = Part((given.broker(), given.broker(SLAVE)))
    assert passes(topics.one_broker, evidence(snapshot(brokers=pair)))


def test_ids_of_rules_are_unique_and_texts_are_sentences() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(str(rule.title)[0].isupper() for rule in RULES)
    assert Finding("r", Severity.ADVICE, BROKER_A, "", "").key == "r/broker/broker-a"


def test_samples_are_bounded_in_number_and_rate() -> None:
    kept = Samples()
    for number in range(3 * SAMPLES_MAX):
        for age_ms in (SAMPLE_EVERY_MS, SAMPLE_EVERY_MS // 2):
            at = given.sample(-(number * SAMPLE_EVERY_MS - age_ms) / 1000)
            kept.add(at)
    assert len(kept) == SAMPLES_MAX
    newest = kept.before(NOW_MS * 2)
    assert newest is not None
    assert kept.before(NOW_MS) is None
