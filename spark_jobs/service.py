"""The Spark service: runs jobs one after another on one warm Spark session, over a Unix socket.

A connection is one job. The client sends one line, the command line of a job:

    {"arguments": ["ingest", "--namesrv", "127.0.0.1:9876", "--lake", "/var/lake/local"]}

The service answers with lines. The first lines may be progress reports of the stage `wait`: another
job is running. The next line decides:

    {"event": "accepted"}
    {"event": "refused", "kind": "OtherSession", "message": "…"}

After `accepted` follow the lines of `spark_jobs.spark.progress`, and the end of the stream. A
refused job has not started. A stream that ends without `done`, `error` or `refused` means that
Spark or the service ended: before `accepted` the job has not started, afterwards the job may have
committed a part of its work and can be repeated. The client cancels the job by ending its side of
the stream.

A job must have the settings of the session: master, `--conf` and `--run-dir`. The service refuses
other jobs, and streams without an end (`--follow`).
"""

import json
import logging
import queue
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from core_broker.errors import GantryError
from spark_jobs.jobs.run import Runtime
from spark_jobs.outcome import Work, run_and_report
from spark_jobs.spark.progress import Progress, Stage
from spark_jobs.spark.session import SessionSettings, SparkLostError
from spark_jobs.spark.shared_session import SharedSession

log = logging.getLogger(__name__)

#: Maximum size of a request, bytes.
REQUEST_BYTES_MAX: Final = 64 * 1024
#: Time for a request to arrive, seconds.
REQUEST_TIMEOUT_S: Final = 5.0
#: Time for a client to read a report, seconds.
SEND_TIMEOUT_S: Final = 10
#: Maximum connections, with the waiting jobs.
CONNECTIONS_MAX: Final = 16
#: Loans of the session before the service ends: a bound for event logs and for the memory that
#: Java and Python collect over many jobs.
JOBS_MAX: Final = 200
POLL_S: Final = 0.5
ACCEPT_PAUSE_S: Final = 1.0


class RefusedError(GantryError):
    """The service does not run the requested job; `kind` is the name of the reason."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


_Argument = Annotated[str, msgspec.Meta(max_length=4096)]


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The line of a client: a command line without the program."""

    arguments: Annotated[list[_Argument], msgspec.Meta(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """A job as parsed from a command line."""

    name: str
    work: Work
    session: SessionSettings


@dataclass(slots=True)
class JobVisit:
    """Takes the job of a command line, in place of a run in this process."""

    job: RequestedJob | None = None


@dataclass(slots=True)
class _Task:
    job: RequestedJob
    connection: socket.socket
    progress: Progress
    ended: threading.Event = field(default_factory=threading.Event)


class Service:
    """The service. `parse` reads a command line into a visit and raises RefusedError."""

    def __init__(
        self,
        session: SharedSession,
        parse: Callable[[Sequence[str], JobVisit], None],
        *,
        idle_s: float,
        now_ms: Callable[[], int],
    ) -> None:
        self._session = session
        self._parse = parse
        self._idle_s = idle_s
        self._now_ms = now_ms
        self._tasks: queue.Queue[_Task] = queue.Queue(CONNECTIONS_MAX)
        self._running: _Task | None = None
        self._slots = threading.Semaphore(CONNECTIONS_MAX)
        self._ending = threading.Event()

    def serve(self, listener: socket.socket) -> None:
        """Run jobs in this thread until the idle time or JOBS_MAX is over, or Spark has ended.

        The caller closes the listener.
        """
        acceptor = threading.Thread(
            target=self._accept, args=(listener,), name="accept", daemon=True
        )
        acceptor.start()
        while not self._is_over():
            with suppress(queue.Empty):
                self._run(self._tasks.get(timeout=POLL_S))
        self._ending.set()

    def _is_over(self) -> bool:
        if self._session.is_lost:
            log.error("ending: Spark has ended")
            return True
        if not self._tasks.empty():
            return False
        if self._session.loans >= JOBS_MAX:
            log.info("ending after %d jobs", self._session.loans)
            return True
        if time.monotonic() - self._session.used_s > self._idle_s:
            log.info("ending: no job used Spark for %d s", self._idle_s)
            return True
        return False

    def _run(self, task: _Task) -> None:
        """Run a job and report its outcome; no outcome when Spark ended."""
        self._running = task
        name, work = task.job.name, task.job.work
        session = self._session
        runtime = Runtime(task.progress, session.lend, self._now_ms, is_warm=session.is_running)
        try:
            if not task.progress.is_cancelled:
                send_line(task.connection, {"event": "accepted"})
                log.info("%s begins", name)
                run_and_report(name, work, runtime, is_unreported=self._lost_spark)
        except OSError as error:
            log.warning("%s lost its client: %s", name, error)
        finally:
            self._running = None
            task.ended.set()
            with suppress(OSError):
                task.connection.shutdown(socket.SHUT_RDWR)

    def _lost_spark(self, error: Exception) -> bool:
        return isinstance(error, SparkLostError) or self._session.is_lost

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if self._ending.is_set():
                    return
                log.warning("a connection was not accepted: %s", error)
                time.sleep(ACCEPT_PAUSE_S)
                continue
            threading.Thread(
                target=self._converse, args=(connection,), name="client", daemon=True
            ).start()

    def _converse(self, connection: socket.socket) -> None:
        """Read the request of a connection, enqueue the job, and watch for the client's cancel."""
        with connection:
            timeout = struct.pack("ll", SEND_TIMEOUT_S, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
            if not self._slots.acquire(blocking=False):
                text = f"The service has {CONNECTIONS_MAX} connections already."
                _refuse(connection, RefusedError("TooManyConnections", text))
                return
            try:
                self._serve_client(connection)
            except RefusedError as refused:
                _refuse(connection, refused)
            except OSError as error:
                log.warning("a client was lost: %s", error)
            finally:
                self._slots.release()

    def _serve_client(self, connection: socket.socket) -> None:
        job = self._job_of(read_request(connection))
        out = connection.makefile("w", encoding="utf-8")
        task = _Task(job, connection, Progress(out, as_json=True))
        if self._running is not None:
            task.progress.enter(Stage.WAIT)
        self._tasks.put(task)
        self._watch(task)

    def _job_of(self, request: JobRequest) -> RequestedJob:
        visit = JobVisit()
        self._parse(request.arguments, visit)
        if visit.job is None:
            raise RefusedError("NoJob", "The arguments name no job.")
        if visit.job.session != self._session.settings:
            text = "The job has another master, --conf or --run-dir than the running session."
            raise RefusedError("OtherSession", text)
        return visit.job

    def _watch(self, task: _Task) -> None:
        """Wait for the end of the job; cancel the job when the client ends the stream."""
        poll = select.poll()
        poll.register(task.connection, select.POLLIN)
        while not task.ended.is_set():
            if not poll.poll(POLL_S * 1000):
                continue
            if not task.progress.is_cancelled and not task.ended.is_set():
                log.info("%s is cancelled", task.job.name)
            task.progress.cancel()
            # A job may give Spark new work after a cancel; the next stage ends the job.
            while not task.ended.is_set():
                if self._running is task:
                    self._session.cancel_work()
                task.ended.wait(POLL_S)


def read_request(connection: socket.socket) -> JobRequest:
    """Read the first line of a connection. Raises RefusedError for everything but a JobRequest."""
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    line = b""
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.001, deadline_s - time.monotonic()))
        try:
            part = connection.recv(REQUEST_BYTES_MAX)
        except TimeoutError:
            text = f"No complete request arrived within {REQUEST_TIMEOUT_S:g} s."
            raise RefusedError("RequestTimeout", text) from None
        if not part:
            raise RefusedError("BrokenRequest", "The stream ended before the end of the request.")
        line += part
        if len(line) > REQUEST_BYTES_MAX:
            text = f"The request is longer than {REQUEST_BYTES_MAX} bytes (REQUEST_BYTES_MAX)."
            raise RefusedError("RequestTooLarge", text)
    connection.settimeout(None)
    try:
        return msgspec.json.decode(line, type=JobRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError("BrokenRequest", f"The request is not readable: {error}") from None


def send_line(connection: socket.socket, line: dict[str, Any]) -> None:
    connection.sendall(json.dumps(line).encode() + b"\n")


def _refuse(connection: socket.socket, refused: RefusedError) -> None:
    log.warning("a request was refused: %s", refused)
    with suppress(OSError):
        send_line(connection, {"event": "refused", "kind": refused.kind, "message": str(refused)})
