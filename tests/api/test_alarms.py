"""Alarms: rules over a history file, episodes, notices to a real webhook, restarts, two workers."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from pytest_django import Settings

from console.gateway import now_ms
from console.services.alarms import dispatch, notices, receivers, retention, rules, silences
from console.services.alarms.dispatch import Dispatcher
from console.services.alarms.evaluation import evaluate
from console.services.alarms.models import AlarmRule, Delivery, Episode, Notified, Receiver
from console.services.findings.finding import Check, Finding, NotChecked, Report, Severity, Target
from console.services.history.files import path_of
from console.services.history.metrics import INTERVAL_MS
from tests.support.webhooks import Hook, webhook
from tests.unit.history.stored import Recorder, recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.must_beat(12)]
T0 = now_ms() // INTERVAL_MS * INTERVAL_MS - 3_600_000


class World:
    """A history file in compressed time, rules, and a webhook."""

    def __init__(self, record: Recorder, hook: Hook) -> None:
        self.record, self.hook = record, hook
        self.at_ms = T0

    def rule(self, **values: Any) -> AlarmRule:
        usual = {
            "name": "lag",
            "source": "metric",
            "scope": "group",
            "metric": "lag",
            "threshold": 10.0,
            "severity": "critical",
            "for_s": 0,
            "clear_for_s": 0,
            "cluster": "local",
        }
        return rules.save(None, {**usual, **values}, [], "tester")

    def receiver(self, **values: Any) -> Receiver:
        usual = {"name": "hook", "kind": "webhook", "enabled": True, "all_rules": True}
        more = {
            "language": "en",
            "recipients": "",
            "url": self.hook.url,
            "secret": "s3cret-of-hook",
        }
        return receivers.save(None, receivers.Draft(**{**usual, **more, **values}), "tester")

    def put(self, **lags: float | None) -> None:
        """Store a sample of groups, then evaluate at its time."""
        self.at_ms += INTERVAL_MS
        self.record.put(self.at_ms, "group", "lag", lags)
        evaluate("local", None, self.at_ms)

    def send(self) -> None:
        """Send all due deliveries, as a worker does."""
        dispatcher = Dispatcher()
        while dispatcher.dispatch():
            dispatcher.wait()
        dispatcher._end()

    @property
    def states(self) -> list[str]:
        return list(Episode.objects.order_by("pk").values_list("state", flat=True))


@pytest.fixture
def world(tmp_path: Path, settings: Settings) -> Iterator[World]:
    settings.GANTRY_HOME = tmp_path
    settings.ALARM_GROUP_SECONDS = 0
    settings.ALARM_NETWORKS = ("127.0.0.0/8",)
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    AlarmRule.objects.all().delete()
    with recorder(path_of(tmp_path, "local")) as record, webhook() as hook:
        yield World(record, hook)


def test_one_firing_and_one_resolved_notice(world: World) -> None:
    world.rule()
    world.receiver()
    for lag in (5, 20, 30, 40):
        world.put(orders=lag)
        world.send()
    assert world.hook.events() == ["firing"]
    for lag in (3, 0, 2):
        world.put(orders=lag)
        world.send()
    assert world.hook.events() == ["firing", "resolved"]
    firing, resolved = world.hook.notices
    assert firing["alarms"][0]["object"] == {"kind": "group", "name": "orders"}
    assert firing["alarms"][0]["value"] == 20
    assert "20 messages" in firing["alarms"][0]["text"]
    assert resolved["alarms"][0]["id"] == firing["alarms"][0]["id"]
    assert resolved["alarms"][0]["resolved_ms"] == T0 + 5 * INTERVAL_MS
    world.put(orders=99)
    world.send()
    assert world.hook.events() == ["firing", "resolved", "firing"], "a new episode"
    assert [each.state for each in Delivery.objects.all()] == ["sent"] * 3


def test_for_and_hysteresis(world: World) -> None:
    world.rule(for_s=20, clear_threshold=5.0, clear_for_s=20)
    world.receiver()
    for lag in (20, 20, 3, 20, 20):
        world.put(orders=lag)
    assert world.states == ["pending"], "two short peaks do not fire"
    world.put(orders=20)
    assert world.states == ["firing"]
    for lag in (8, 8, 8, 8):  # between the thresholds
        world.put(orders=lag)
    assert world.states == ["firing"]
    for lag in (4, 4, 20, 4, 4):
        world.put(orders=lag)
    assert world.states == ["firing"], "not clear for long enough"
    world.put(orders=4)
    assert world.states == ["resolved"]
    world.send()
    assert world.hook.events() == ["firing", "resolved"]


def test_an_unknown_value_keeps_an_alarm_and_a_vanished_object_ends_it(world: World) -> None:
    world.rule()
    world.receiver()
    world.put(orders=20, other=1)
    for _ in range(89):
        world.put(other=1)
    assert world.states == ["firing"]
    for _ in range(12):
        world.put(other=1)
    assert Episode.objects.get().end_reason == "no-data"
    world.send()
    assert world.hook.events() == ["firing", "resolved"]


def test_one_notice_for_many_objects_and_a_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.services.alarms.evaluation.OBJECTS_PER_RULE_MAX", 40)
    world.rule()
    world.receiver()
    world.put(**{f"group-{number:03}": 20 + number for number in range(60)})
    world.send()
    assert len(world.hook.requests) == 1
    (notice,) = world.hook.notices
    assert (notice["total"], len(notice["alarms"]), notice["more"]) == (40, 10, 30)
    assert "and 30 more" not in json.dumps(notice["alarms"])
    assert AlarmRule.objects.get().left_out == 20
    assert Episode.objects.filter(name="group-059").exists(), "the highest values first"
    world.put(**{f"group-{number:03}": 0 for number in range(60)})
    world.send()
    assert [each["total"] for each in world.hook.notices] == [40, 40]


def test_objects_that_trickle_in_share_a_waiting_notice(world: World, settings: Settings) -> None:
    settings.ALARM_GROUP_SECONDS = 600
    world.rule()
    world.receiver()
    world.put(one=20)
    world.put(one=20, two=20)
    world.put(one=20, two=20, three=20)
    delivery = Delivery.objects.get()
    assert delivery.notified.count() == 3
    world.send()
    assert not Delivery.objects.filter(state="sent").exists() or delivery.due_ms <= now_ms()


def test_a_silence_holds_the_firing_notice_until_it_ends(world: World) -> None:
    world.rule()
    world.receiver()
    values = {"cluster": "", "rule": None, "kind": "group", "pattern": "ord*", "reason": "work"}
    silence = silences.create({**values, "duration_s": 7_200}, "tester")
    silence.begin_ms = T0
    silence.save()
    world.put(orders=20, other=20)
    world.send()
    (notice,) = world.hook.notices
    assert [each["object"]["name"] for each in notice["alarms"]] == ["other"]
    world.put(orders=0, other=20)
    assert Episode.objects.get(name="orders").state == "resolved"
    world.put(orders=30, other=20)
    world.send()
    assert world.hook.events() == ["firing"], "neither a firing nor a resolved notice"
    silence.until_ms = world.at_ms
    silence.save()
    world.put(orders=30, other=20)
    world.send()
    assert world.hook.events() == ["firing", "firing"]
    world.put(orders=0, other=0)
    world.send()
    totals = [each["total"] for each in world.hook.notices if each["event"] == "resolved"]
    assert totals == [2]


def test_a_restart_repeats_and_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.rule()
    world.receiver()

    def crash(*_: Any) -> None:
        raise RuntimeError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(notices, "_enqueue", crash)
        with pytest.raises(RuntimeError):
            world.put(orders=20)
    assert not Episode.objects.filter(notified_ms__isnull=False).exists()
    assert not Delivery.objects.exists()
    world.put(orders=20)  # the next process
    (number,) = dispatch.claim(now_ms(), 4)
    # The process dies with the claim; another one takes the delivery after the claim's end.
    assert dispatch.claim(now_ms(), 4) == []
    assert dispatch.claim(now_ms() + dispatch.CLAIM_MS + 1, 4) == [number]
    dispatch.deliver(number)
    for _ in range(3):
        world.put(orders=20)
        world.send()
    assert world.hook.events() == ["firing"]


def test_two_workers_at_once_send_each_notice_once(world: World) -> None:
    world.rule()
    world.receiver()
    world.record.put(T0, "group", "lag", {f"group-{number}": 50.0 for number in range(5)})
    starting = threading.Barrier(4)

    def work(step: Any) -> None:
        starting.wait()
        try:
            # SQLite in memory refuses a table that another thread writes; in a file it waits.
            while True:
                with suppress(OperationalError):
                    step()
                    return
        finally:
            connection.close()

    def together(step: Any) -> None:
        threads = [threading.Thread(target=work, args=(step,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    together(lambda: evaluate("local", None, T0))
    assert Episode.objects.count() == 5
    assert Notified.objects.count() == 5
    claimed: list[int] = []
    together(lambda: claimed.extend(dispatch.claim(now_ms(), 4)))
    assert claimed == [Delivery.objects.get().pk]


def test_a_failing_receiver_gets_the_notice_later_in_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "RETRY_MS", 0)
    world.rule()
    world.receiver()
    world.hook.answers += [503, 500]
    world.put(orders=20)
    world.put(orders=0)
    world.send()
    assert world.hook.events() == ["firing", "firing", "firing", "resolved"]
    assert len({each["delivery"] for each in world.hook.notices}) == 2
    assert [each.attempts for each in Delivery.objects.order_by("pk")] == [3, 1]
    world.hook.answers += [503] * dispatch.ATTEMPTS_MAX
    world.put(orders=20)
    world.send()
    failed = Delivery.objects.order_by("pk").last()
    assert failed is not None
    assert (failed.state, failed.attempts) == ("failed", dispatch.ATTEMPTS_MAX)
    assert (failed.result_code, failed.result["values"]["status"]) == ("refused", "503")


def test_attempts_back_off_within_bounds() -> None:
    waits = [dispatch.retry_ms(attempts) for attempts in range(1, dispatch.ATTEMPTS_MAX)]
    assert waits[:4] == [5_000, 20_000, 80_000, 320_000]
    assert max(waits) == dispatch.RETRY_MS_MAX


def test_a_rule_that_is_switched_off_changed_or_deleted_ends_its_alarms(world: World) -> None:
    rule = world.rule()
    world.receiver()
    world.put(orders=20)
    rules.switch(rule, "tester", on=False)
    assert Episode.objects.get().end_reason == "rule-off"
    rules.switch(rule, "tester", on=True)
    world.put(orders=20)
    rules.save(rule, {**rules.state_of(rule), "threshold": 15.0}, [], "tester")
    world.put(orders=20)
    rules.delete(rule)
    world.send()
    assert world.hook.events() == ["firing", "resolved"] * 3
    reasons = Episode.objects.order_by("pk").values_list("end_reason", flat=True)
    assert list(reasons) == ["rule-off", "rule-changed", "rule-deleted"]


@pytest.mark.parametrize(
    ("function", "samples", "met"),
    [
        ("average", [0, 0, 30, 30], True),
        ("average", [0, 0, 0, 30], False),
        ("growth", [5, 5, 10, 16], True),
        ("growth", [100, 100, 100, 105], False),
    ],
)
def test_functions_over_a_window(
    world: World, function: str, samples: list[float], met: bool
) -> None:
    world.rule(function=function, window_s=600)
    for lag in samples:
        world.put(orders=lag)
    assert (world.states == ["firing"]) is met


def test_a_drop_of_the_produce_rate(world: World) -> None:
    world.rule(
        scope="cluster", metric="produce_rate", function="drop", threshold=80.0, window_s=600
    )
    for number in range(60):
        world.at_ms += INTERVAL_MS
        rate = 100.0 if number < 50 else 5.0
        world.record.put(world.at_ms, "cluster", "produce_rate", {"": rate})
        evaluate("local", None, world.at_ms)
        if number < 50:
            assert world.states == []
    episode = Episode.objects.get()
    assert (episode.kind, episode.name, episode.state) == ("cluster", "", "firing")


def test_a_window_reads_hours_that_are_packed(world: World) -> None:
    world.rule(function="growth", window_s=3_600, threshold=50.0)
    begin_ms = T0 // 3_600_000 * 3_600_000
    for at_ms in range(begin_ms, begin_ms + 5_000_000, INTERVAL_MS):
        world.record.put(at_ms, "group", "lag", {"orders": float((at_ms - begin_ms) // 60_000)})
    world.record.keep(begin_ms + 5_000_000)
    evaluate("local", None, begin_ms + 5_000_000)
    assert Episode.objects.get().value == pytest.approx(59, abs=2)


def finding(name: str, severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding("group-offline", severity, Target("group", name), "no client", "start one")


def report(*findings: Finding, not_checked: tuple[NotChecked, ...] = ()) -> Report:
    check = Check("group-offline", "", len(findings), 0, not_checked)
    return Report(1, 1, findings, (check,), {})


def test_findings_become_alarms(world: World) -> None:
    world.rule(source="finding", finding_severity="critical", pattern="or*")
    world.receiver()
    seen = report(finding("orders"), finding("other"), finding("orange", Severity.WARNING))
    evaluate("local", seen, T0)
    assert [each.name for each in Episode.objects.all()] == ["orders"]
    evaluate("local", None, T0 + 12_000)
    unsure = report(not_checked=(NotChecked("a broker is down"),))
    evaluate("local", unsure, T0 + 24_000)
    assert world.states == ["firing"], "unknown is not resolved"
    evaluate("local", report(), T0 + 36_000)
    assert world.states == ["resolved"]
    world.send()
    assert world.hook.events() == ["firing", "resolved"]
    assert world.hook.notices[0]["alarms"][0]["finding"] == "group-offline"


def test_old_rows_are_deleted_and_open_ones_stay(world: World) -> None:
    world.rule()
    world.receiver()
    world.put(orders=20, other=20)
    world.put(orders=20, other=0)
    world.send()
    later_ms = now_ms() + retention.KEPT_MS + 3_600_000
    retention.prune(later_ms, every_ms=0)
    assert [each.name for each in Episode.objects.all()] == ["orders"]
    assert Delivery.objects.filter(event="firing").exists(), "says who gets the resolved notice"


def test_secrets_are_encrypted_and_not_in_any_row(world: World) -> None:
    receiver = world.receiver()
    row = json.dumps(list(Receiver.objects.values()))
    for secret in ("url-secret-7", "s3cret-of-hook"):
        assert secret not in row
    target = receivers.target_of(receiver)
    assert target is not None
    assert (target.url, target.secret) == (world.hook.url, "s3cret-of-hook")
