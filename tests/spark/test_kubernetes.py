"""The ingest job with executors as pods. Spark's own scheduler for Kubernetes creates the pods with
the settings, the template and the rights of the chart; their programs run on this machine.

An API server of the test stores the objects. Adjusted are addresses, folders of mounts, memory, and
Spark's way to learn of changes: the API server has no watch, so Spark polls.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.trace_check import differences
from benchmarks.trace_store import fill
from benchmarks.trace_truth import make_world
from benchmarks.trace_world import LIMITS
from spark_jobs.kubernetes import WrongCallError, command_of
from tests.support.cluster import ROOT
from tests.support.kubernetes_api import KubernetesApi
from tests.support.processes import stop_program
from tests.up.chart_report import PYTHON, chart_report

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Helm library here: tools/setup.sh charts"),
]

RECORDS = 2_000
DEADLINE_S = 600.0
SMALL = {
    "spark.driver.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.instances": "1",
    "spark.kubernetes.executor.apiPollingInterval": "1s",
    "spark.kubernetes.executor.enableApiWatcher": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def objects_of(kind: str, name: str) -> dict[str, Any]:
    """An object of the chart with all parts."""
    found: list[dict[str, Any]] = chart_report()["objects"]["full"]
    return next(each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))


class Executors:
    """Runs the containers of executor pods as programs; the first pod fails without one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pods: list[dict[str, Any]] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, pod: dict[str, Any]) -> None:
        self.pods.append(pod)
        if len(self.pods) == 1:
            pod["status"] = {"phase": "Failed"}
            return
        (container,) = pod["spec"]["containers"]
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir(parents=True)
        command = [*container["command"], *container["args"]]
        assert command[0] == "python"
        fields = {"status.podIP": "127.0.0.1", "metadata.name": pod["metadata"]["name"]}
        environ = {
            each["name"]: each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container["env"]
        }
        # A volume of the pod that Spark adds.
        assert environ["SPARK_LOCAL_DIRS"] in {
            each["mountPath"] for each in container["volumeMounts"]
        }
        environ |= {"SPARK_LOCAL_DIRS": str(folder), "PYTHONPATH": str(ROOT)}
        with (folder / "log").open("wb") as output:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, *command[1:]],
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], **environ},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )

    def printed(self) -> str:
        return "".join(path.read_text() for path in self._folder.glob("*/log"))


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[KubernetesApi, Executors]]:
    """An API server with the driver's pod, and the executors."""
    executors = Executors(folder)
    with KubernetesApi(executors.start) as api:
        template = objects_of("StatefulSet", "gantry-console")["spec"]["template"]
        name = {"name": "gantry-console-0", "namespace": "gantry"}
        api.add("pods", {"kind": "Pod", "apiVersion": "v1", **template, "metadata": name})
        try:
            yield api, executors
        finally:
            for process in executors.processes:
                stop_program(process)


def settings_folder(folder: Path) -> Path:
    """The ConfigMap of the chart as the folder that the worker mounts."""
    folder.mkdir()
    for name, text in objects_of("ConfigMap", "gantry-console")["data"].items():
        (folder / name).write_text(text.replace("/etc/gantry/conf", str(folder)))
    return folder


def test_executors_as_pods_give_the_same_lake(tmp_path: Path) -> None:
    world = make_world(7, RECORDS)
    fill(tmp_path / "store", world, mapped_file_size_commit_log=1024 * 1024)
    lake = tmp_path / "lake"
    with cluster(tmp_path / "pods") as (api, executors):
        command = [
            *(sys.executable, "-m", "spark_jobs", "ingest", "--store", str(tmp_path / "store")),
            *("--lake", str(lake), "--run-dir", str(tmp_path / "run")),
            *("--master", f"k8s://{api.url}"),
            *(f"--retry-times-max={group}={times}" for group, times in LIMITS.items()),
            *(part for key, value in SMALL.items() for part in ("--conf", f"{key}={value}")),
        ]
        # The variables of the worker's container; the pod's address is this machine's.
        settings = settings_folder(tmp_path / "conf")
        more = {"SPARK_CONF_DIR": str(settings), "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        printed = done.stdout[-2000:] + done.stderr[-2000:] + executors.printed()[-4000:]
        assert done.returncode == 0, printed
        assert differences(lake, world.truth) == []
        assert "Finished task" in executors.printed()
        assert [each for each in api.of_kind("pods") if each in executors.pods] == []
    check_pods(executors.pods, tmp_path)
    check_rights(api)


def check_pods(pods: list[dict[str, Any]], folder: Path) -> None:
    """The created pods are valid, confined, and go with the worker's pod."""
    given = folder / "pods.json"
    given.write_text(json.dumps([{k: v for k, v in pod.items() if k != "status"} for pod in pods]))
    done = subprocess.run(
        [PYTHON, "tools/charts.py", "--validate", str(given)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == []
    for pod in pods:
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        assert container["image"] == "registry.example.org/gantry-spark:0.1.0"
        assert spec["securityContext"]["runAsNonRoot"]
        assert not spec["automountServiceAccountToken"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert "memory" in container["resources"]["limits"]
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["name"] == "gantry-console-0"


def check_rights(api: KubernetesApi) -> None:
    """The Role of the chart allows each request of Spark, and nothing else."""
    rules = objects_of("Role", "gantry-spark")["rules"]
    granted = {
        (name, verb) for each in rules for name in each["resources"] for verb in each["verbs"]
    }
    assert api.used_rights == granted


def test_a_wrong_call_names_the_missing_variables(tmp_path: Path) -> None:
    with pytest.raises(WrongCallError, match=r"SPARK_DRIVER_URL, .*SPARK_EXECUTOR_MEMORY is not"):
        command_of(["executor"], {}, tmp_path, tmp_path)
    with pytest.raises(WrongCallError, match="expected `executor`"):
        command_of([], {}, tmp_path, tmp_path)


def test_a_driver_is_spark_submit(tmp_path: Path) -> None:
    environ = {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}
    assert command_of(["driver", "--class", "A", "x.jar"], environ, tmp_path, tmp_path) == [
        str(tmp_path / "bin" / "spark-submit"),
        *("--conf", "spark.driver.bindAddress=10.0.0.7", "--deploy-mode", "client"),
        *("--class", "A", "x.jar"),
    ]
