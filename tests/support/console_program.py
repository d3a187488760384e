"""A real console process, started with the command line of `manage.py up`, without clusters.

with ConsoleProgram(tmp_path, CONSOLE_TRUSTED_PROXIES="127.0.0.1") as console:
    console.port

With `is_prepared`, the set-up step does not run: the home folder has a database.
"""

import os
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import TracebackType

from console.launcher.options import Options
from console.launcher.ports import Ports
from console.launcher.services import Plan, RedisPlan
from tests.support.processes import kill_program, stop_program

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120.0
REQUEST_TIMEOUT_S = 60.0
POLL_S = 0.05
ADMIN_PASSWORD = "correct horse battery"


class ConsoleProgram:
    """The console of one home folder; the admin's password is ADMIN_PASSWORD."""

    def __init__(self, home: Path, *, is_prepared: bool = False, **environ: str) -> None:
        self._is_prepared = is_prepared
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        # Name server and broker do not run: their ports are not used.
        ports = Ports(
            namesrv=1, namesrv_http=1, broker=3, broker_http=1, console=self.port, redis=1
        )
        plan = Plan(Options(home=home), ports, RedisPlan(url=None))
        services = {each.name: each for each in plan.services(set_up=False)}
        self._command = services["console"].command
        foreign = ("GANTRY_", "CONSOLE_", "ROCKETMQ_", "REDIS_URL", "DATABASE_URL")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._env = {**kept, **services["console"].env, **environ}
        self._output = home / "console-output.txt"
        home.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "ConsoleProgram":
        if not self._is_prepared:
            prepare = [sys.executable, "-m", "console.launcher.prepare"]
            env = {**self._env, "GANTRY_ADMIN_PASSWORD": ADMIN_PASSWORD}
            subprocess.run(prepare, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._env, stdout=output, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                kill_program(self._process)
                raise AssertionError(f"the console did not start:\n{self.output}")
            time.sleep(POLL_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stop_program(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def request(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[HTTPResponse, bytes]:
        """Send one request; underscores in header names become hyphens."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_TIMEOUT_S)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body, headers=named)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            return self.request("GET", "/livez")[0].status == 200
        except OSError:
            return False
