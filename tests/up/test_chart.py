"""The Helm chart: strict validation, the plain manifests, and every container's command line."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import postgres
from tests.support.cluster import ROOT, free_broker_port
from tests.support.processes import stop_program
from tests.up import probes
from tests.up.chart_report import PYTHON, chart_report
from tests.up.containers import Containers, wait_for

READY_DEADLINE_S = 120.0
NAME = "ROCKETMQ_BROKER_NAME"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not PYTHON.exists(), reason="no Helm library and schemas here: tools/setup.sh charts"
    ),
]


@pytest.fixture(scope="module")
def report() -> Any:
    return chart_report()


def test_helm_finds_no_fault(report: Any) -> None:
    assert [text for texts in report["lint"].values() for text in texts] == []


def test_every_object_is_valid_in_the_three_newest_versions(report: Any) -> None:
    assert report["problems"] == []
    assert len(report["control"]) == 3, "the validation accepts an unknown field"
    validated, known = report["versions"]
    assert validated == sorted(set(known), key=lambda text: [*map(int, text.split("."))])[-3:]
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    numbers = [version.removesuffix(".0") for version in validated]
    assert "Kubernetes {}, {} and {},".format(*numbers) in page


def test_values_that_cannot_work_are_refused_with_the_reason(report: Any) -> None:
    assert [word for word, reason in report["refused"].items() if word not in reason] == []


def test_the_plain_manifests_are_those_of_the_chart(report: Any) -> None:
    for name, text in report["plain"].items():
        path = ROOT / "deploy" / "kubernetes" / f"{name}.yaml"
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make manifests`"


def test_containers_are_confined(report: Any) -> None:
    open_ones = []
    for name, objects in report["objects"].items():
        for each in objects:
            pod = each.get("spec", {}).get("template", {}).get("spec", {})
            for container in [*pod.get("containers", []), *pod.get("initContainers", [])]:
                security = container["securityContext"]
                is_closed = (
                    pod["securityContext"]["runAsNonRoot"]
                    and security["readOnlyRootFilesystem"]
                    and not security["allowPrivilegeEscalation"]
                    and security["capabilities"]["drop"] == ["ALL"]
                    and "memory" in container["resources"]["limits"]
                )
                if not is_closed:
                    open_ones.append((name, each["metadata"]["name"], container["name"]))
    assert open_ones == []


def test_brokers_of_one_node_have_their_own_names_and_ports(report: Any) -> None:
    sets = [each for each in report["objects"]["percore"] if each["kind"] == "StatefulSet"]
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]
        for each in sets
        if each["metadata"]["name"].startswith("gantry-broker-")
    }
    assert list(pods) == ["gantry-broker-a", "gantry-broker-b", "gantry-broker-c"]
    ports = {name: [each["containerPort"] for each in pod["ports"]] for name, pod in pods.items()}
    assert ports["gantry-broker-b"] == [10921, 10922, 5569]
    assert len({number for numbers in ports.values() for number in numbers}) == 9
    for pod in pods.values():
        values = {each["name"]: each.get("value") for each in pod["env"]}
        listens = [values[f"ROCKETMQ_{key}_PORT"] for key in ("LISTEN", "HA_LISTEN", "HTTP")]
        assert listens == [str(each["containerPort"]) for each in pod["ports"]]
    names = {env["value"] for pod in pods.values() for env in pod["env"] if env["name"] == NAME}
    assert names == {"broker-a", "broker-b", "broker-c"}


@pytest.fixture
def running(report: Any, tmp_path: Path) -> Iterator[tuple[Containers, Callable[..., Any]]]:
    """The containers with a controller and the console, and a function that starts one of them."""
    objects = report["objects"]["elected"] + [
        each
        for each in report["objects"]["console"]
        if each["metadata"]["name"].startswith(("gantry-console", "gantry-redis"))
    ]
    secrets = {"secret-key": "not-a-secret-of-anybody", "admin-password": "correct horse"}
    containers = Containers(objects, tmp_path, secrets)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, replica: int = 0, **options: Any) -> subprocess.Popen[bytes]:
        started.append(containers.start(name, replica, **options))
        return started[-1]

    try:
        yield containers, start
    finally:
        for process in reversed(started):
            if process.poll() is None:
                stop_program(process)


def test_every_container_becomes_ready(
    running: tuple[Containers, Callable[..., Any]],
) -> None:
    containers, start = running
    servers = {"namesrv", "broker", "controller", "redis"}
    assert set(containers.names()) == servers | {"setup", "console", "worker", "scheduler"}
    namesrv, controller, raft = free_broker_port(), free_broker_port(), free_broker_port()
    containers.place("gantry-namesrv-0.gantry-namesrv:9876", f"127.0.0.1:{namesrv}")
    containers.place("gantry-controller-0.gantry-controller:9878", f"127.0.0.1:{controller}")
    containers.place("gantry-controller-0.gantry-controller:9879", f"127.0.0.1:{raft}")
    side = {name: free_broker_port() for name in ("namesrv", "controller")}
    start("namesrv", ROCKETMQ_LISTEN_PORT=str(namesrv), ROCKETMQ_HTTP_PORT=str(side["namesrv"]))
    until_ready(containers, "namesrv", {5558: side["namesrv"]})
    start("controller", ROCKETMQ_HTTP_PORT=str(side["controller"]))
    until_ready(containers, "controller", {5560: side["controller"]})
    listening = [free_broker_port(), free_broker_port()]
    for replica, port in enumerate(listening):
        http = free_broker_port()
        start(
            "broker",
            replica,
            ROCKETMQ_LISTEN_PORT=str(port),
            ROCKETMQ_HA_LISTEN_PORT=str(port + 1),
            ROCKETMQ_HTTP_PORT=str(http),
        )
        until_ready(containers, "broker", {5559: http})
    # The controller has elected one of them, and the name server knows both.
    addresses = {f"127.0.0.1:{port}" for port in listening}
    wait_for(lambda: registered(namesrv) == addresses, containers.logs)
    start_console(containers, start)


def until_ready(containers: Containers, name: str, ports: dict[int, int]) -> None:
    """Wait until all probes of the container pass, at ports of this machine."""
    wait_for(partial(containers.are_passed, name, ports), containers.logs)


def registered(namesrv: int) -> set[str]:
    """The addresses of the brokers of the set, by the name server."""
    command = [sys.executable, "-m", "core_broker.mqadmin", "clusterList"]
    done = subprocess.run(
        [*command, "-n", f"127.0.0.1:{namesrv}"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=READY_DEADLINE_S,
    )
    return set(re.findall(r"127\.0\.0\.1:\d+", done.stdout))


def start_console(containers: Containers, start: Callable[..., Any]) -> None:
    ports = {port: free_broker_port() for port in (6379, 8082, 8083, 8084)}
    containers.place("gantry-redis:6379", f"127.0.0.1:{ports[6379]}")
    for port in (8082, 8083, 8084):
        containers.place(str(port), str(ports[port]))
    start("redis", arguments=("--port", str(ports[6379])))
    until_ready(containers, "redis", ports)
    assert start("setup").wait(READY_DEADLINE_S) == 0, containers.printed("setup")
    jobs = [start("worker"), start("scheduler")]
    start("console")
    for name in ("worker", "scheduler", "console"):
        until_ready(containers, name, ports)
    assert [stop_program(each) for each in reversed(jobs)] == [0, 0]


@pytest.mark.skipif(postgres.why_not() is not None, reason=f"{postgres.why_not()}")
def test_probes_of_postgresql_pass_with_the_server(report: Any) -> None:
    container = next(
        each["spec"]["template"]["spec"]["containers"][0]
        for each in report["objects"]["full"]
        if each["kind"] == "StatefulSet" and each["metadata"]["name"] == "gantry-postgresql"
    )
    kinds = [kind for kind in probes.KINDS if kind in container]
    assert kinds == ["livenessProbe", "readinessProbe"]
    with postgres.PostgreSql() as server:
        at = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port)}
        assert [probes.passes(container, kind, {}, **at) for kind in kinds] == [True, True]
    assert [probes.passes(container, kind, {}, **at) for kind in kinds] == [False, False]
