"""From the click on "Refresh analytics" to the finished job, in a complete Gantry.

The trace messages are in the broker before the click. The time runs from the POST of the job to the
first answer of the job's resource with a final state, so console, queue, worker, Spark and day
rollups are included. The first job starts Spark (cold); later jobs use the warm Spark.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from benchmarks.console import ROOT, Gantry, running
from benchmarks.trace_world import RECORDS_PER_BODY, RECORDS_PER_MESSAGE, World
from core_broker.client import AdminClient, Message
from core_broker.message.topics import TRACE_TOPIC

SEED: Final = 20261123
MESSAGES: Final = 1_000
WARM_JOBS: Final = 5
#: Times of the traces: the minutes before the measurement, a part per job.
MINUTES: Final = 30
POLL_S: Final = 0.02
SECONDS_MAX: Final = 300.0
SENDS_AT_ONCE: Final = 50
MB: Final = 1_000_000


def clicks(folder: Path) -> dict[str, Any]:
    """Seconds of the cold job and of the warm jobs, and the memory of the idle Spark."""
    home = folder / "clicks"
    try:
        with running(home) as gantry:
            bodies = traces()
            jobs = Jobs(gantry.url, home)
            seconds = []
            for _ in range(1 + WARM_JOBS):
                asyncio.run(send(gantry, list(islice(bodies, MESSAGES))))
                seconds.append(jobs.run())
            memory = spark_memory_mb(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    cold, *warm = seconds
    return {
        "click-cold": {"seconds": cold},
        "click-warm": {"seconds": round(median(warm), 2), "max_seconds": max(warm)},
        "spark-idle": {"memory_mb": memory},
    }


def traces() -> Iterator[bytes]:
    """Bodies of new trace messages for all jobs."""
    records = (1 + WARM_JOBS) * MESSAGES * RECORDS_PER_BODY
    span_ms = MINUTES * 60_000
    begin_ms = time.time_ns() // 1_000_000 - span_ms
    world = World(SEED, int(1.1 * records / RECORDS_PER_MESSAGE), begin_ms, span_ms)
    return (body for _, body in world.bodies())


async def send(gantry: Gantry, bodies: list[bytes]) -> None:
    """Send the bodies to the trace topic."""
    assert len(bodies) == MESSAGES
    async with AdminClient(gantry.namesrv_addr) as admin:
        for begin in range(0, len(bodies), SENDS_AT_ONCE):
            await asyncio.gather(
                *(
                    admin.send(gantry.broker_addr, Message(TRACE_TOPIC, body), 0)
                    for body in bodies[begin : begin + SENDS_AT_ONCE]
                )
            )


class Jobs:
    """The jobs resource of a running console."""

    def __init__(self, url: str, home: Path) -> None:
        token = subprocess.run(
            [sys.executable, "manage.py", "create_token", "admin"],
            cwd=ROOT,
            env={**os.environ, "GANTRY_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        self._url = f"{url}/api/v1/clusters/local/jobs"
        self._headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}

    def run(self) -> float:
        """Start an ingest job and wait for its end; returns seconds."""
        began = time.perf_counter()
        job = self._ask("", b'{"kind": "ingest"}')
        while job["state"] in {"queued", "running"}:
            if time.perf_counter() - began > SECONDS_MAX:
                raise SystemExit(f"the job did not end: {job}")
            time.sleep(POLL_S)
            job = self._ask(f"/{job['id']}")
        took = time.perf_counter() - began
        if job["state"] != "succeeded" or job["done"] != MESSAGES:
            raise SystemExit(f"the job failed: {job}")
        return round(took, 2)

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(self._url + path, body, self._headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def spark_memory_mb(home: Path) -> int:
    """Resident memory of the Spark service, its Java and its Python workers."""
    socket = str(home / "run" / "spark.sock")
    (service,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if {"serve", socket} <= {*(process.info["cmdline"] or ())}
    )
    programs = [service, *service.children(recursive=True)]
    return int(sum(program.memory_info().rss for program in programs) / MB)
