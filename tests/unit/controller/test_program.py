"""Controllers as processes, their own and a name server: ready lines, exit codes, kill -9."""

import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.errors import TransportError
from core_broker.remoting.codes import RequestCode as Request
from tests.support.cluster import Program, free_broker_port
from tests.support.controllers import ControllerClient, ScriptedBroker
from tests.support.eventually import eventually

DEADLINE_S = 180


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {
        "controller_d_leger_peers": f"n0-127.0.0.1:{free_broker_port()}",
        "controller_store_path": tmp_path / "raft",
        "http_port": 0,
        "tls_server_mode": "disabled",
    }


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program("core_broker.controller", tmp_path)
    yield program
    program.kill()


@pytest.fixture
async def client(settings: dict[str, Any]) -> AsyncIterator[ControllerClient]:
    client = ControllerClient(settings["controller_d_leger_peers"].removeprefix("n0-"))
    yield client
    await client.close()


def page_of(program: Program, path: str) -> str:
    port = program.port("http: /readyz /metrics /varz")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=DEADLINE_S) as page:
        text: str = page.read().decode()
        return text


@pytest.fixture
def namesrv(tmp_path: Path) -> Iterator[Program]:
    program = Program("namesrv", tmp_path)
    yield program
    program.kill()


async def test_acknowledged_changes_survive_a_kill(
    program: Program, settings: dict[str, Any], client: ControllerClient
) -> None:
    program.start(settings)
    lines = program.printed.splitlines()
    assert lines[0] == f"listens on {client.addr} (remoting)"
    assert re.fullmatch(r"listens on 127\.0\.0\.1:\d+ \(Raft\)", lines[1])
    assert "The Controller Server boot success. serializeType=JSON" in lines
    state = await states_around_a_kill(program, settings, client)
    assert (state["leader"], state["broker_sets"]["broker-a"]["master"]) == ("n0", 1)


async def test_a_controller_in_a_name_server_survives_a_kill(
    namesrv: Program, settings: dict[str, Any], client: ControllerClient, tmp_path: Path
) -> None:
    settings |= {
        "enable_controller_in_namesrv": True,
        "listen_port": 0,
        "bind_address": "127.0.0.1",
        "kv_config_path": tmp_path / "kv.json",
    }
    namesrv.start(settings)
    assert f"listens on {client.addr} (controller)" in namesrv.printed.splitlines()
    state = await states_around_a_kill(namesrv, settings, client)
    found = state["controller"]
    assert (found["leader"], found["broker_sets"]["broker-a"]["master"]) == ("n0", 1)


async def states_around_a_kill(
    program: Program, settings: dict[str, Any], client: ControllerClient
) -> Any:
    """Change the state, kill the started program and start it; return /varz of the new process."""
    broker = ScriptedBroker(client, "broker-a", "127.0.0.1:10911")

    async def leads() -> bool:
        try:
            answer = await client.ask(Request.CONTROLLER_GET_METADATA_INFO)
        except TransportError:
            return False  # the connection to the killed process
        return answer.ext_fields["isLeader"] == "true"

    await eventually(leads, DEADLINE_S)
    await broker.join()
    assert (await broker.elect()).code == 0
    before = await broker.info()
    program.kill()

    program.start(settings)
    await eventually(leads, DEADLINE_S)
    assert await broker.info() == before
    state = json.loads(page_of(program, "varz"))
    metrics = page_of(program, "metrics")
    assert re.search(r"^rocketmq_controller_role\{.*\} 2(\.0)?$", metrics, re.M), metrics
    assert "broker-a" in json.dumps(state)
    assert page_of(program, "readyz") == "ok\n"
    assert program.stop() == 0
    return state


def ended(folder: Path, **settings: object) -> tuple[int, str]:
    """The exit code and errors of a start that must fail."""
    file = folder / "bad.conf"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "core_broker.controller", "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def test_starts_of_no_use_name_the_setting(tmp_path: Path) -> None:
    code, error = ended(tmp_path, controllerDLegerSelfId="n5")
    assert (code, "controllerDLegerSelfId" in error) == (2, True)

    folder = {"controllerStorePath": str(tmp_path / "raft"), "httpPort": "-1"}
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        own = f"n0-127.0.0.1:{port}"
        spare = f"n0-127.0.0.1:{free_broker_port()}"
        code, error = ended(
            tmp_path, controllerDLegerPeers=own, controllerRaftPeers=spare, **folder
        )
        assert (code, f"Port {port} is in use" in error) == (1, True), error
        code, error = ended(
            tmp_path, controllerDLegerPeers=spare, controllerRaftPeers=own, **folder
        )
        assert (code, "controllerRaftPeers" in error) == (1, True), error

    (tmp_path / "file").write_text("")
    peers = f"n0-127.0.0.1:{free_broker_port()}"
    code, error = ended(
        tmp_path, controllerDLegerPeers=peers, controllerStorePath=f"{tmp_path}/file", httpPort=-1
    )
    assert code != 0
    assert str(tmp_path / "file") in error


def test_the_folder_of_another_member_is_refused(
    tmp_path: Path, program: Program, settings: dict[str, Any]
) -> None:
    program.start(settings)
    code, error = ended(
        tmp_path,
        controllerDLegerPeers=f"n0-127.0.0.1:{free_broker_port()}",
        controllerStorePath=settings["controller_store_path"],
        httpPort=-1,
    )
    assert code == 1
    assert str(settings["controller_store_path"]) in error
