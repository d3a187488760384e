"""Reports: verdict, bounds, the choice of groups to diagnose, the samples of an evaluation."""

from dataclasses import replace

from console.gateway.health.snapshot import Part
from console.services.findings.evaluation import (
    DIAGNOSED_BEHIND_MAX,
    DIAGNOSED_MAX,
    candidates_of,
    groups_in_turn,
    sample_of,
)
from console.services.findings.finding import (
    FINDINGS_PER_RULE_MAX,
    REASONS_MAX,
    Finding,
    Report,
    Severity,
    Target,
    Verdict,
    in_order,
)
from console.services.findings.listing import evidence_of
from console.services.findings.rules import RULES, Evidence, evaluate
from tests.support import finding_evidence as given
from tests.support.finding_evidence import NOW_MS, evidence, snapshot


def report(found: Evidence) -> Report:
    findings, checks, counts = evaluate(RULES, found)
    return Report(NOW_MS, 1, in_order(findings), checks, counts)


def test_a_cluster_is_healthy_only_when_all_rules_were_checked() -> None:
    assert report(evidence()).verdict is Verdict.HEALTHY
    found = report(evidence(kept=given.samples()))
    assert found.verdict is Verdict.NOT_CHECKED
    assert [check.rule for check in found.not_checked] == ["dead-letters-growing"]


def test_the_worst_severity_is_the_verdict() -> None:
    advice = Part((given.broker(), given.broker(given.OTHER)))
    assert report(evidence(snapshot(brokers=advice))).verdict is Verdict.HEALTHY
    warning = Part((given.topic(drift=True),))
    assert report(evidence(snapshot(topics=warning))).verdict is Verdict.WARNING
    critical = Part((given.broker(disk="0.95"),))
    both = report(evidence(snapshot(topics=warning, brokers=critical)))
    assert both.verdict is Verdict.CRITICAL
    assert [each.severity for each in both.findings] == ["critical", "warning"]
    assert both.counts == {"critical": 1, "warning": 1, "advice": 0}
    assert [one.rule for one in both.of(Target("topic", "orders"))] == ["topic-drift"]


def test_the_findings_of_a_rule_are_bounded_and_counted() -> None:
    names = [f"topic-{number:04}" for number in range(FINDINGS_PER_RULE_MAX + 5)]
    found = report(
        evidence(snapshot(topics=Part(tuple(given.topic(name, drift=True) for name in names))))
    )
    assert len(found.findings) == FINDINGS_PER_RULE_MAX
    assert (found.left_out, found.counts["warning"]) == (5, FINDINGS_PER_RULE_MAX + 5)
    lost = tuple(replace(given.LOST, broker=f"broker-{number}") for number in range(50))
    checks = report(evidence(snapshot(topics=Part((), lost)))).checks
    assert max(len(check.not_checked) for check in checks) == REASONS_MAX


def test_keys_are_unique_and_stable() -> None:
    rows = tuple(given.topic(f"t{number}", drift=True, unread_queues=1) for number in range(9))
    one, other = (report(evidence(snapshot(topics=Part(rows)))) for _ in range(2))
    keys = [finding.key for finding in one.findings]
    assert len(keys) == len(set(keys)) == 18
    assert keys == [finding.key for finding in other.findings]


def test_groups_are_diagnosed_when_their_members_may_disagree_or_hang() -> None:
    groups = {
        "alone": given.metrics(clients=1),
        "behind": given.behind(clients=1),
        "broadcast": given.behind(clients=1, broadcasting=True),
        "offline": given.behind(clients=0),
        "several": given.metrics(clients=3),
        "unknown": given.behind(clients=None),
    }
    rows = Part(tuple(map(given.group, groups)))
    found = candidates_of(snapshot(groups=rows, group_metrics=given.measured(groups)))
    assert found == {"behind": (True, 1_234), "several": (False, 0)}


def test_lag_comes_first_and_everybody_gets_a_turn() -> None:
    behind = {f"behind-{number:03}": (True, number) for number in range(100)}
    calm = {f"calm-{number:03}": (False, 0) for number in range(100)}
    chosen = groups_in_turn({**behind, **calm}, {}, frozenset({"calm-099"}))
    assert len(chosen) == DIAGNOSED_MAX
    assert chosen[:2] == ("behind-099", "behind-098")
    assert chosen[DIAGNOSED_BEHIND_MAX] == "calm-099"
    known: dict[str, object] = {}
    for turn in range(1, 20):
        for name in groups_in_turn({**behind, **calm}, known, frozenset()):  # type: ignore[arg-type]
            known[name] = replace(given.diagnosis(), group=name, taken_ms=turn)
    assert set(known) == {*behind, *calm}


def test_a_sample_knows_whether_it_saw_all_groups() -> None:
    groups = given.measured({"billing": given.metrics(dead_letters=3)})
    found = evidence(
        snapshot(group_metrics=groups),
        diagnosed=given.diagnosis(given.member("a"), queues=(given.queue(0, 5), given.queue(1, 0))),
    )
    sample = sample_of(found)
    assert (sample.dead_letters, sample.complete) == ({"billing": 3}, True)
    assert sample.offsets == {"billing": {("orders", "broker-a", 0): 10}}
    assert list(sample.disks) == [given.MASTER.addr]
    partly = replace(groups, failures=(given.LOST,))
    assert not sample_of(evidence(snapshot(group_metrics=partly))).complete
    unknown = given.measured({"billing": given.metrics(dead_letters=None)})
    assert not sample_of(evidence(snapshot(group_metrics=unknown))).complete


def test_the_evidence_shown_has_bytes_with_units_and_short_fractions() -> None:
    values = {
        "disk_free_bytes": 3 << 30,
        "full_in_h": 1.6110277777,
        "rate": 1_234_567.8,
        "share": 0.00012345,
        "grown": 6,
        "brokers": ["a"],
    }
    found = Finding("disk-full", Severity.WARNING, Target("broker", "a"), "", "", values)
    assert evidence_of(found) == [
        ("disk_free_bytes", "3.0 GiB"),
        ("full_in_h", "1.611"),
        ("rate", "1234567.8"),
        ("share", "0.000123"),
        ("grown", "6"),
        ("brokers", "a"),
    ]
