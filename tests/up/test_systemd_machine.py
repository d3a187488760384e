"""deploy/README.md and the units under a real systemd: installation, failures, updates."""

import re
from collections.abc import Iterator

import pytest

from console.launcher.redis import find_server
from tests.support.document_blocks import blocks_of
from tests.support.source_tree import ROOT
from tests.support.systemd_machine import SystemdMachine, why_impossible

PAGE = "deploy/README.md"
CLONE = "git clone … /opt/gantry && cd /opt/gantry && make .venv/.ready\n"
UNITS = ("namesrv", "broker@broker-a", "console", "worker", "scheduler")
FIRST = "gantry-broker@broker-a.service"
SECOND = "gantry-broker@broker-b.service"
ASK = (
    "import sys, time, urllib.request\n"
    "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
    "end = time.monotonic() + 200\n"
    "while True:\n"
    "    try:\n"
    "        print(opener.open(sys.argv[1], timeout=10).status)\n"
    "        break\n"
    "    except OSError:\n"
    "        if time.monotonic() > end: raise\n"
    "        time.sleep(0.1)\n"
)
PYTHON = "/opt/gantry/.venv/bin/python"

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("systemd")]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SystemdMachine]:
    """A machine on which the commands of the page ran; the tree has the place of the clone."""
    if reason := why_impossible():
        pytest.skip(reason)
    server = find_server()
    if server is None:
        pytest.skip("no Valkey is installed here")
    install = next(each for each in blocks_of(PAGE) if each.language == "sh").code
    assert CLONE in install
    with SystemdMachine(tmp_path_factory.mktemp("systemd")) as machine:
        machine.program("valkey", server)
        machine.run("systemctl", "start", "valkey")
        machine.run("bash", "-euc", install.replace(CLONE, ""))
        yield machine


def main_pid(machine: SystemdMachine, unit: str) -> str:
    return machine.property(unit, "MainPID")


def answer(machine: SystemdMachine, url: str) -> str:
    return machine.run(PYTHON, "-c", ASK, url).stdout.strip()


def test_every_unit_runs_as_the_user_and_answers(machine: SystemdMachine) -> None:
    for name in UNITS:
        unit = f"gantry-{name}.service"
        assert machine.property(unit, "ActiveState") == "active", machine.journal(unit)
        assert machine.property(unit, "UnitFileState") == "enabled"
        user = machine.run("stat", "-c", "%U", f"/proc/{main_pid(machine, unit)}").stdout.strip()
        assert user == "gantry"
    assert machine.property("gantry-setup", "Result") == "success"
    assert "password (shown only now)" in machine.journal("gantry-setup")
    assert answer(machine, "http://127.0.0.1:8082/livez") == "200"
    assert machine.run("systemctl", "--failed", "-q").stdout == ""
    found = machine.run("find", "/var/lib/gantry", "-perm", "/077").stdout
    assert found == ""


def test_a_unit_is_started_when_its_program_is_ready(machine: SystemdMachine) -> None:
    for unit in (FIRST, "gantry-namesrv.service"):
        lines = machine.journal(unit)
        assert lines.index("boot success") < lines.index(f"Started {unit}"), lines
    assert answer(machine, "http://127.0.0.1:5559/readyz") == "200"


def test_the_document_has_the_rates_of_the_loaded_units(machine: SystemdMachine) -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"rates their\s+exposure (\S+) of 10, the worker's (\S+):", page)
    assert found
    printed = machine.run("systemd-analyze", "security").stdout
    rates = dict(re.findall(r"^(gantry-\S+)\s+(\S+)", printed, re.M))
    assert rates.pop("gantry-worker.service") == found[2]
    assert set(rates.values()) == {found[1]}, rates


def test_a_killed_broker_starts_again(machine: SystemdMachine) -> None:
    killed = main_pid(machine, FIRST)
    machine.run("systemctl", "reset-failed", FIRST)  # the counter begins at 0
    machine.run("systemctl", "kill", "-s", "KILL", FIRST)
    machine.wait(FIRST, "NRestarts", "1")
    machine.wait(FIRST, "ActiveState", "active")
    assert main_pid(machine, FIRST) != killed
    assert answer(machine, "http://127.0.0.1:5559/readyz") == "200"


def test_a_broker_with_wrong_settings_fails_once(machine: SystemdMachine) -> None:
    machine.run("sh", "-c", "echo listenPort=none > /etc/gantry/wrong.conf")
    unit = "gantry-broker@wrong.service"
    assert machine.run("systemctl", "start", unit, check=False).returncode != 0
    assert machine.property(unit, "ActiveState") == "failed"
    assert machine.property(unit, "ExecMainStatus") == "2"
    assert machine.property(unit, "NRestarts") == "0"
    assert "wrong.conf" in machine.journal(unit)
    machine.run("systemctl", "reset-failed", unit)


@pytest.mark.parametrize("name", UNITS)
def test_a_stop_is_orderly(machine: SystemdMachine, name: str) -> None:
    unit = f"gantry-{name}.service"
    machine.run("systemctl", "stop", unit)
    assert machine.property(unit, "Result") == "success", machine.journal(unit)
    assert machine.property(unit, "ActiveState") == "inactive"
    left = machine.run("find", "/var/lib/gantry/broker-a/abort", check=False).returncode == 0
    assert left == (name != "broker@broker-a"), "the broker left the mark of a crash"
    machine.run("systemctl", "start", unit)


def test_brokers_are_added_and_restarted_one_after_the_other(machine: SystemdMachine) -> None:
    machine.run("deploy/systemd/add-brokers.sh", "2")
    machine.run("systemctl", "enable", "--now", "gantry-broker@broker-b")
    before = [main_pid(machine, unit) for unit in (FIRST, SECOND)]
    restart = ("deploy/systemd/rolling-restart.sh", "broker-a", "broker-b")
    done = machine.run(*restart, ROUTE_SECONDS="0")
    assert [line for line in done.stdout.splitlines() if line.endswith("runs again")] == [
        "broker-a runs again",
        "broker-b runs again",
    ]
    after = [main_pid(machine, unit) for unit in (FIRST, SECOND)]
    assert not set(before) & set(after)
    listed = machine.run(PYTHON, "-m", "core_broker.mqadmin", "clusterList", "-n", "127.0.0.1:9876")
    assert {"broker-a", "broker-b"} <= set(listed.stdout.split())
    machine.run("cp", "/etc/gantry/broker-a.conf", "/etc/gantry/kept")
    machine.run("sh", "-c", "echo listenPort=none >> /etc/gantry/broker-a.conf")
    done = machine.run(*restart, check=False, ROUTE_SECONDS="0")
    machine.run("cp", "/etc/gantry/kept", "/etc/gantry/broker-a.conf")
    machine.run("systemctl", "start", FIRST)
    assert done.returncode == 1, done.stdout
    assert "broker-a is not ready: see journalctl -u gantry-broker@broker-a" in done.stderr
    assert main_pid(machine, SECOND) == after[1], "the script ends at the first failure"
