"""Whether a worker takes jobs: the last answer to a ping over the task queue.

A ping without an answer takes PING_TIMEOUT_S, so requests never wait for one: they get the last
answer with its time, and an answer older than KEPT_S starts the next ping in a thread.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from celery import current_app
from kombu.exceptions import OperationalError
from redis import RedisError

from console.gateway import now_ms

#: Time for the first worker to answer, seconds.
PING_TIMEOUT_S: Final = 1.0
#: Age of an answer at which the next request starts a ping, milliseconds.
KEPT_MS: Final = 3_000
#: Age from which an answer tells nothing about the present, milliseconds: lists of jobs ask every
#: five seconds.
TOLD_MS: Final = 30_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """The outcome of a ping, and the time of its end."""

    at_ms: int
    answers: bool


class WorkerPing:
    """The last answer of the workers, for all viewers of a process; at most one ping at a time."""

    def __init__(self, ping: Callable[[], bool], clock_ms: Callable[[], int] = now_ms) -> None:
        self._ping = ping
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._kept: WorkerAnswer | None = None
        self._running: threading.Thread | None = None

    def last(self) -> WorkerAnswer | None:
        """Return the last answer without waiting; None when the state is unknown.

        Starts a ping in the background for an answer older than KEPT_MS. Call with Redis up only.
        """
        with self._lock:
            age_ms = None if self._kept is None else self._clock_ms() - self._kept.at_ms
            # A clock that was set back makes the age negative: the answer may be of any time.
            if self._running is None and (age_ms is None or not 0 <= age_ms <= KEPT_MS):
                self._running = threading.Thread(target=self._run, name="ping-workers", daemon=True)
                self._running.start()
            return self._kept if age_ms is not None and 0 <= age_ms <= TOLD_MS else None

    def _run(self) -> None:
        kept: WorkerAnswer | None = None
        try:
            kept = WorkerAnswer(answers=self._ping(), at_ms=self._clock_ms())
        except (OperationalError, RedisError, OSError) as failure:
            log.info("the workers cannot be asked: %s", failure)  # Redis is down: unknown
        finally:
            with self._lock:
                self._kept, self._running = kept, None


def _answers() -> bool:
    return bool(current_app.control.inspect(timeout=PING_TIMEOUT_S, limit=1).ping())


_workers: Final = WorkerPing(_answers)


def last_answer() -> WorkerAnswer | None:
    """Return the last answer of this process's workers; see `WorkerPing.last`."""
    return _workers.last()
