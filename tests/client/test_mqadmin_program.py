"""mqadmin as a process: signals, closed pipes, signed requests."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from core_broker.mqadmin.cli import cli
from core_broker.remoting.codes import RequestCode
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import ROOT
from tests.support.scripted_peer import ScriptedPeer

END_TIMEOUT_S = 90.0


def start(addr: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "core_broker.mqadmin", *arguments],
        cwd=ROOT,
        env={**os.environ, "NAMESRV_ADDR": addr},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_ends_a_polling_command(quick_cluster: ClusterAddrs) -> None:
    process = start(quick_cluster.namesrv_addr, "clusterList", "-i", "3600")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("#Cluster Name ")
    assert process.stdout.readline().startswith("DefaultCluster ")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=END_TIMEOUT_S)
    assert process.returncode == 130
    assert errors == "mqadmin: interrupted\n"


def test_the_reader_closes_the_pipe(quick_cluster: ClusterAddrs) -> None:
    process = start(quick_cluster.namesrv_addr, "topicList")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(END_TIMEOUT_S) == 1


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    """A scripted peer on a separate event loop, beside the command's loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    scripted = ScriptedPeer()
    asyncio.run_coroutine_threadsafe(scripted.__aenter__(), loop).result(10)
    yield scripted
    asyncio.run_coroutine_threadsafe(scripted.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def _by_options(_folder: Path) -> tuple[list[str], dict[str, str]]:
    return ["--accessKey", "rocketmq2", "--secretKey", "12345678"], {}


def _by_variables(_folder: Path) -> tuple[list[str], dict[str, str]]:
    return [], {"MQADMIN_ACCESS_KEY": "rocketmq2", "MQADMIN_SECRET_KEY": "12345678"}


def _by_file(folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "conf").mkdir()
    text = "accessKey: rocketmq2\nsecretKey: 12345678\n"
    (folder / "conf" / "tools.yml").write_text(text)
    return [], {"ROCKETMQ_HOME": str(folder)}


@pytest.mark.parametrize("way", [_by_options, _by_variables, _by_file])
def test_requests_are_signed(
    peer: ScriptedPeer,
    tmp_path: Path,
    way: Callable[[Path], tuple[list[str], dict[str, str]]],
) -> None:
    options, variables = way(tmp_path)
    arguments = ["updateKvConfig", "-s", "N", "-k", "k", "-v", "v", *options]
    env = {"NAMESRV_ADDR": peer.addr, **variables}
    result = CliRunner().invoke(cli, arguments, env=env)
    assert result.exit_code == 0, result.stderr
    (request,) = peer.received(RequestCode.PUT_KV_CONFIG)
    assert request.ext_fields["AccessKey"] == "rocketmq2"
    assert request.ext_fields["Signature"]


def test_the_keys_of_an_account_do_not_sign(peer: ScriptedPeer) -> None:
    """The option --accessKey of updateAclConfig names the account, not the signing key."""
    account = ["--accessKey", "the-access", "--secretKey", "the-secret"]
    env = {"NAMESRV_ADDR": peer.addr, "ROCKETMQ_HOME": None}
    result = CliRunner().invoke(cli, ["updateAclConfig", "-b", peer.addr, *account], env=env)
    assert result.exit_code == 0, result.stderr
    (request,) = peer.received(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG)
    assert request.ext_fields["accessKey"] == "the-access"
    assert "Signature" not in request.ext_fields
