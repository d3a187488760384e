"""Timestamps on the command line and in tables."""

import time
from collections.abc import Iterator

import pytest

from core_broker.mqadmin.times import (
    compact_ms,
    date_time,
    date_time_ms,
    parse_moment,
    timestamp_with_text,
)


@pytest.fixture(autouse=True)
def in_shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("0", 0),
        ("1795251905493", 1795251905493),
        ("1970-01-01#08:00:00:000", 0),
        ("2026-11-21#17:05:05:493", 1795251905493),
        ("1970-01-01#00:00:00:000", -28_800_000),
    ],
)
def test_parsed_timestamps(text: str, moment_ms: int) -> None:
    assert parse_moment(text) == moment_ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "-1", "+1", "1.0", "2026-11-21", "2026-02-30#00:00:00:000", "9" * 19, "\u0661"],
)
def test_invalid_timestamps(text: str) -> None:
    assert parse_moment(text) is None


def test_the_end() -> None:
    assert parse_moment("now", now=True) == parse_moment("-1", now=True) == -1


def test_a_timestamp_keeps_its_text() -> None:
    moment = timestamp_with_text("1970-01-01#08:00:00:001")
    assert moment == 1
    assert moment is not None
    assert moment.written == "1970-01-01#08:00:00:001"
    assert timestamp_with_text("x") is None


def test_printed() -> None:
    moment_ms = 1795251905493
    assert date_time(moment_ms) == "2026-11-21 17:05:05"
    assert date_time_ms(moment_ms) == "2026-11-21 17:05:05,493"
    assert compact_ms(moment_ms) == "20261121170505493"


@pytest.mark.parametrize("moment_ms", [2**63 - 1, -(2**63)])
def test_a_timestamp_out_of_the_calendar_s_range(moment_ms: int) -> None:
    assert date_time(moment_ms) == str(moment_ms)
