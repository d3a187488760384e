"""The ingest job on a standalone Spark cluster: a master and two workers, from PySpark's own
jars.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from benchmarks.trace_check import differences
from benchmarks.trace_store import fill
from benchmarks.trace_truth import make_world
from benchmarks.trace_world import LIMITS
from spark_jobs.spark.java import java_for_spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 2_000
START_SECONDS_MAX = 180.0
DAEMON_MEMORY = "-Xmx128m"
EXECUTOR = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}


@contextmanager
def daemon(folder: Path, kind: str, *arguments: str) -> Iterator[Path]:
    """A master or a worker process; yields its log file."""
    java = java_for_spark(os.environ, folder)
    home = Path(pyspark.__file__).parent
    log = folder / f"{kind}-{len(list(folder.iterdir()))}.log"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        # Otherwise a worker searches the folders of a Spark source tree.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_WORKER_DIR": str(folder / "executors"),
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": str(java.home),
    }
    command = [
        *(
            str(java.home / "bin" / "java"),
            DAEMON_MEMORY,
            "-Dspark.master.rest.enabled=false",
            "-cp",
            f"{home}/jars/*",
        ),
        # Arguments of Spark's own start script for Java 17 and later.
        *(
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
        ),
        *(
            "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
            "--add-opens=java.base/java.util=ALL-UNNAMED",
        ),
        *(f"org.apache.spark.deploy.{kind}.{kind.capitalize()}", *arguments),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(60)


def logs(folder: Path) -> str:
    """The last log lines of master, workers and executors."""
    found = [*folder.glob("cluster/*.log"), *folder.glob("cluster/executors/**/stderr")]
    return "".join(f"\n{path.name}: {path.read_text()[-1000:]}" for path in found)


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while text not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with ExitStack() as stack:
        host = ("--host", "127.0.0.1", "--webui-port", "0")
        log = stack.enter_context(daemon(folder, "master", *host, "--port", "0"))
        wait_for(log, "New state: ALIVE")
        found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
        assert found is not None
        address = found.group(1)
        for _ in range(2):
            size = ("--cores", "1", "--memory", "600m")
            worker = stack.enter_context(daemon(folder, "worker", *host, *size, address))
            wait_for(worker, "Successfully registered with master")
        yield address


def test_a_spark_cluster_gives_the_same_lake(master: str, tmp_path: Path) -> None:
    world = make_world(7, RECORDS)
    fill(tmp_path / "store", world, mapped_file_size_commit_log=1024 * 1024)
    lake, run_dir = tmp_path / "lake", tmp_path / "run"
    command = [
        *(sys.executable, "-m", "spark_jobs", "ingest", "--store", str(tmp_path / "store")),
        *("--lake", str(lake), "--run-dir", str(run_dir), "--master", master),
        *(f"--retry-times-max={group}={times}" for group, times in LIMITS.items()),
        *(part for key, value in EXECUTOR.items() for part in ("--conf", f"{key}={value}")),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:] + logs(tmp_path)
    assert differences(lake, world.truth) == []
    executors = list((tmp_path / "cluster" / "executors").glob("app-*/*"))
    assert len(executors) == 2
