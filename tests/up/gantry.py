"""Runs `manage.py up` as a program, and reads its terminal output."""

import functools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from tests.support.processes import command_line

ROOT = Path(__file__).resolve().parents[2]
START_DEADLINE_S = 180.0
STOP_DEADLINE_S = 60.0
POLL_S = 0.05
#: Exit codes of `interrupt`: make and the shell end by the signal, too, or report the signal.
INTERRUPTED = frozenset({0, 2, -signal.SIGINT, 128 + signal.SIGINT})
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
#: Runs a shell command in a network of its own, with a loopback interface only.
OWN_NETWORK = ("unshare", "--net", "bash", "-c", 'ip link set lo up && exec bash -c "$1"', "bash")


class Gantry:
    """One `manage.py up` on free ports; the exit of the block kills all remaining processes.

    `typed` is a command as a reader of the documents types it instead: it runs in a network of its
    own, with the ports of the documents.
    """

    def __init__(
        self,
        home: Path,
        *arguments: str,
        command: str = "up",
        installed: Path | None = None,
        typed: str = "",
        **environ: str,
    ) -> None:
        program, folder = ["manage.py"], ROOT
        if installed:  # the folder of an installed package
            program, folder = ["-m", "gantry"], home.parent
            environ["PYTHONPATH"] = str(installed)
        ports = ("--namesrv-port=0", "--broker-port=0", "--console-port=0")
        words = [sys.executable, *program, command, f"--home={home}", *ports, *arguments]
        if typed:
            words, environ = [*OWN_NETWORK, typed], {"GANTRY_HOME": str(home)}
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env={**clean_environment(), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._arrived: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        #: Child processes at the last call of `remember_programs`.
        self.programs: list[psutil.Process] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "Gantry":
        return self

    def __exit__(self, *_: object) -> None:
        self.remember_programs()
        if self.alive:
            self._process.kill()
        for program in self.programs:
            if program.is_running():
                program.kill()
        self._process.wait(STOP_DEADLINE_S)
        self._reader.join()  # ends with the last process that has the pipe open

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._arrived.put(line.rstrip("\n"))
        self._arrived.put(None)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def until(self, pattern: str) -> re.Match[str]:
        """Read lines until a line matches; fail with the whole output after the deadline."""
        deadline = time.monotonic() + START_DEADLINE_S
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                line = self._arrived.get(timeout=left_s)
            except queue.Empty:
                break
            if line is None:
                break
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match
        raise AssertionError(f"no line matches {pattern!r}:\n{self.text}")

    def until_ready(self) -> str:
        """Wait for the ready line; return the console's address."""
        url = self.until("^Gantry is ready: (.+)$")[1]
        self.remember_programs()
        return url

    def remember_programs(self) -> None:
        if self.alive:
            self.programs = psutil.Process(self._process.pid).children(recursive=True)

    @property
    def names(self) -> set[str]:
        """Running programs, by the distinctive word of the command line."""
        words = ("namesrv", "core_broker", "uvicorn", "worker", "beat", "valkey-server", "demo")
        commands = [" ".join(command_line(program)) for program in self.programs]
        return {word for word in words if any(word in command for command in commands)}

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, wait for the exit, and return the exit code."""
        self._process.send_signal(number)
        return self.wait()

    def interrupt(self) -> int:
        """Press Ctrl-C: every program of the terminal gets SIGINT; the code is in INTERRUPTED."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait(STOP_DEADLINE_S)
        while (line := self._arrived.get(timeout=STOP_DEADLINE_S)) is not None:
            self.lines.append(line)
        return code

    def left_running(self) -> list[str]:
        """Return the programs that still run after STOP_DEADLINE_S; zombies do not run."""
        _, alive = psutil.wait_procs(self.programs, STOP_DEADLINE_S)
        return [" ".join(line) for program in alive if (line := command_line(program))]


@functools.cache
def why_not_typed() -> str:
    """Return the reason why no command can be `typed` here; "" when Gantry can start so."""
    if os.geteuid() != 0 or None in map(shutil.which, ("ip", "unshare", "bash", "make")):
        return "a network of its own needs root and the programs ip, unshare, bash and make"
    if subprocess.run([*OWN_NETWORK, "true"], capture_output=True, check=False).returncode:
        return "this machine admits no network namespaces"
    made = subprocess.run(["make", "-q", ".venv/.ready"], cwd=ROOT, check=False)
    return "make up would install the environment first" if made.returncode else ""


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that Gantry reads, and those of `make test`."""
    foreign = re.compile(
        r"ROCKETMQ_|GANTRY_|CONSOLE_|DJANGO_|NAMESRV_ADDR$|REDIS_URL$|PORT$|MAKE|MFLAGS$|ARGS$"
    )
    return {name: value for name, value in os.environ.items() if not foreign.match(name)}


def status_of(url: str) -> int:
    """GET a URL and return the status of the last response."""
    try:
        return int(NO_PROXY.open(url, timeout=10).status)
    except urllib.error.HTTPError as answer:
        return answer.code
