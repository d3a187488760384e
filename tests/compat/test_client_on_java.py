"""Our own client on brokers of Apache RocketMQ: its own tests, with the same outcome.

The tests of tests/client that are marked ``on_java`` run in a process of their own, against a Java
broker under our name server.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.support.cluster import ROOT, Program

SECONDS_MAX = 150
#: Eighteen levels that all come at once, so that a dead letter takes seconds and not hours.
SHORT_DELAYS = " ".join(["1s"] * 18)

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + SECONDS_MAX + 60)


@pytest.mark.parametrize("version", installing.JAVA_BROKER_VERSIONS)
def test_the_client_does_there_what_it_does_here(version: str, tmp_path: Path) -> None:
    try:
        installing.java_broker_classpath(version)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker {version}: {reason}")
    namesrv = Program("namesrv", tmp_path)
    namesrv.start(
        {
            "listen_port": 0,
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": tmp_path / "kvConfig.json",
            "config_store_path": tmp_path / "namesrv.properties",
        }
    )
    try:
        addr = f"127.0.0.1:{namesrv.port('remoting')}"
        broker = JavaBroker(
            version, tmp_path, tmp_path / "store", addr, message_delay_level=SHORT_DELAYS
        )
        try:
            broker.start()
            run_marked_tests(addr)
        finally:
            broker.kill()
    finally:
        namesrv.stop()


def run_marked_tests(namesrv_addr: str) -> None:
    """Fails with their output when one of them fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/client", "-m", "on_java", "-q", "-n", "0"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "CLIENT_TEST_NAMESRV": namesrv_addr},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
