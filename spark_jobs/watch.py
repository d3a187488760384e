"""Watch Spark's tasks while the job waits for them, and report how far they are."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError

from spark_jobs.progress import Progress, Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S: Final = 0.5


@contextmanager
def watching(
    spark: "SparkSession", progress: Progress, *, share: tuple[float, float] = (0, 1)
) -> Iterator[None]:
    """Report for as long as the block runs; the block is this `share` of the stage.

    While the stage is READ, the records its tasks have read so far count as rows.
    """
    over = threading.Event()
    begin, end = share
    rows_before = progress.rows

    def look() -> None:
        done, records = _running_tasks(spark)
        if progress.stage is Stage.READ:
            rows = min(rows_before + records, progress.rows_total)
            progress.rows = max(rows, progress.rows)  # a stage that just ended counts no more
        progress.within(begin + (end - begin) * done)

    def watch() -> None:
        # A stage may be forgotten between two questions; if Spark is gone the job itself finds out.
        while not over.wait(POLL_S):
            with suppress(Py4JError, OSError):
                look()

    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _running_tasks(spark: "SparkSession") -> tuple[float, int]:
    """Of the running stages: the share of tasks that are done, and the records read so far."""
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
    """What Spark's own UI shows as records read; running tasks count with each heartbeat."""
    store = spark.sparkContext._jsc.sc().statusStore()
    return int(store.lastStageAttempt(stage_id).inputRecords())
