"""Create a Spark session with the settings that every job needs.

The session runs on SPARK_MASTER (default `local[*]`) and writes an event log, so that the Spark
history server can show finished jobs. `spark_jobs.spark.java` chooses the Java runtime.
"""

import logging
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core_broker.errors import GantryError
from spark_jobs.spark.java import SparkUnavailableError, java_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
LOOPBACK: Final = "127.0.0.1"
EVENT_LOGS_KEPT: Final = 50

SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.log.level": "ERROR",
    "spark.python.daemon.module": "spark_jobs.spark.daemon",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",  # adaptive execution merges small partitions
    # Limits of Spark's memory of finished jobs, for a session of many jobs.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "2000",
    "spark.ui.showConsoleProgress": "false",
}

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

#: Java only moves whole Arrow tables between the tasks: its optimizing compiler would take more CPU
#: time than it saves. About 70 MiB of the heap are in use between the tasks. By default the heap
#: starts with 1/64 of the machine's memory, and keeps what a task once needed: the job would touch
#: all of this memory before the first full collection, an hour later.
JAVA_DEFAULTS: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-Xms96m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
)

#: Environment of Java and the Python workers: few arenas of glibc, which return freed memory to the
#: system. By default every thread has an arena, and Arrow an allocator; each keeps freed memory.
#: The thresholds are larger than the buffers of a read, which the next read uses again.
MEMORY_SETTINGS: Final[Mapping[str, str]] = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(4 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(16 * 1024 * 1024),
}

#: Additional settings for a run of seconds.
SHORT_RUN: Final[Mapping[str, str]] = {"spark.sql.shuffle.partitions": "2"}

#: Log4j settings: errors only.
LOG_SETTINGS: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %p %c %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings that are fixed at the start of a session."""

    #: Folder of event logs and the Java shim, absolute.
    run_dir: Path
    master: str
    #: Settings of Spark that override the defaults.
    spark: Mapping[str, str]


class SparkLostError(GantryError):
    """Spark's Java process ended during a job."""

    @classmethod
    def during_work(cls) -> "SparkLostError":
        return cls(
            "Spark's Java process ended in the middle of the work: it was killed, or ran out of "
            "memory (spark.driver.memory). Nothing was committed; the next run starts afresh."
        )


def start_session(
    app_name: str,
    *,
    run_dir: Path,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Start Spark, or raise SparkUnavailableError with installation advice.

    `run_dir` holds the event logs and the Java shim. `settings` override the defaults.
    """
    java = java_for_spark(os.environ, run_dir)
    os.environ["JAVA_HOME"] = str(java.home)
    # Otherwise the workers may start a Python without pyarrow and Gantry.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    for name, value in MEMORY_SETTINGS.items():
        os.environ.setdefault(name, value)
    chosen = chosen_master(master)
    if is_local(chosen):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    return _build(app_name, chosen, all_settings(chosen, run_dir, settings or {}))


@contextmanager
def spark_session(
    app_name: str,
    *,
    run_dir: Path,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> "Iterator[SparkSession]":
    """`start_session` for a `with` block; stops the session at the end.

    Raises SparkLostError when the Java process ends before the block.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError

    session = start_session(app_name, run_dir=run_dir, master=master, settings=settings)
    try:
        yield session
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError.during_work() from error
    finally:
        with suppress(Py4JError, OSError):  # the session may be gone already
            session.stop()


def chosen_master(master: str | None) -> str:
    """`master`, else SPARK_MASTER, else DEFAULT_MASTER."""
    return master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER


def is_local(master: str) -> bool:
    """Whether all of Spark runs in one process on this machine."""
    return master.startswith("local")


def all_settings(master: str, run_dir: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """The defaults, the settings for master and folder, and `settings` as overrides."""
    event_log = run_dir / "spark-events"
    event_log.mkdir(parents=True, exist_ok=True)
    _delete_oldest(event_log)
    merged = {
        **SETTINGS,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.resolve().as_uri(),
        "spark.sql.warehouse.dir": (run_dir / "spark-warehouse").resolve().as_uri(),
    }
    log_settings = run_dir / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS, encoding="utf-8")
    quiet = f"-Dlog4j2.configurationFile={log_settings.resolve().as_uri()}"
    more = settings.get(JAVA_OPTIONS, JAVA_DEFAULTS)
    if is_local(master):  # keep Spark's ports and UI off the network
        merged |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return merged | dict(settings) | {JAVA_OPTIONS: f"{quiet} {more}".strip()}


def _delete_oldest(event_log: Path) -> None:
    """Delete the oldest event logs, to keep EVENT_LOGS_KEPT with the new log."""
    newest_first = sorted(event_log.iterdir(), key=_modified, reverse=True)
    for path in newest_first[EVENT_LOGS_KEPT - 1 :]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # deleted by another session at the same time
        return 0.0


def _build(app_name: str, master: str, settings: Mapping[str, str]) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.WARNING)
    # pandas 3 is newer than the versions tested by PySpark 4.3; the functions used here work.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SparkUnavailableError(f"Spark did not start on {master}: {error}") from error
