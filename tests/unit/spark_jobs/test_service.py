"""The Spark service as a process: requests of all kinds, one service per socket, its end.

No job of this file needs Spark.
"""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spark_jobs import service_socket
from spark_jobs.service import CONNECTIONS_MAX, REQUEST_BYTES_MAX

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_S = 90.0
NOWHERE = "127.0.0.1:1"


@contextmanager
def serving(folder: Path, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "spark_jobs", "serve", "--socket", str(folder / "s.sock")]
    options = ["--run-dir", str(folder), "--master", "local[1]", "--until-stdin-closes", *more]
    with subprocess.Popen(
        [*command, *options], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: "subprocess.Popen[bytes]", text: str) -> None:
    """Read the log until a line with `text`."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.decode())
        if text in lines[-1]:
            return
    raise AssertionError("".join(lines))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose path is longer than the address of a Unix socket."""
    long = tmp_path / ("long" * 20)
    long.mkdir()
    return long


@pytest.fixture
def process(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with serving(folder) as process:
        until(process, "listening")
        yield process


def connect(folder: Path) -> socket.socket:
    handle = os.open(folder, os.O_RDONLY)
    try:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(DEADLINE_S)
        connected.connect(f"/proc/self/fd/{handle}/s.sock")
        return connected
    finally:
        os.close(handle)


def ask(folder: Path, request: bytes) -> list[dict[str, Any]]:
    with connect(folder) as connected:
        connected.sendall(request)
        return [json.loads(line) for line in connected.makefile()]


def job(folder: Path, *more: str) -> bytes:
    lake = ["--lake", str(folder / "lake"), "--run-dir", str(folder), "--master", "local[1]"]
    arguments = ["ingest", "-n", NOWHERE, *lake, "--retry-seconds", "1", *more]
    return json.dumps({"arguments": arguments}).encode() + b"\n"


def assert_works(folder: Path) -> None:
    first, *_, last = ask(folder, job(folder))
    assert first == {"event": "accepted"}
    assert (last["event"], "Cannot connect" in last["message"]) == ("error", True)


@pytest.mark.usefixtures("process")
def test_hostile_requests_get_a_reason_and_the_service_works_on(folder: Path) -> None:
    deep = b"[" * 60_000 + b"\n"
    command_line = {
        "not a job": ["serve", "--socket", "x"],
        "unknown": ["rm", "-rf"],
        "help": ["ingest", "--help"],
        "no lake": ["ingest", "-n", NOWHERE],
        "endless": ["ingest", "-n", NOWHERE, "--lake", "x", "--follow", "1"],
    }
    requests = [
        (b"\n", "BrokenRequest"),
        (b"GET / HTTP/1.1\r\n", "BrokenRequest"),
        (b"\x00\xff\xfe\n", "BrokenRequest"),
        (deep, "BrokenRequest"),
        (b'{"arguments": []}\n', "BrokenRequest"),
        (b'{"arguments": "ingest"}\n', "BrokenRequest"),
        (b'{"arguments": [1]}\n', "BrokenRequest"),
        (b'{"arguments": ["ingest"], "environ": {}}\n', "BrokenRequest"),
        (json.dumps({"arguments": ["ingest"] * 300}).encode() + b"\n", "BrokenRequest"),
        (b"x" * (REQUEST_BYTES_MAX + 1), "RequestTooLarge"),
        (b"no end of line", "RequestTimeout"),
        *((json.dumps({"arguments": a}).encode() + b"\n", "") for a in command_line.values()),
        (job(folder, "--conf", "spark.jars.packages=a:b:1"), "OtherSession"),
        (job(folder, "--conf", "no equals sign"), "UsageError"),
    ]
    for request, kind in requests:
        [answer] = ask(folder, request)
        assert answer["event"] == "refused", request[:80]
        assert kind in {"", answer["kind"]}, (request[:80], answer)
        assert answer["message"], request[:80]
    assert_works(folder)


@pytest.mark.usefixtures("process")
def test_too_many_connections_are_refused(folder: Path) -> None:
    held = [connect(folder) for _ in range(CONNECTIONS_MAX)]
    try:
        with connect(folder) as one_more:
            answer = json.loads(one_more.makefile().readline())
        assert (answer["event"], answer["kind"]) == ("refused", "TooManyConnections")
    finally:
        for connected in held:
            connected.close()


@pytest.mark.usefixtures("process")
def test_a_job_waits_for_the_running_job_and_a_client_that_leaves_cancels_its_job(
    folder: Path,
) -> None:
    with connect(folder) as first, connect(folder) as second:
        first.sendall(job(folder, "--retry-seconds", "600"))
        assert json.loads(first.makefile().readline()) == {"event": "accepted"}
        second.sendall(job(folder))
        lines = second.makefile()
        assert json.loads(lines.readline())["stage"] == "wait"
        # A client that leaves while its job waits: the job does not run.
        second.shutdown(socket.SHUT_WR)
        first.close()
    with connect(folder) as third:
        third.sendall(job(folder))
        assert json.loads(third.makefile().readline())["stage"] == "wait"


@pytest.mark.usefixtures("process")
def test_only_the_user_can_connect(folder: Path) -> None:
    assert stat.S_IMODE((folder / "s.sock").stat().st_mode) == 0o600


def test_a_second_service_of_the_socket_ends(
    folder: Path, process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_socket, "LOCK_TIMEOUT_S", 0.0)
    with (
        pytest.raises(service_socket.ServiceRunsError, match="Another Spark service"),
        service_socket.listening(folder / "s.sock"),
    ):
        pass
    assert process.poll() is None
    assert_works(folder)


def test_a_service_takes_the_socket_of_a_killed_one(
    folder: Path, process: "subprocess.Popen[bytes]"
) -> None:
    process.kill()
    process.wait(DEADLINE_S)
    assert (folder / "s.sock").exists()
    with serving(folder) as second:
        until(second, "listening")
        assert_works(folder)


def test_the_service_ends_with_its_parent(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(DEADLINE_S) == -signal.SIGTERM


def test_an_idle_service_ends_without_its_socket(folder: Path) -> None:
    with serving(folder, "--idle-seconds", "1") as process:
        until(process, "listening")
        until(process, "no job used Spark for 1 s")
        assert process.wait(DEADLINE_S) == 0
    assert not (folder / "s.sock").exists()
