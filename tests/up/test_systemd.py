"""The units of systemd and the scripts beside them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import ROOT

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
#: Maximum exposure of a unit in tenths, of 0 to 100, as `systemd-analyze security` rates it.
EXPOSURE_MAX = 30
TIMEOUT_S = 240

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here"
)


def run(*command: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@needs_systemd
def test_the_units_are_valid(tmp_path: Path) -> None:
    """The interpreter of an installation does not exist here, so this one takes its place.

    The check also loads units of the host that ours name: its warnings about them do not count.
    """
    for unit in UNITS:
        text = unit.read_text().replace("/opt/gantry/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text)
    done = run("systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir()))
    ours = (str(tmp_path), *(unit.stem for unit in UNITS))
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if any(name in line for name in ours)] == []
    (tmp_path / UNITS[0].name).write_text("[Service]\nExecStart=/nowhere\nProtectSistem=yes\n")
    done = run("systemd-analyze", "verify", "--man=no", tmp_path / UNITS[0].name)
    assert "ProtectSistem" in done.stderr, "the check finds no unknown key"


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=[unit.stem for unit in UNITS])
def test_a_unit_has_few_rights(unit: Path) -> None:
    if "--offline" not in run("systemd-analyze", "--help").stdout:
        pytest.skip("this systemd rates only units that are loaded")
    done = run(
        *("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}"), unit
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def test_every_unit_has_the_same_rights_but_for_system_calls_and_addresses() -> None:
    own = ("SystemCallFilter", "SystemCallErrorNumber", "RestrictAddressFamilies", "WantedBy")
    rights = {
        unit.stem: [
            line
            for line in unit.read_text().partition("# Private files")[2].splitlines()
            if "=" in line and not line.startswith(("#", *own))
        ]
        for unit in UNITS
    }
    assert len({tuple(lines) for lines in rights.values()}) == 1, rights
    assert len(rights["gantry-broker@"]) > 15


def test_further_brokers_have_their_own_ports_and_stores(tmp_path: Path) -> None:
    shutil.copy(ROOT / "deploy" / "broker-a.conf", tmp_path)
    (tmp_path / "broker-a.conf").chmod(0o640)
    with (tmp_path / "broker-a.conf").open("a") as conf:
        conf.write("listenPort = 10911\nflushDiskType=SYNC_FLUSH\n")
    (tmp_path / "broker-c.conf").write_text("# mine\n")
    done = run(FOLDER / "add-brokers.sh", "3", GANTRY_ETC=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "broker-c.conf").read_text() == "# mine\n"
    written = tmp_path / "broker-b.conf"
    assert written.stat().st_mode & 0o777 == 0o640
    checked = run(sys.executable, "-m", "core_broker", "-c", written, "-p")
    assert checked.returncode == 0, checked.stderr
    values = dict(re.findall(r"^(\w+)=(.*)$", checked.stdout, re.M))
    wanted = {
        "brokerName": "broker-b",
        "listenPort": "10921",
        "haListenPort": "10922",
        "httpPort": "5569",
        "storePathRootDir": "/var/lib/gantry/broker-b",
        "flushDiskType": "SYNC_FLUSH",
    }
    assert {key: values.get(key) for key in wanted} == wanted


def test_further_brokers_have_ports_beside_those_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "broker-a.conf").write_text(
        "storePathRootDir = /data/a\nlistenPort 20911\nhttpPort=-1\nstorePathCommitLog=\n"
    )
    done = run(FOLDER / "add-brokers.sh", "2", GANTRY_ETC=str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "broker-b.conf").read_text().splitlines()
    assert "listenPort 20911" not in lines
    assert {"listenPort=20921", "haListenPort=20922", "httpPort=-1"} <= set(lines)


@pytest.mark.parametrize(
    ("file", "line", "named"),
    [
        ("broker-a.conf", "storePathCommitLog=/log", "storePathCommitLog"),
        ("broker-a.conf", " storePathDLedgerCommitLog : /log", "storePathDLedgerCommitLog"),
        ("broker-a.conf", "storePathEpochFile /epochs", "storePathEpochFile"),
        ("broker-a.conf", "storePathBrokerIdentity=/id", "storePathBrokerIdentity"),
        ("broker-a.conf", "accessLogPath=/access.log", "accessLogPath"),
        ("gantry.env", "ROCKETMQ_STORE_PATH_COMMIT_LOG=/log", "ROCKETMQ_STORE_PATH_COMMIT_LOG"),
        ("broker-a.conf", "httpPort=10921", "port 10921 would have two users"),
        ("broker-a.conf", "listenPort=65530", "port 65551 is above 65535"),
        ("broker-a.conf", "listenPort=a[$(id)]", "which is no port"),
        ("broker-c.conf", "httpPort=10921", "port 10921 would have two users"),
        ("broker-c.conf", "listenPort=a[$(id)]", "which is no port"),
    ],
)
def test_brokers_never_share_files_or_ports(
    tmp_path: Path, file: str, line: str, named: str
) -> None:
    shutil.copy(ROOT / "deploy" / "broker-a.conf", tmp_path)
    with (tmp_path / file).open("a") as settings:
        settings.write(f"{line}\n")
    done = run(FOLDER / "add-brokers.sh", "3", GANTRY_ETC=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert named in done.stderr
    assert not (tmp_path / "broker-b.conf").exists()


@pytest.mark.parametrize("count", ["", "0", "27", "two", "1; id"])
def test_a_wrong_number_of_brokers_writes_nothing(tmp_path: Path, count: str) -> None:
    done = run(FOLDER / "add-brokers.sh", count, GANTRY_ETC=str(tmp_path))
    assert done.returncode == 2
    assert "add-brokers.sh N" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_rolling_restart_reads_the_environment_as_systemd_does(tmp_path: Path) -> None:
    """The program in the place of Python prints its environment; the script then stops."""
    (tmp_path / "broker-a.conf").write_text("brokerName=broker-a\n")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nenv\nexit 3\n")
    python.chmod(0o700)
    (tmp_path / "gantry.env").write_text(
        "# NAMESRV_ADDR=comment:1\n"
        'NAMESRV_ADDR="one:9876;two:9876"\n'
        f"ROCKETMQ_HOME=/a&touch {tmp_path}/executed\n"
        f"MQADMIN_TOOLS_FILE='$(touch {tmp_path}/executed) $HOME'\n"
        f"DATABASE_URL=postgres://g:p&touch {tmp_path}/executed\n"
        "PATH=/nowhere\nROCKETMQ_LAST=without a line end"
    )
    done = run(
        *(FOLDER / "rolling-restart.sh", "broker-a"),
        GANTRY_ETC=str(tmp_path),
        GANTRY_BIN=str(tmp_path),
    )
    assert done.returncode == 3, done.stderr
    assert not (tmp_path / "executed").exists()
    assert {
        "NAMESRV_ADDR=one:9876;two:9876",
        f"ROCKETMQ_HOME=/a&touch {tmp_path}/executed",
        f"MQADMIN_TOOLS_FILE=$(touch {tmp_path}/executed) $HOME",
        "ROCKETMQ_LAST=without a line end",
        "PATH=/usr/bin:/bin",
    } <= set(done.stdout.splitlines())
    assert "DATABASE_URL" not in done.stdout


def test_a_rolling_restart_names_its_arguments(tmp_path: Path) -> None:
    done = run(FOLDER / "rolling-restart.sh")
    assert done.returncode == 2
    assert "rolling-restart.sh NAME" in done.stdout
    done = run(FOLDER / "rolling-restart.sh", "broker-x", GANTRY_ETC=str(tmp_path))
    assert done.returncode == 2
    assert "broker-x.conf cannot be read" in done.stderr
