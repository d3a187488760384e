"""Rules about groups and their members: each fires, passes, and says what it could not check."""

from dataclasses import replace

import pytest

from console.gateway.health.members import subscription_of
from console.gateway.health.snapshot import Part, Snapshot
from console.services.findings.finding import Severity, Target
from console.services.findings.rules import consumption, groups, members
from console.services.findings.rules.rule import Rule
from core_broker.remoting.bodies import SubscriptionData
from tests.support import finding_evidence as given
from tests.support.finding_evidence import NOW_MS, evidence, finding, passes, reasons

ORDERS = Target("topic", "orders")
BILLING = Target("group", "billing")
#: Rules that need the metrics of groups.
MEASURING = (groups.group_offline, groups.group_lag, groups.dead_letters_growing)


def with_group(**values: object) -> Snapshot:
    return given.snapshot(group_metrics=given.measured({"billing": given.behind(**values)}))


def test_a_group_with_lag_and_without_a_client_is_critical() -> None:
    one = finding(groups.group_offline, evidence(with_group(clients=0)))
    assert (one.severity, one.target, one.key) == (
        Severity.CRITICAL,
        BILLING,
        "group-offline/group/billing",
    )
    assert str(one.text) == "No client is connected. Lag: 1,234"
    assert one.values == {"lag": 1_234, "lag_s": 600.0, "clients": 0}
    assert one.concerns(ORDERS)


@pytest.mark.parametrize(
    "values",
    [{"clients": 1}, {"clients": 0, "lag": 0}, {"clients": 0, "broadcasting": True},
     # Younger than the interval of commits.
     {"clients": 0, "age_s": 3}],
)  # fmt: skip
def test_a_group_is_not_offline(values: dict[str, object]) -> None:
    assert passes(groups.group_offline, evidence(with_group(**values)))


def test_system_groups_have_no_findings() -> None:
    found = replace(with_group(clients=0), groups=Part((given.group(system=True, drift=True),)))
    for rule in (*MEASURING, groups.group_drift):
        assert passes(rule, evidence(found))


def test_an_unknown_number_of_clients_is_not_zero() -> None:
    (reason,) = reasons(groups.group_offline, evidence(with_group(clients=None)))
    assert reason == "Groups with an unknown number of clients: 1"


@pytest.mark.parametrize("rule", MEASURING)
def test_rules_of_groups_name_what_they_could_not_read(rule: Rule) -> None:
    lost = given.snapshot(group_metrics=Part(None, (given.LOST,)))
    assert "broker-b connection refused" in reasons(rule, evidence(lost))
    left_out = given.snapshot(group_metrics=given.measured({}, left_out=7))
    (reason,) = reasons(rule, evidence(left_out))
    assert reason.startswith("Groups without metrics: 7.")


def test_evidence_of_a_broker_that_is_down_has_its_time() -> None:
    part = replace(with_group(clients=0).group_metrics, failures=(given.STALE,))
    found = given.snapshot(
        group_metrics=part, groups=Part((given.group(brokers=("broker-a", "broker-b")),))
    )
    (one,), missing = given.run(groups.group_offline, evidence(found))
    assert one.as_of_ms == NOW_MS - 60_000
    assert [each.where for each in missing] == ["broker-b"]


def test_lag_in_time_over_the_threshold_is_a_warning() -> None:
    one = finding(groups.group_lag, evidence(with_group(), lag_s=300))
    assert one.severity is Severity.WARNING
    assert (
        str(one.text)
        == "The oldest unconsumed message waits for 10 min; threshold 5 min. Lag: 1,234"
    )
    assert one.since_ms == NOW_MS - 300_000


@pytest.mark.parametrize("values", [{"age_s": 299}, {"clients": 0}, {"lag": 0}])
def test_a_group_consumes_in_time(values: dict[str, object]) -> None:
    assert passes(groups.group_lag, evidence(with_group(**values), lag_s=300))


def test_lag_of_unknown_age_is_not_young() -> None:
    (reason,) = reasons(groups.group_lag, evidence(with_group(pending_since_ms=None)))
    assert reason == "Groups with lag of unknown age: 1"


def letters(count: int | None) -> Snapshot:
    return given.snapshot(
        group_metrics=given.measured({"billing": given.metrics(dead_letters=count)})
    )


def test_new_dead_letters_are_a_warning() -> None:
    kept = given.samples(given.sample(300, dead_letters={"billing": 4}), given.sample(60))
    one = finding(groups.dead_letters_growing, evidence(letters(9), kept=kept))
    assert str(one.text) == "New dead letters within 5 min: 5. In total: 9"
    assert one.values["grown"] == 5


def test_the_first_dead_letters_of_a_group_are_new() -> None:
    kept = given.samples(given.sample(60))
    assert (
        finding(groups.dead_letters_growing, evidence(letters(2), kept=kept)).values["grown"] == 2
    )
    incomplete = given.samples(given.sample(60, complete=False))
    assert passes(groups.dead_letters_growing, evidence(letters(2), kept=incomplete))


@pytest.mark.parametrize("count", [4, 3, None])
def test_dead_letters_do_not_grow(count: int | None) -> None:
    kept = given.samples(given.sample(60, dead_letters={"billing": 4}))
    assert passes(groups.dead_letters_growing, evidence(letters(count), kept=kept))


def test_growth_needs_two_samples() -> None:
    (reason,) = reasons(groups.dead_letters_growing, evidence(letters(9), kept=given.samples()))
    assert "two samples" in reason


def test_different_settings_of_a_group_are_a_warning() -> None:
    found = given.snapshot(groups=Part((given.group(drift=True),)))
    assert finding(groups.group_drift, evidence(found)).target == BILLING
    assert passes(groups.group_drift, evidence())
    lost = given.snapshot(groups=Part(None, (given.LOST,)))
    assert reasons(groups.group_drift, evidence(lost)) == ["broker-b connection refused"]


def test_different_filters_in_a_group_are_critical() -> None:
    found = given.diagnosis(given.member("a", "paid"), given.member("b"), given.member("c"))
    one = finding(members.subscription_conflict, evidence(diagnosed=found))
    assert one.severity is Severity.CRITICAL
    assert one.values["subscriptions"] == [
        {"clients": ["b", "c"], "topics": {"orders": "*"}},
        {"clients": ["a"], "topics": {"orders": "paid"}},
    ]
    assert one.concerns(ORDERS)


def test_equal_subscriptions_do_not_conflict() -> None:
    found = given.diagnosis(given.member("a"), given.member("b"))
    assert passes(members.subscription_conflict, evidence(diagnosed=found))
    texts = ("a||b", "b || a", " a ||b")
    assert len({subscription_of(SubscriptionData(topic="t", sub_string=t)) for t in texts}) == 1
    assert subscription_of(SubscriptionData(topic="t", sub_string="")) == ("t", "TAG", "*")
    sql = SubscriptionData(topic="t", sub_string="a || b", expression_type="SQL92")
    assert subscription_of(sql) == ("t", "SQL92", "a || b")


@pytest.mark.parametrize("rule", [members.subscription_conflict, members.client_idle])
def test_a_client_that_does_not_answer_leaves_the_rule_unchecked(rule: Rule) -> None:
    found = given.diagnosis(given.member("a"), given.member("b", queues=None), not_asked=3)
    (reason,) = reasons(rule, evidence(diagnosed=found))
    assert reason == "Group billing: 4 of 5 clients did not report their state."
    (reason,) = reasons(rule, evidence(waiting=12))
    assert reason.startswith("Groups not asked yet: 12.")


def test_a_queue_without_progress_is_a_warning() -> None:
    found = given.diagnosis(given.member("a"), queues=(given.queue(0, 5), given.queue(1, 5)))
    before = given.sample(130, offsets={"billing": {("orders", "broker-a", 0): 10}})
    one = finding(members.queue_stuck, evidence(diagnosed=found, kept=given.samples(before)))
    assert one.values["queues"] == ["orders broker-a:0"]
    assert str(one.text).startswith(
        "Queues with lag and without progress for 2 min 10 s: orders broker-a:0"
    )


@pytest.mark.parametrize(
    ("offset", "lag", "clients"),
    [(9, 5, 1), (10, 0, 1), (10, 5, 0)],
)
def test_a_queue_is_not_stuck(offset: int, lag: int, clients: int) -> None:
    asked = [given.member("a")][:clients]
    found = given.diagnosis(*asked, queues=(given.queue(0, lag),))
    before = given.sample(130, offsets={"billing": {("orders", "broker-a", 0): offset}})
    kept = given.samples(before)
    assert passes(members.queue_stuck, evidence(diagnosed=found, kept=kept))


def test_a_stuck_queue_needs_two_samples() -> None:
    found = given.diagnosis(given.member("a"), queues=(given.queue(0, 5),))
    young = given.samples(given.sample(60, offsets={"billing": {("orders", "broker-a", 0): 10}}))
    (reason,) = reasons(members.queue_stuck, evidence(diagnosed=found, kept=young))
    assert reason == "Groups with lag: 1. The check compares two samples, 2 min apart."


def test_lag_in_one_of_many_queues_is_advice() -> None:
    found = given.diagnosis(
        given.member("a"), queues=(given.queue(0, 5_000), *(given.queue(n, 10) for n in (1, 2, 3)))
    )
    one = finding(members.queues_skewed, evidence(diagnosed=found))
    assert (one.severity, one.values["queue"]) == (Severity.ADVICE, "orders broker-a:0")
    even = replace(found, queues=tuple(given.queue(number, 5_000) for number in range(4)))
    assert passes(members.queues_skewed, evidence(diagnosed=even))


def test_a_client_without_a_queue_is_advice() -> None:
    found = given.diagnosis(given.member("a"), given.member("b", queues=0))
    one = finding(members.client_idle, evidence(diagnosed=found))
    assert one.values == {"clients": ["b"]}
    busy = given.diagnosis(given.member("a"), given.member("b"))
    assert passes(members.client_idle, evidence(diagnosed=busy))
    # Before the first rebalance nobody has a queue.
    new = given.diagnosis(given.member("a", queues=0), given.member("b", queues=0))
    assert passes(members.client_idle, evidence(diagnosed=new))


def test_lag_that_grows_while_clients_consume_is_a_warning() -> None:
    kept = given.samples(given.sample(300, lags={"billing": 500}), given.sample(60))
    one = finding(consumption.consumer_slow, evidence(with_group(lag=2_000, rate=7.0), kept=kept))
    assert (one.severity, one.target) == (Severity.WARNING, BILLING)
    assert str(one.text).startswith("The lag grew from 500 to 2,000 within 5 min")
    assert one.values["growth_per_s"] == 5.0
    assert one.concerns(ORDERS)


@pytest.mark.parametrize(
    "values",
    [
        {"lag": 999},
        {"lag": 1_700},  # within a fifth of the earlier lag
        {"lag": 9_000, "clients": 0},
        {"lag": 9_000, "rate": 0.0},
        {"lag": 9_000, "rate": None},
        {"lag": 9_000, "broadcasting": True},
    ],
)
def test_a_consumer_is_not_slow(values: dict[str, object]) -> None:
    kept = given.samples(given.sample(300, lags={"billing": 1_500}))
    assert passes(consumption.consumer_slow, evidence(with_group(**values), kept=kept))


def test_growth_of_lag_needs_two_samples() -> None:
    young = given.samples(given.sample(60))
    (reason,) = reasons(consumption.consumer_slow, evidence(with_group(), kept=young))
    assert reason == "Groups with lag: 1. The check compares two samples, 2 min apart."


def test_a_sample_without_the_metrics_of_all_groups_is_no_lag_of_zero() -> None:
    gap = given.samples(given.sample(300, complete=False))
    found = evidence(with_group(lag=9_000), kept=gap)
    (reason,) = reasons(consumption.consumer_slow, found)
    assert reason.startswith("Groups with lag: 1.")
    whole = given.samples(given.sample(300))
    assert finding(consumption.consumer_slow, evidence(with_group(lag=9_000), kept=whole))


def owned(*clients: str) -> list[int]:
    """Digests of states in which one client owns both queues."""
    digests = []
    for client in clients:
        state = given.diagnosis(given.member(client))
        digest = consumption.owners_digest(state)
        assert digest is not None
        digests.append(digest)
    return digests


def test_owners_that_change_again_and_again_are_a_warning() -> None:
    ages = zip((240, 180, 120, 60), owned("a", "b", "a", "b"), strict=True)
    kept = given.samples(*(given.sample(age, owners={"billing": each}) for age, each in ages))
    now = given.diagnosis(given.member("a"))
    one = finding(consumption.rebalance_storm, evidence(diagnosed=now, kept=kept))
    assert one.values == {"changes": 4, "per_minute": 1.0}
    same = given.diagnosis(given.member("b"))
    assert passes(consumption.rebalance_storm, evidence(diagnosed=same, kept=kept))


def test_a_group_without_an_earlier_sample_has_no_rebalance() -> None:
    found = evidence(diagnosed=given.diagnosis(given.member("a")), kept=given.samples())
    assert passes(consumption.rebalance_storm, found)


def test_a_silent_client_is_no_rebalance() -> None:
    assert consumption.owners_digest(given.diagnosis(given.member("a", queues=None))) is None
    assert consumption.owners_digest(given.diagnosis(not_asked=1)) is None
    many = [given.sample(age, owners={"billing": age}) for age in (500, 400, 300, 200, 100)]
    silent = given.diagnosis(given.member("a", queues=None))
    found = evidence(diagnosed=silent, kept=given.samples(*many))
    assert passes(consumption.rebalance_storm, found)
