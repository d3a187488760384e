"""One running program: its process, its output, its end.

Each program leads a session of its own: Ctrl-C at the terminal reaches only `up`, which stops the
programs in order, and what a program left behind can be killed by its group. Should `up` itself
be killed, the kernel sends every program SIGTERM (prctl PR_SET_PDEATHSIG; Linux only). It does so
once for each thread of `up`, and programs take a second SIGTERM for impatience, so `up` has none.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from console.launcher.logs import ProgramLog
from console.launcher.service import Service

PR_SET_PDEATHSIG = 1
PROBE_INTERVAL_S = 0.05
READ_BYTES = 64 * 1024
OUTPUT_GRACE_S = 1.0  # for the last lines of a program that ended
PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent


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
        # A pipe of our own: with asyncio's, Process.wait() also waits for whoever holds the pipe.
        read_end, write_end = os.pipe()
        reader = os.fdopen(read_end, "rb", buffering=0)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.service.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                env={**os.environ, **self.service.env},
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
        """Wait until the program is ready (True) or has ended without being so (False).

        Raises TimeoutError when neither comes within the service's time.
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
        """Wait for the program's end and its last output; return its code (negative: a signal)."""
        code = await self._running.wait()
        self.kill()  # what it started may have outlived it
        if self._output is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._output, OUTPUT_GRACE_S)
        return code

    async def stop(self) -> bool:
        """Ask the program to end and wait; kill it after its grace. False when it was killed."""
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
    """Let the running loop learn of the end of programs from the kernel.

    Python 3.11 would use a thread for each program; later ones do this by themselves.
    """
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)


def dies_with_parent() -> Callable[[], None] | None:
    """Return what a new process must do so that it ends with this one, or None off Linux."""
    if not sys.platform.startswith("linux"):
        return None
    # Loaded here and not in the new process, where only system calls are safe.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return arrange
