"""The Celery worker is killed during a Spark job: the job fails, and the next job continues."""

import asyncio
import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core_broker.client import AdminClient, Message
from core_broker.message.topics import TRACE_TOPIC
from tests.spark.traffic import trace_bodies
from tests.support.processes import command_line
from tests.up.gantry import NO_PROXY, ROOT, Gantry, clean_environment
from trace.lake import HOUR_MS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]

MESSAGES = 60
DEADLINE_S = 150.0
POLL_S = 0.2
CLUSTER = "local"


@pytest.fixture
def _spark_is_there() -> None:
    command = [sys.executable, "-m", "spark_jobs", "check", "--json"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout)
    if not found["usable"]:
        pytest.skip(f"Spark cannot run here: {found['reason']}")


class Api:
    """The jobs of a running console, through the REST API."""

    def __init__(self, url: str, home: Path) -> None:
        self._jobs = f"{url.rstrip('/')}/api/v1/clusters/{CLUSTER}/jobs"
        made = subprocess.run(
            [sys.executable, "manage.py", "create_token", "admin"],
            cwd=ROOT,
            env={**clean_environment(), "GANTRY_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        self._headers = {"Authorization": f"Token {made.stdout.strip()}"}

    def start(self) -> int:
        body = json.dumps({"kind": "ingest"}).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        return int(self._ask(urllib.request.Request(self._jobs, body, headers))["id"])

    def job(self, number: int) -> dict[str, Any]:
        return self._ask(urllib.request.Request(f"{self._jobs}/{number}", headers=self._headers))

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        with NO_PROXY.open(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def wait_for(self, number: int, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while not is_so(job := self.job(number)):
            assert time.monotonic() < deadline, job
            time.sleep(POLL_S)
        return job


async def send_traces(namesrv_addr: str, bodies: list[bytes]) -> None:
    """Send trace records in the format of clients."""
    async with AdminClient(namesrv_addr) as admin:
        (broker,) = (await admin.topic_route(TRACE_TOPIC)).broker_datas
        for body in bodies:
            await admin.send(broker.broker_addrs[0], Message(TRACE_TOPIC, body), 0)


def worker_of(gantry: Gantry) -> psutil.Process:
    (worker,) = (p for p in gantry.programs if {"worker", "celery"} <= {*command_line(p)})
    return worker


@pytest.mark.usefixtures("_spark_is_there")
def test_a_killed_worker_fails_its_job_and_the_next_job_continues(tmp_path: Path) -> None:
    bodies = trace_bodies(
        random.Random(7), "traced", MESSAGES, int(time.time() * 1000) - 5 * HOUR_MS
    )
    with Gantry(tmp_path, CONSOLE_INGEST_MINUTES="0", SPARK_MASTER="local[1]") as gantry:
        namesrv_addr = gantry.until(r"name server +([^ ,]+),")[1]
        api = Api(gantry.until_ready(), tmp_path)
        asyncio.run(send_traces(namesrv_addr, bodies))

        number = api.start()
        api.wait_for(number, lambda job: job["stage"] in {"read", "rollup"})
        worker = worker_of(gantry)
        of_job = worker.children(recursive=True)
        assert any("java" in " ".join(command_line(program)[:1]) for program in of_job), (
            "Spark runs"
        )
        worker.kill()
        _, alive = psutil.wait_procs(of_job, DEADLINE_S)
        assert alive == [], "the processes of the job end with the worker"
        gantry.until(r"\[worker\] .*SIGKILL")
        failed = api.wait_for(number, lambda job: job["state"] != "running")
        assert failed["state"] == "failed"
        assert "worker of the job is gone" in failed["error"]

        done = api.start()
        ended = api.wait_for(done, lambda job: job["state"] not in {"queued", "running"})
        assert ended["state"] == "succeeded", ended
        snapshot = Lake(tmp_path / "lake" / CLUSTER).snapshot()
        assert (snapshot.messages, snapshot.pending) == (len(bodies), [])
        assert not any(snapshot.stale.values())
        assert gantry.end() == 0, gantry.text
        assert gantry.left_running() == []
