"""The REST API of a Gantry that `manage.py up` runs."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.up.gantry import NO_PROXY, ROOT, clean_environment

CLUSTER = "local"
DEADLINE_S = 150.0
POLL_S = 0.2
ANSWER_TIMEOUT_S = 60.0


class Api:
    """Requests of the user `admin` about the cluster `local`."""

    def __init__(self, url: str, home: Path) -> None:
        self._cluster = f"{url.rstrip('/')}/api/v1/clusters/{CLUSTER}"
        made = subprocess.run(
            [sys.executable, "manage.py", "create_token", "admin"],
            cwd=ROOT,
            env={**clean_environment(), "GANTRY_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        self._headers = {"Authorization": f"Token {made.stdout.strip()}"}

    def request(self, path: str, body: object = None) -> Any:
        """GET a path below the cluster, or POST a body to the path."""
        headers = {**self._headers, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._cluster}/{path}", data, headers)
        with NO_PROXY.open(request, timeout=ANSWER_TIMEOUT_S) as answer:
            return json.load(answer)

    def replicas_in_sync(self) -> list[dict[str, Any]]:
        """Wait until every replica of the only set is in sync; return the replicas."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            (found,) = self.request("replica-sets")["items"]
            replicas: list[dict[str, Any]] = found["replicas"]
            if [each["in_sync"] for each in replicas] == [True] * 3:
                return replicas
            assert time.monotonic() < deadline, found
            time.sleep(POLL_S)

    def start_job(self) -> int:
        """Start an ingest job; returns its number."""
        return int(self.request("jobs", {"kind": "ingest"})["id"])

    def job(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.request(f"jobs/{number}")
        return found

    def wait_for(self, number: int, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll a job until it has a state."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so(job := self.job(number)):
            assert time.monotonic() < deadline, job
            time.sleep(POLL_S)
        return job


def require_spark() -> None:
    """Skip the test on machines without a Java for Spark."""
    command = [sys.executable, "-m", "spark_jobs", "check", "--json"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout)
    if not found["usable"]:
        pytest.skip(f"Spark cannot run here: {found['reason']}")
