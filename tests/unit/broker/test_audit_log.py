"""broker/audit_log.py: rotation, bounds, and lines that are lost."""

import json
import stat
from pathlib import Path

import pytest

from core_broker.broker import audit_log
from core_broker.broker.audit_log import AuditLog
from tests.support.stores import ManualExecutor


def manual() -> ManualExecutor:
    executor = ManualExecutor("audit")
    executor.hold()
    return executor


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_lines_are_appended_off_the_loop_and_files_rotate(tmp_path: Path) -> None:
    executor = manual()
    folder = tmp_path / "audit"
    audit = AuditLog(folder / "access.log", 30, 2, executor)
    audit.write(b"line 0\n")
    assert not folder.exists()
    executor.run()
    for number in range(1, 16):
        audit.write(b"line %d\n" % number)
        executor.run()
    lines = b"".join(written(folder)[f"access.log{end}"] for end in (".2", ".1", ""))
    expected = b"".join(b"line %d\n" % number for number in range(16))
    assert expected.endswith(lines)
    assert lines.count(b"\n") >= 8
    assert sorted(written(folder)) == ["access.log", "access.log.1", "access.log.2"]
    assert all(len(content) <= 30 for content in written(folder).values())
    assert stat.S_IMODE((folder / "access.log").stat().st_mode) == 0o600


def test_a_log_without_old_files_keeps_the_newest_lines(tmp_path: Path) -> None:
    executor = manual()
    audit = AuditLog(tmp_path / "access.log", 10, 0, executor)
    for number in range(3):
        audit.write(b"line %d\n" % number)
        executor.run()
    assert written(tmp_path) == {"access.log": b"line 2\n"}


def test_lines_over_the_bound_are_counted_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "QUEUED_LINES_MAX", 3)
    executor = manual()
    audit = AuditLog(tmp_path / "access.log", 1_000, 0, executor)
    for number in range(10):
        audit.write(b"line %d\n" % number)
    executor.run()
    audit.write(b"line 10\n")
    executor.run()
    lines = (tmp_path / "access.log").read_bytes().splitlines()
    assert audit.lost == 6
    assert {"event": "lost", "lines": 6} in [json.loads(x) for x in lines if x.startswith(b"{")]
    assert [x for x in lines if x.startswith(b"line")] == [
        b"line %d" % number for number in (0, 1, 2, 3, 10)
    ]


def test_a_failing_disk_loses_counted_lines_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    executor = manual()
    (tmp_path / "file").write_bytes(b"")
    audit = AuditLog(tmp_path / "file" / "access.log", 1_000, 0, executor)
    for _ in range(3):
        audit.write(b"line\n")
        executor.run()
    assert audit.lost == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert "accessLogPath" in message
