"""Report the progress of Spark's tasks while a job waits for Spark."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError

from spark_jobs.spark.progress import Progress, Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S: Final = 0.5


@contextmanager
def monitor_tasks(
    spark: "SparkSession", progress: Progress, *, share: tuple[float, float] = (0, 1)
) -> Iterator[None]:
    """Report progress during the block; the block is the given `share` of the stage.

    In the stage READ, the records read by the tasks count as rows.
    """
    stopped = threading.Event()
    begin, end = share
    rows_before = progress.rows

    def report() -> None:
        done, records = _running_tasks(spark)
        if progress.stage is Stage.READ:
            rows = min(rows_before + records, progress.rows_total)
            progress.rows = max(rows, progress.rows)  # finished Spark stages no longer count
        progress.update(begin + (end - begin) * done)

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


def _running_tasks(spark: "SparkSession") -> tuple[float, int]:
    """Finished share of the tasks in the running stages, and the records read so far."""
    tracker = spark.sparkContext.statusTracker()
    tasks = done = records = 0
    for stage_id in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage_id)
        if info is None:
            continue
        tasks += info.numTasks
        done += info.numCompletedTasks
        records += _input_records(spark, stage_id)
    return (done / tasks if tasks else 0.0), records


def _input_records(spark: "SparkSession", stage_id: int) -> int:
    """The records read, as in Spark's UI; running tasks update the count with each heartbeat."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return int(store.lastStageAttempt(stage_id).inputRecords())
