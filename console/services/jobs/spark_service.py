"""The Spark service of this worker: the process `python -m spark_jobs serve`, its socket and log.

The service starts with the first Spark job and keeps Spark ready for later jobs. It ends after
CONSOLE_SPARK_IDLE_MINUTES, with the worker that started it, or by `stop`. Workers of one home
folder share a service.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from django.conf import settings

from console.services.jobs.paths import spark_service_log, spark_socket
from console.services.jobs.process import clean_environment
from console.services.jobs.spark import session_arguments

#: Time of a new service until it listens, seconds.
START_TIMEOUT_S: Final = 60.0
STOP_GRACE_S: Final = 5.0
POLL_S: Final = 0.05
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


class ServiceUnavailable(Exception):
    """The service does not run and cannot be started, with the reason."""


class ServiceConnection:
    """A connection to the service, and its process."""

    def __init__(self, connected: socket.socket) -> None:
        """Raises ProcessLookupError when the service has just ended."""
        self.socket = connected
        peer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self._process = os.pidfd_open(_CREDENTIALS.unpack(peer)[0])

    def kill_service(self) -> None:
        """Kill the service, and wait for its end; Spark ends with the service."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        poll.poll(STOP_GRACE_S * 1000)

    def close(self) -> None:
        self.socket.close()
        os.close(self._process)


class SparkService:
    """Starts, connects and stops the service; methods may run in any thread."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def connect(self, on_wait: Callable[[], None]) -> ServiceConnection:
        """Connect to the service, and start the service when none runs.

        `on_wait` is called while the service starts, and may raise. Raises ServiceUnavailable.
        """
        with contextlib.suppress(OSError):
            return _connected(spark_socket())
        while not self._starting.acquire(timeout=POLL_S):
            on_wait()
        try:
            self.stop_ended()
            return self._started(on_wait)
        finally:
            self._starting.release()

    def stop_ended(self) -> None:
        """Stop the Java of a service that has ended."""
        if self._process is not None and self._process.poll() is not None:
            self.stop()

    def stop(self) -> None:
        """Stop the service that this process started, with its Java."""
        process, self._process = self._process, None
        if process is None:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_GRACE_S)
        if process.stdin is not None:
            process.stdin.close()

    def _started(self, on_wait: Callable[[], None]) -> ServiceConnection:
        """The connection to a new service; to another service when that one is faster."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            on_wait()
            with contextlib.suppress(OSError):
                return _connected(spark_socket())
            if self._process is None:
                self._process = self._start()
            if code := self._process.poll():
                self.stop()
                raise ServiceUnavailable(
                    f"The Spark service ended with code {code}; see {spark_service_log()}."
                )
            time.sleep(POLL_S)
        raise ServiceUnavailable(f"The Spark service did not listen within {START_TIMEOUT_S:g} s.")

    def _start(self) -> "subprocess.Popen[bytes]":
        output = spark_service_log()
        output.parent.mkdir(parents=True, exist_ok=True)
        idle_s = int(settings.SPARK_IDLE_MINUTES * 60)
        command = [
            *(sys.executable, "-m", "spark_jobs", "serve", "--socket", str(spark_socket())),
            *("--idle-seconds", str(idle_s), "--until-stdin-closes"),
            *session_arguments(),
        ]
        try:
            with output.open("wb") as log:
                return subprocess.Popen(
                    command,
                    cwd=settings.BASE_DIR,
                    env=clean_environment(os.environ),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise ServiceUnavailable(f"{' '.join(command)} failed: {error}") from error


def _connected(path: Path) -> ServiceConnection:
    """Raises OSError when no service listens."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    connected = socket.socket(socket.AF_UNIX)
    try:
        # A path through the descriptor: socket addresses have 107 bytes at most.
        connected.connect(f"/proc/self/fd/{folder}/{path.name}")
        return ServiceConnection(connected)
    except OSError:
        connected.close()
        raise
    finally:
        os.close(folder)


#: The service of this process.
service: Final = SparkService()
