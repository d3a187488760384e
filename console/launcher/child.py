"""One running program: process, output, exit.

Each program leads a new session: Ctrl-C at the terminal reaches only `up`, which stops the programs
in order, and a process group allows killing the descendants of a program. When `up` is killed, the
kernel sends every program SIGTERM (prctl PR_SET_PDEATHSIG; Linux only). The kernel sends SIGTERM at
the exit of each thread of `up`, and programs treat a second SIGTERM as a request to stop at once,
so `up` starts no threads.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from console.launcher.logs import ProgramLog
from console.launcher.service import Service
from console.project_files import PROJECT_ROOT

PR_SET_PDEATHSIG = 1
PROBE_INTERVAL_S = 0.05
READ_BYTES = 64 * 1024
OUTPUT_GRACE_S = 1.0  # time to read the last output of a terminated program


#: Variables of `up` that a program gets from its `Service.env` only.
SECRETS = frozenset({"GANTRY_ADMIN_PASSWORD"})


def environment(service: Service) -> dict[str, str]:
    """Return the variables of a program: those of `up` without secrets, and the service's own."""
    kept = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**kept, **service.env}


class Child:
    """Runs a service's program once. Create, `start`, then `until_ready`, `wait` and `stop`."""

    def __init__(self, service: Service, log: ProgramLog) -> None:
        self.service = service
        self._log = log
        self._seen = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._output: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "start() comes first"
        return self._process

    async def start(self) -> None:
        """Start the program; raises OSError when it cannot be executed."""
        self._log.begin(awaited=self.service.ready_line, on_seen=self._seen.set)
        # os.pipe() instead of asyncio's PIPE: with PIPE, Process.wait() waits until all holders
        # close the pipe.
        read_end, write_end = os.pipe()
        reader = os.fdopen(read_end, "rb", buffering=0)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.service.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                env=environment(self.service),
                cwd=PROJECT_ROOT,
                start_new_session=True,
                preexec_fn=dies_with_parent(),
            )
        except BaseException:
            reader.close()
            raise
        finally:
            os.close(write_end)
        self._output = asyncio.create_task(
            self._pump(reader), name=f"output of {self.service.name}"
        )

    async def until_ready(self) -> bool:
        """Wait until the program is ready (True) or has exited before (False).

        Raises TimeoutError when neither happens within the service's `ready_timeout_s`.
        """
        async with asyncio.timeout(self.service.ready_timeout_s):
            if self.service.once:
                return await self.wait() == 0
            while self._running.returncode is None:
                if await self._is_ready():
                    return True
                await asyncio.sleep(PROBE_INTERVAL_S)
        return False

    async def _is_ready(self) -> bool:
        if self.service.probe is not None:
            return await self.service.probe()
        return self.service.ready_line is None or self._seen.is_set()

    async def wait(self) -> int:
        """Wait for the program's exit and last output; return the code (negative: a signal)."""
        code = await self._running.wait()
        self.kill()  # descendants may have outlived the program
        if self._output is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._output, OUTPUT_GRACE_S)
        return code

    async def stop(self) -> bool:
        """Send SIGTERM and wait; send SIGKILL after `stop_grace_s`.

        Return False after a SIGKILL.
        """
        with suppress(ProcessLookupError):
            self._running.terminate()
        try:
            async with asyncio.timeout(self.service.stop_grace_s):
                await self._running.wait()
        except TimeoutError:
            self.kill()
            await self.wait()
            return False
        await self.wait()
        return True

    def kill(self) -> None:
        """Kill the program's whole process group now."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _pump(self, pipe: IO[bytes]) -> None:
        output = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), pipe
        )
        try:
            while data := await output.read(READ_BYTES):
                self._log.feed(data)
        finally:
            transport.close()
            self._log.end()


def watch_without_threads() -> None:
    """Let the running event loop watch child processes through pidfds.

    Python 3.11 defaults to one thread per process; later versions default to pidfds.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)


def dies_with_parent() -> Callable[[], None] | None:
    """Return a preexec_fn that ties a new process to this process; None on other systems than
    Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    # Load libc before the fork: after the fork only system calls are safe.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before prctl()
            os._exit(1)

    return arrange
