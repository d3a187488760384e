"""Steps of a start that need disk space.

On a full disk the store starts without them and is read-only. The steps run again, in order and in
an I/O thread, until they succeed; then the store accepts messages without a restart.
"""

from collections import deque
from collections.abc import Callable

from core_broker.store.full_disk import is_disk_full
from core_broker.store.health import Health
from core_broker.store.io_threads import Job, SerialExecutor

#: Interval between two attempts, ms.
RETRY_MS = 1000


class PostponedSteps:
    """Runs steps, and repeats the steps that a full disk prevents. Event loop only."""

    def __init__(self, executor: SerialExecutor, health: Health) -> None:
        self._executor = executor
        self._health = health
        #: Pending steps: the job, and the call on the loop after the job.
        self._steps: deque[tuple[Job, Callable[[], None]]] = deque()
        self._is_running = False
        self._next_ms = 0

    def attempt(self, job: Job, then: Callable[[], None] = lambda: None) -> None:
        """Run a job that may be repeated, then `then`; waits for the disk.

        On a full disk, and behind a postponed job, the job is postponed. Raises other errors.
        """
        if not self._steps:
            try:
                job()
            except OSError as error:
                if not is_disk_full(error):
                    raise
                self._health.set_postponed(str(error))
            else:
                then()
                return
        self._steps.append((job, then))

    def tick(self, now_ms: int) -> None:
        """Run the first postponed job again when it is due; `now_ms` is the monotonic clock."""
        if not self._steps or self._is_running or now_ms < self._next_ms:
            return
        self._is_running = True
        self._next_ms = now_ms + RETRY_MS
        job, then = self._steps[0]

        def done(error: Exception | None) -> None:
            self._is_running = False
            if error is not None:
                self._health.set_postponed(str(error))
                return
            then()
            self._steps.popleft()
            if not self._steps:
                self._health.set_postponed(None)
            self._next_ms = 0

        self._executor.submit(job, done)
