"""core_broker/__main__.py: output and exit codes of the program."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.support.cluster import ROOT, Cluster


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program until it exits."""
    environment = {name: value for name, value in os.environ.items() if "ROCKETMQ" not in name}
    return subprocess.run(
        [sys.executable, "-m", "core_broker", *arguments],
        cwd=ROOT,
        env=environment | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def settings_file(folder: Path, *lines: str) -> str:
    file = folder / "broker.conf"
    defaults = ("brokerIP1=127.0.0.1", "httpPort=-1", f"storePathRootDir={folder / 'store'}")
    file.write_text("\n".join((*defaults, *lines)) + "\n")
    return str(file)


def test_print_all_settings_and_exit(tmp_path: Path) -> None:
    done = run("-c", settings_file(tmp_path, "brokerName=shown"), "-p", folder=tmp_path)
    assert done.returncode == 0
    assert "brokerName=shown" in done.stdout.splitlines()


def test_wrong_settings_are_all_named_at_once(tmp_path: Path) -> None:
    file = settings_file(tmp_path, "listenPort=many", "flushDiskType=NEVER")
    done = run("-c", file, folder=tmp_path)
    assert done.returncode == 2
    assert "listenPort" in done.stderr
    assert "flushDiskType" in done.stderr
    assert f"{file}:4:" in done.stderr


def test_a_wrong_delay_table_is_named(tmp_path: Path) -> None:
    done = run("-c", settings_file(tmp_path, "messageDelayLevel=1s soon"), folder=tmp_path)
    assert done.returncode == 2
    assert "messageDelayLevel" in done.stderr


def test_an_occupied_port(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        file = settings_file(tmp_path, f"listenPort={port}", "bindAddress=127.0.0.1")
        done = run("-c", file, folder=tmp_path)
    assert done.returncode == 1
    assert (
        f"Port {port} is in use; stop the process that listens on it or set listenPort."
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"")
    done = run("-c", settings_file(tmp_path, "listenPort=0"), folder=tmp_path)
    assert done.returncode == 1
    assert "storePathRootDir" in done.stderr
    assert "Traceback" not in done.stderr


def test_ready_lines_and_an_orderly_stop(cluster: Cluster) -> None:
    printed = cluster.broker.printed
    port = cluster.broker.port("remoting")
    assert cluster.broker.port("remoting for producers, VIP") == port - 2
    assert (
        f"The broker[broker-a, 127.0.0.1:{port}] boot success. serializeType=JSON "
        f"and name server is {cluster.namesrv_addr}"
    ) in printed.splitlines()
    assert cluster.stop_broker() == 0


def test_ctrl_c_is_an_orderly_stop(cluster: Cluster) -> None:
    os.kill(cluster.broker.pid, signal.SIGINT)
    assert cluster.broker.wait() == 0
    assert not (cluster.store_folder / "abort").exists()
