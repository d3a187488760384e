"""The ingest job as a stream: runs until stopped and reads new messages every few seconds.

A round does the same as a run of `ingest`: the snapshot of the lake is the only record of progress,
so a killed process leaves neither a gap nor a duplicate.
"""

import time
from collections.abc import Callable
from typing import Final

from spark_jobs.jobs.ingest import (
    Ingest,
    has_work,
    make_tables,
    new_ranges,
    read_cluster,
    snapshot_of_topic,
    with_retry_limits,
)
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.jobs.subscriptions import with_subscriptions
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from spark_jobs.spark.progress import Stage
from trace.lake import Lake

#: Minimum time between two upkeeps, seconds. An upkeep reads the retry limits of the groups again,
#: and deletes the files that the previous upkeep found replaced: an open reader has this time to
#: finish.
UPKEEP_EVERY_S: Final = 60.0


def run_follow(
    job: Ingest,
    every_s: int,
    runtime: Runtime,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> Result:
    """Run until the process is stopped or `is_over` returns true.

    Raises ValueError for a job without a cluster, and the errors of `run_ingest`.
    """
    connection = job.connection
    if connection is None:
        raise ValueError("only a cluster can be followed")
    result, progress = Result(), runtime.progress
    progress.enter(Stage.PLAN)
    with exclusive_writer(Lake(job.lake)) as writer:
        snapshot = with_retry_limits(snapshot_of_topic(writer.lake, job.topic), job)
        replaced = delete_unreferenced(writer.lake, snapshot)
        upkeep_due_s = time.monotonic() + UPKEEP_EVERY_S
        with runtime.start(job, writer, result, is_short=False) as run:
            while not is_over():
                begin_s = time.monotonic()
                if begin_s >= upkeep_due_s:
                    snapshot = with_retry_limits(snapshot, job)
                    replaced = delete_unreferenced(writer.lake, snapshot, among=replaced)
                    upkeep_due_s = begin_s + UPKEEP_EVERY_S
                snapshot = with_subscriptions(writer, snapshot, connection, runtime.now_ms())
                ranges = new_ranges(job, connection, snapshot, result)
                progress.rows_total = progress.rows + sum(part.count for part in ranges)
                snapshot = read_cluster(run, snapshot, ranges)
                if not job.events_only and has_work(snapshot):
                    snapshot = make_tables(run, snapshot)
                time.sleep(max(0.0, begin_s + every_s - time.monotonic()))
    return result
