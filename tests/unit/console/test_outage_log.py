"""services/leases/outages.py: few log lines during an outage of the database."""

import logging

import pytest
from django.db import OperationalError

from console.services.findings.background import Evaluations
from console.services.leases.lease import Lease
from console.services.leases.outages import WARNING_INTERVAL_MS, OutageLog

GONE = OperationalError("gone")


def test_one_warning_per_interval_and_the_recovery(caplog: pytest.LogCaptureFixture) -> None:
    outages = OutageLog("work")
    with caplog.at_level(logging.INFO):
        outages.succeeded()
        for now_ms in range(0, 2 * WARNING_INTERVAL_MS, WARNING_INTERVAL_MS // 25):
            outages.failed(GONE, now_ms)
        outages.succeeded()
        outages.succeeded()
        outages.failed(GONE, 0)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "no work until the database answers: gone"),
        ("WARNING", "no work until the database answers (26 attempts): gone"),
        ("INFO", "the database answers again: work after 50 failed attempts"),
        ("WARNING", "no work until the database answers: gone"),
    ]


def test_the_evaluation_of_findings_logs_an_outage_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [GONE, GONE, GONE, None]

    def hold(_lease: Lease, _holder: str, _now_ms: int) -> bool:
        if (trouble := answers.pop(0)) is not None:
            raise trouble
        return False

    monkeypatch.setattr(Lease, "hold", hold)
    evaluations = Evaluations()
    with caplog.at_level(logging.INFO):
        while answers:
            assert not evaluations.evaluate()
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"]
