"""Runs of jobs: the services of the program, the state of a run, and the result."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from spark_jobs.spark.lake_writer import LakeWriter
from spark_jobs.spark.progress import Progress, Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Starts Spark; the argument says whether the run will be a short run. Jobs call StartSpark only
#: when there is work: Spark takes seconds to start, and half a gigabyte of memory.
StartSpark = Callable[[bool], AbstractContextManager["SparkSession"]]
#: Milliseconds since 1970.
Clock = Callable[[], int]
#: The dataclass with the options of a job: `Ingest`, `Derive` or `Compact`.
Options = TypeVar("Options")


@dataclass(slots=True)
class Result:
    """Counts of a run, over all its micro-batches."""

    #: Messages.
    rows: int = 0
    #: Trace records.
    records: int = 0
    #: Trace records with the kind Broken.
    broken: int = 0
    #: Messages that expired in the broker before the run.
    lost: int = 0
    #: Hours whose tables were derived, or whose events were compacted.
    hours: int = 0
    #: Why there was nothing to do.
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run(Generic[Options]):
    """A run with Spark started and the lake locked. Only `result` changes."""

    options: Options
    session: "SparkSession"
    writer: LakeWriter
    progress: Progress
    now_ms: Clock
    result: Result


@dataclass(frozen=True, slots=True)
class Runtime:
    """The services that a program provides to its job, before Spark is started."""

    progress: Progress
    start_spark: StartSpark
    now_ms: Clock
    #: Spark is already running.
    is_warm: bool = False

    @contextmanager
    def start(
        self, options: Options, writer: LakeWriter, result: Result, *, is_short: bool
    ) -> Iterator[Run[Options]]:
        """Start Spark for a `with` block; the block gets the run.

        `is_short` selects the settings for a run of seconds. Raises what `start_spark` raises.
        """
        if not self.is_warm:
            self.progress.enter(Stage.START)
        with self.start_spark(is_short) as session:
            self.progress.set_spark_ui(session.sparkContext.uiWebUrl)
            yield Run(options, session, writer, self.progress, self.now_ms, result)
