"""Report the progress of Spark's tasks while a job waits for Spark."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError

from spark_jobs.spark.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S: Final = 0.5


@contextmanager
def monitor_tasks(spark: "SparkSession", progress: Progress, *, rows: int = 0) -> Iterator[None]:
    """Report progress during the block. Finished tasks count as their share of `rows`."""
    stopped = threading.Event()
    rows_before = progress.rows

    def report() -> None:
        done = _finished_share(spark)
        # A finished Spark stage no longer counts.
        progress.rows = max(rows_before + int(rows * done), progress.rows)
        progress.update(done)

    def poll() -> None:
        # Spark may drop a stage between two polls. A lost Java process surfaces in the job itself.
        while not stopped.wait(POLL_S):
            with suppress(Py4JError, OSError):
                report()

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _finished_share(spark: "SparkSession") -> float:
    """Finished share of the tasks in the running stages."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
    tasks = sum(stage.numTasks for stage in stages if stage)
    return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0
