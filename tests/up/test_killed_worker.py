"""The Celery worker is killed during a Spark job: the job fails, and the next job continues."""

import asyncio
import random
import time
from pathlib import Path

import psutil
import pytest

from core_broker.client import AdminClient, Message
from core_broker.message.topics import TRACE_TOPIC
from tests.spark.traffic import trace_bodies
from tests.support.processes import command_line
from tests.up.api import CLUSTER, DEADLINE_S, Api, require_spark
from tests.up.gantry import Gantry
from trace.lake import HOUR_MS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]

MESSAGES = 60


async def send_traces(namesrv_addr: str, bodies: list[bytes]) -> None:
    """Send trace records in the format of clients."""
    async with AdminClient(namesrv_addr) as admin:
        (broker,) = (await admin.topic_route(TRACE_TOPIC)).broker_datas
        for body in bodies:
            await admin.send(broker.broker_addrs[0], Message(TRACE_TOPIC, body), 0)


def worker_of(gantry: Gantry) -> psutil.Process:
    (worker,) = (p for p in gantry.programs if {"worker", "celery"} <= {*command_line(p)})
    return worker


def test_a_killed_worker_fails_its_job_and_the_next_job_continues(tmp_path: Path) -> None:
    require_spark()
    bodies = trace_bodies(
        random.Random(7), "traced", MESSAGES, int(time.time() * 1000) - 5 * HOUR_MS
    )
    with Gantry(tmp_path, CONSOLE_INGEST_MINUTES="0", SPARK_MASTER="local[1]") as gantry:
        namesrv_addr = gantry.until(r"name server +([^ ,]+),")[1]
        api = Api(gantry.until_ready(), tmp_path)
        asyncio.run(send_traces(namesrv_addr, bodies))

        number = api.start_job()
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

        done = api.start_job()
        ended = api.wait_for(done, lambda job: job["state"] not in {"queued", "running"})
        assert ended["state"] == "succeeded", ended
        snapshot = Lake(tmp_path / "lake" / CLUSTER).snapshot()
        assert (snapshot.messages, snapshot.pending) == (len(bodies), [])
        assert not any(snapshot.stale.values())
        assert gantry.end() == 0, gantry.text
        assert gantry.left_running() == []
