"""Observers of a gate: counters and log, audit lines, back-off, replay window."""

import json
import logging
from typing import Any

import pytest

from core_broker.auth import back_off, refusals, replays
from core_broker.auth.audit import AuditTrail
from core_broker.auth.back_off import BackOff
from core_broker.auth.contracts import Refusal, Request
from core_broker.auth.gate import Gate, Observer
from core_broker.auth.refusals import RefusalLog
from core_broker.auth.replays import ReplayWindow
from core_broker.remoting.codes import LanguageCode, RequestCode
from tests.support.access_rules import SmallRules, signed
from tests.support.send_frames import common_case_fields

HERE, THERE = "10.0.0.1", "10.0.0.2"
NOW_MS = 1_700_000_000_123


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def gate_with(*observers: Observer) -> Gate:
    gate = Gate(observers)
    gate.use_acl1(SmallRules())
    return gate


def request(
    fields: dict[str, str], body: bytes = b"", code: int = RequestCode.SEND_MESSAGE_V2
) -> Request:
    return Request(code, 399, LanguageCode.JAVA, fields, body)


def ask(gate: Gate, asked: Request, address: str = HERE) -> str:
    """The reason of the refusal, or ""."""
    try:
        gate.admit(address, asked)
    except Refusal as refusal:
        return refusal.reason
    return ""


SEND = request(signed(common_case_fields(0)))
FORGED = request({**SEND.ext_fields, "e": "3"})


def test_refusals_are_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    counted = RefusalLog(clock)
    gate = gate_with(counted)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            ask(gate, FORGED)
        ask(gate, FORGED, THERE)
        ask(gate, request({}))
        assert len(caplog.records) == 3
        clock.now += refusals.LOGGED_EVERY_S
        ask(gate, FORGED)
    assert len(caplog.records) == 4
    assert counted.counts == {"bad-signature": 7, "no-account": 1}
    text = caplog.records[0].getMessage()
    assert f"from {HERE}, account alice" in text
    assert SEND.ext_fields["Signature"] not in text


def test_counters_and_log_table_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "LOGGED_MAX", 10)
    counted = RefusalLog()
    for number in range(100):
        counted.refused(f"10.0.0.{number}", SEND, Refusal(1, "", f"new-{number}"))
    assert counted.counts == {"other": 100}
    assert len(counted._logged) <= 10


@pytest.mark.parametrize("name", ["x" * 10_000, "a\nb\x00{", '"}'])
def test_names_of_peers_cannot_flood_or_split_the_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[bytes] = []
    gate = gate_with(RefusalLog(), AuditTrail(lines.append, lambda: NOW_MS))
    with caplog.at_level(logging.WARNING):
        ask(gate, request({"AccessKey": name, "Signature": "x"}))
    assert "\n" not in caplog.records[0].getMessage()
    (line,) = lines
    assert line.count(b"\n") == 1
    assert len(line) < 1_000
    assert json.loads(line)["account"][:1] == name[:1]


def test_denied_and_administrative_requests_are_audited_without_secrets() -> None:
    lines: list[bytes] = []
    gate = gate_with(AuditTrail(lines.append, lambda: NOW_MS))
    update = {"accessKey": "carol", "secretKey": "carols-secret", "admin": "false"}
    ask(gate, SEND)
    ask(gate, request(signed(update), code=RequestCode.UPDATE_AND_CREATE_ACL_CONFIG))
    ask(gate, request(update, code=RequestCode.UPDATE_AND_CREATE_ACL_CONFIG))
    ask(gate, request(signed({"b": "T"}, account="bob")))
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    common = {"time_ms": NOW_MS, "address": HERE, "code": 50}
    name = "UPDATE_AND_CREATE_ACL_CONFIG"
    assert events[0] == {
        **common,
        "event": "administration",
        "account": "alice",
        "name": name,
        "how": "signature",
        "target": {"accessKey": "carol"},
    }
    assert events[1] == {
        **common,
        "event": "denied",
        "account": "",
        "name": name,
        "reason": "no-account",
        "resource": "",
        "rule": "",
    }
    assert (events[2]["reason"], events[2]["resource"]) == ("no-permission", "Topic:T")
    assert len(events) == 3
    assert b"carols-secret" not in b"".join(lines)
    assert b"Signature" not in b"".join(lines)


def test_an_account_that_fails_too_often_from_an_address_must_wait() -> None:
    clock = Clock()
    gate = gate_with(BackOff(2, 4, clock))
    assert [ask(gate, FORGED) for _ in range(2)] == ["bad-signature"] * 2
    assert ask(gate, SEND) == ""  # the right key forgets the failures
    assert [ask(gate, FORGED) for _ in range(4)] == ["bad-signature"] * 3 + ["backing-off"]
    assert ask(gate, SEND) == "backing-off"
    # Nobody else is slowed.
    assert ask(gate, SEND, THERE) == ""
    assert ask(gate, request(signed({"b": "Other-Topic"}, account="bob"))) == ""
    for pause_s in (1, 2, 4, 4):
        clock.now += pause_s - 0.01
        assert ask(gate, SEND) == "backing-off"
        clock.now += 0.01
        assert ask(gate, FORGED) == "bad-signature"
    clock.now += 4
    assert ask(gate, SEND) == ""
    assert ask(gate, FORGED) == "bad-signature"
    assert ask(gate, SEND) == ""


def test_failures_are_forgotten_and_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_off, "PAIRS_MAX", 10)
    clock = Clock()
    limits = BackOff(2, 60, clock)
    gate = gate_with(limits)
    for _ in range(10):
        assert ask(gate, FORGED) == "bad-signature"
        clock.now += back_off.FORGOTTEN_AFTER_S / 2 + 60
    for number in range(100):
        ask(gate, request({"AccessKey": f"guess{number}", "Signature": "x"}))
    assert len(limits._pairs) <= 10


def test_a_send_is_accepted_once_and_near_its_born_timestamp() -> None:
    now = [NOW_MS]
    gate = gate_with(ReplayWindow(300, lambda: now[0]))
    fields = common_case_fields(0)
    assert ask(gate, SEND) == ""
    assert ask(gate, SEND) == "replayed"
    assert ask(gate, SEND, THERE) == "replayed"
    late = request(signed({**fields, "g": str(NOW_MS - 300_001)}))
    early = request(signed({**fields, "g": str(NOW_MS + 300_001)}))
    assert (ask(gate, late), ask(gate, early)) == ("replayed", "replayed")
    newest = request(signed({**fields, "g": str(NOW_MS + 300_000)}))
    assert ask(gate, newest) == ""
    # The signature is remembered as long as its born timestamp is valid, at any rotation.
    for _ in range(60):
        now[0] += 10_000
        rest = request(signed({**fields, "g": str(now[0]), "e": "1"}))
        assert ask(gate, rest) == ""
        assert ask(gate, newest) == "replayed"
    assert ask(gate, request(signed({"b": "T", "g": "soon"}))) == "replayed"
    assert ask(gate, request(signed({"b": "T"}))) == "replayed"


def test_reads_may_repeat_within_a_replay_window() -> None:
    gate = gate_with(ReplayWindow(300, lambda: NOW_MS))
    fields = signed({"topic": "T", "consumerGroup": "g"})
    pull = request(fields, code=RequestCode.PULL_MESSAGE)
    assert [ask(gate, pull) for _ in range(3)] == ["", "", ""]


def test_few_new_sends_are_taken_for_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "FILTER_BITS", 16)
    monkeypatch.setattr(replays, "_MASK", (1 << 16) - 1)
    gate = gate_with(ReplayWindow(300, lambda: NOW_MS))
    # The capacity in the proportion of the real filter.
    count = replays.SIGNATURES_MAX >> 10
    sends = [request(signed({"b": "T", "g": str(NOW_MS), "i": str(n)})) for n in range(count)]
    assert [ask(gate, each) for each in sends].count("replayed") < count / 500
    assert {ask(gate, each) for each in sends} == {"replayed"}
