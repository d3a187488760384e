"""Reports to systemd: datagrams to the socket of the environment."""

import logging
import socket
import sys
from pathlib import Path

import pytest

from core_broker.monitoring.service_manager import READY, VARIABLE, report


def test_a_state_is_a_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv(VARIABLE, str(tmp_path / "notify"))
        report(READY)
        assert manager.recv(100, socket.MSG_DONTWAIT) == b"READY=1"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract names need Linux")
def test_a_name_can_be_outside_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"gantry-{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}")
        monkeypatch.setenv(VARIABLE, f"@{name}")
        report(READY)
        assert manager.recv(100, socket.MSG_DONTWAIT) == b"READY=1"


def test_a_failed_report_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "absent"))
    with caplog.at_level(logging.WARNING):
        report(READY)
    assert "READY=1 cannot be sent to NOTIFY_SOCKET" in caplog.text


def test_without_a_service_manager_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    report(READY)
    assert not caplog.records
