import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.launcher import logs
from console.launcher.logs import ProgramLog
from console.launcher.service import IMPORTANT
from console.launcher.terminal import RELAYED_LINES_PER_MINUTE, Relay


def new_log(path: Path | None, relayed: list[str]) -> ProgramLog:
    log = ProgramLog(path, relayed.append, important=IMPORTANT)
    log.begin(awaited=None, on_seen=lambda: None)
    return log


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_in_any_pieces_give_the_same_lines(pieces: list[bytes]) -> None:
    whole: list[str] = []
    log = new_log(None, whole)
    log.feed(b"".join(pieces))
    log.end()
    split = new_log(None, [])
    for piece in pieces:
        split.feed(piece)
    split.end()
    assert log.last_lines == split.last_lines


def test_the_file_and_its_predecessors_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LOG_BYTES_MAX", 1000)
    log = new_log(tmp_path / "broker.log", [])
    for number in range(1000):
        log.feed(b"line %d\n" % number)
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["broker.log", "broker.log.1", "broker.log.2", "broker.log.3"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert (tmp_path / "broker.log").read_text().endswith("line 999\n")


def test_an_endless_line_is_cut() -> None:
    log = new_log(None, [])
    log.feed(b"x" * (3 * logs.LINE_BYTES_MAX + 1))
    assert len(log._partial) <= logs.LINE_BYTES_MAX


def test_the_awaited_line_is_seen_once_and_an_unfinished_one_at_the_end() -> None:
    seen: list[bool] = []
    log = ProgramLog(None, lambda _: None, important=IMPORTANT)
    log.begin(awaited=re.compile("ready"), on_seen=lambda: seen.append(True))
    log.feed(b"not yet\nalmost rea")
    assert seen == []
    log.feed(b"dy")
    log.end()
    log.feed(b"ready again\n")
    assert seen == [True]


def test_warnings_errors_and_exceptions_are_relayed() -> None:
    relayed: list[str] = []
    log = new_log(None, relayed)
    log.feed(b"INFO fine\n2026 WARNING low disk\nValueError: bad\nno errors here\n[ERROR] x\n")
    assert relayed == ["2026 WARNING low disk", "ValueError: bad", "[ERROR] x"]


def test_a_flood_is_cut_off_for_the_minute() -> None:
    now = 0.0
    said: list[str] = []
    relay = Relay("broker", said.append, lambda: now)
    for number in range(100):
        relay(f"line {number}")
    assert len(said) == RELAYED_LINES_PER_MINUTE + 1
    assert said[-1] == "[broker] … more lines in the log"
    now = 61.0
    relay("later")
    assert said[-1] == "[broker] later"
