"""A thread of a worker that works at every multiple of an interval."""

import logging
import threading
from collections.abc import Callable

from django.db import connection

from console.gateway import now_ms

log = logging.getLogger(__name__)


class Periodic:
    """A thread from `start` to `stop`.

    `step` gets the time, a multiple of the interval; an exception is logged, and the next step
    follows at the next time. A step that lasts longer than the interval skips times. `end` runs in
    the thread after the last step.
    """

    def __init__(
        self,
        name: str,
        interval_ms: int,
        step: Callable[[int], object],
        end: Callable[[], object],
        *,
        stop_s: float,
    ) -> None:
        self._interval_ms = interval_ms
        self._step, self._end = step, end
        self._stop_s = stop_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the running step; wait `stop_s` for it."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(self._stop_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._until_next_s()):
            try:
                self._step(now_ms() // self._interval_ms * self._interval_ms)
            except Exception:
                log.exception("a step of %s failed", self._thread.name)
            finally:
                connection.close()
        self._end()
        connection.close()

    def _until_next_s(self) -> float:
        """Return the time to the next multiple of the interval, seconds."""
        return (self._interval_ms - now_ms() % self._interval_ms) / 1000
