"""The outcome of a job: the last line of its reports, and the exit code of its program."""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import IntEnum
from typing import Final

from core_broker.errors import RequestRefused, TransportError
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.sources.queues import ReadError
from spark_jobs.spark.java import SparkUnavailableError
from trace.lake import LakeError

log = logging.getLogger(__name__)

REASON_CHARS_MAX: Final = 500

Work = Callable[[Runtime], Result]


class Exit(IntEnum):
    """Exit codes of the programs."""

    DONE = 0
    FAILED = 1
    NO_SPARK = 3
    LAKE = 4
    CLUSTER = 5


def run_and_report(
    name: str,
    work: Work,
    runtime: Runtime,
    *,
    is_unreported: Callable[[Exception], bool] = lambda _error: False,
) -> Exit:
    """Run the job and report the result or the error as the last line; returns the exit code.

    Errors for which `is_unreported` returns true are only logged.
    """
    progress, begin_s = runtime.progress, time.monotonic()
    try:
        result = work(runtime)
    except Exception as error:
        log.exception("%s failed", name)
        if not is_unreported(error):
            progress.error(type(error).__name__, reason_of(error))
        return exit_code(error)
    progress.done(**asdict(result), seconds=round(time.monotonic() - begin_s, 1))
    return Exit.DONE


def exit_code(error: Exception) -> Exit:
    if isinstance(error, SparkUnavailableError):
        return Exit.NO_SPARK
    if isinstance(error, LakeError):
        return Exit.LAKE
    if isinstance(error, TransportError | RequestRefused | ReadError):
        return Exit.CLUSTER
    return Exit.FAILED


def reason_of(error: Exception) -> str:
    """A one-line reason: Spark wraps an error of a worker in pages of traceback."""
    text = str(error)
    raised_by_worker = re.search(r"^(?:core_broker|spark_jobs)\.[\w.]+: (.+)$", text, re.MULTILINE)
    reason = raised_by_worker.group(1) if raised_by_worker else text.strip().partition("\n")[0]
    return (reason or type(error).__name__)[:REASON_CHARS_MAX]
