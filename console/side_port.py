"""The HTTP side port of worker and scheduler, for probes; CONSOLE_SIDE_PORT turns the port on.

/livez      503 when the loop has not turned for LIFELESS_S although Redis answers: a restart helps
/readyz     503 while the loop does not turn: the worker takes no jobs, the scheduler starts none
/metrics    CPU, memory and open files of the process
/varz       age of the loop's last turn

The loop is the event loop of the worker's consumer, or the scheduler's. Either loop stands while
Redis is away. A restart would not help then, and would end running jobs.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from celery import bootsteps
from django.conf import settings

from console.web.dependencies import redis_problem
from core_broker.monitoring.access import MetricsAccess
from core_broker.monitoring.metrics import Metrics
from core_broker.monitoring.readiness import Readiness
from core_broker.monitoring.side_port import SidePort

#: Interval of the worker's turns, seconds. The scheduler's is at most five seconds.
TURN_S: Final = 1.0
#: Age of the last turn of a process that is not ready, seconds.
LATE_S: Final = 30.0
#: Age of the last turn of a process to restart, seconds.
LIFELESS_S: Final = 300.0
#: Time to bind or to close the port, seconds.
STEP_S: Final = 10.0


class Pulse:
    """The time of a loop's last turn; any thread may read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._turned_s: float | None = None

    def turned(self) -> None:
        self._turned_s = self._clock()

    @property
    def age_s(self) -> float:
        """Seconds since the last turn, or since the start."""
        return self._clock() - (self._turned_s or self._began_s)

    def lateness(self) -> str:
        """Why the process is not ready; "" when the loop turns."""
        if self._turned_s is None:
            return "the loop has not turned yet"
        if self.age_s > LATE_S:
            return f"the loop has not turned for {self.age_s:.0f} s"
        return ""

    def lifelessness(self) -> str:
        """Why the process should be restarted; "" otherwise."""
        if self.age_s > LIFELESS_S and redis_problem() is None:
            return f"the loop has not turned for {self.age_s:.0f} s, and Redis answers"
        return ""


#: Turns of this process's loop.
PULSE: Final = Pulse()


class ServedPort:
    """A side port on an event loop of its own, in a thread."""

    def __init__(self, side: SidePort, port: int) -> None:
        """Raises OSError for a used port."""
        self._side = side
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._wait(side.listen("", port))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        self._wait(self._side.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result(STEP_S)


def start_side_port() -> ServedPort | None:
    """Serve the side port; None without CONSOLE_SIDE_PORT. Raises OSError for a used port."""
    if not settings.SIDE_PORT:
        return None
    readiness, liveness = Readiness(), Readiness()
    readiness.check("loop", PULSE.lateness)
    liveness.check("loop", PULSE.lifelessness)
    access = MetricsAccess("CONSOLE_METRICS_TOKEN_FILE", settings.METRICS_TOKEN)
    return ServedPort(SidePort(readiness, _varz, Metrics(), access, liveness), settings.SIDE_PORT)


def _varz() -> dict[str, Any]:
    return {"pid": os.getpid(), "loop_age_s": round(PULSE.age_s, 3)}


class SidePortStep(bootsteps.StartStopStep):
    """Step of the worker's start: the side port, before the first connection to Redis."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._served: ServedPort | None = None

    def start(self, worker: Any) -> None:
        self._served = start_side_port()
        worker.timer.call_repeatedly(TURN_S, PULSE.turned)

    def stop(self, worker: Any) -> None:
        if self._served is not None:
            self._served.close()
