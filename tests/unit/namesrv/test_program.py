"""`python -m namesrv` as a process: ready lines, exit codes, stop."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name != "NAMESRV_ADDR" and not name.startswith("ROCKETMQ_")
}
DEADLINE_S = 90

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "namesrv.conf"
    path.write_text(
        f"listenPort=0\nhttpPort=0\nbindAddress=127.0.0.1\nkvConfigPath={tmp_path}/kvConfig.json\n"
    )
    return path


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "namesrv", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **environment},
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def lines_until_ready(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if "boot success" in line:
            return lines
    raise AssertionError(f"the process ended early: {lines} {process.communicate()[1]}")


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_start_prints_rocketmqs_line_and_stop_is_orderly(
    start: Start, conf: Path, stop: signal.Signals
) -> None:
    process = start("-c", str(conf))
    lines = lines_until_ready(process)
    assert re.fullmatch(r"listens on 127\.0\.0\.1:\d+ \(remoting\)", lines[0])
    assert lines[-1] == "The Name Server boot success. serializeType=JSON"
    match = re.match(r"listens on (\S+) \(http", lines[1])
    assert match is not None
    with urllib.request.urlopen(f"http://{match[1]}/readyz", timeout=DEADLINE_S) as page:
        assert page.status == 200
    process.send_signal(stop)
    assert finish(process)[0] == 0


def test_an_error_names_the_port_in_use(start: Start, conf: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        code, out, err = finish(start("-c", str(conf), ROCKETMQ_LISTEN_PORT=str(port)))
        assert code == 1
        assert out == ""
        assert err.splitlines()[-1] == (
            f"Port {port} is in use; stop the process that listens on it or set listenPort."
        )
        code, _, err = finish(start("-c", str(conf), ROCKETMQ_HTTP_PORT=str(port)))
        assert code == 1
        assert f"Port {port} is in use" in err
        assert "httpPort" in err
        assert "Traceback" not in err


def test_an_unusable_token_file_ends_the_start(start: Start, conf: Path, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    code, _, err = finish(start("-c", str(conf), ROCKETMQ_METRICS_TOKEN_FILE=absent))
    assert code == 1
    assert f"metricsTokenFile = {absent!r}: expected a readable file (No such file" in err


def test_an_address_of_another_machine(start: Start, conf: Path) -> None:
    code, _, err = finish(start("-c", str(conf), ROCKETMQ_BIND_ADDRESS="192.0.2.77"))
    assert code == 1
    assert "Cannot listen on 192.0.2.77" in err


def test_wrong_settings_end_with_all_problems(start: Start, conf: Path) -> None:
    conf.write_text("listenPort=-1\nclusterTest=true\n")
    code, _, err = finish(start("-c", str(conf)))
    assert code == 2
    assert len(err.splitlines()) == 2
    assert f"{conf}:1: listenPort" in err


def test_a_damaged_key_value_file_ends_the_start(start: Start, conf: Path) -> None:
    (conf.parent / "kvConfig.json").write_text("{")
    code, _, err = finish(start("-c", str(conf)))
    assert code == 2
    assert "kvConfig.json" in err


def test_print_and_help(start: Start, conf: Path) -> None:
    code, out, _ = finish(start("-c", str(conf), "-p"))
    assert code == 0
    assert "listenPort=0\n" in out
    code, out, _ = finish(start("-h"))
    assert code == 0
    assert "mqnamesrv" in out
