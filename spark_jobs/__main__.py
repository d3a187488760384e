"""`python -m spark_jobs`: the jobs as programs.

Exit codes: 0 done, also when there was nothing to do; 1 failed; 2 wrong usage; 3 Spark or Java is
missing; 4 the lake is in use or not readable; 5 the cluster does not answer.
"""

import json
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core_broker.errors import ClientError, RequestRefused, TransportError
from spark_jobs.compact import Compact, run_compact
from spark_jobs.follow import run_follow
from spark_jobs.ingest import (
    MESSAGES_PER_ROUND,
    RETAIN_DAYS,
    TRACE_TOPIC,
    Ingest,
    Result,
    StartSpark,
    run_ingest,
)
from spark_jobs.java import SparkUnavailableError, java_for_spark
from spark_jobs.progress import Progress
from spark_jobs.queues import ReadError
from spark_jobs.session import SHORT_RUN, spark_session
from spark_jobs.stale_hours import TABLES_OF_JOB, Derive, hours_between, run_derive
from trace.lake import LakeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

log = logging.getLogger("spark_jobs")

REASON_CHARS_MAX = 500
POSITIVE = click.IntRange(min=1)


class Exit(IntEnum):
    """Exit codes of the programs."""

    DONE = 0
    FAILED = 1
    NO_SPARK = 3
    LAKE = 4
    CLUSTER = 5


def run_dir_option(command: click.decorators.FC) -> click.decorators.FC:
    """Where event logs and the Java shim go."""
    home = Path(os.environ.get("GANTRY_HOME") or "var")
    return click.option(
        "--run-dir",
        type=click.Path(path_type=Path),
        default=home / "spark",
        help="Folder for event logs and the like [GANTRY_HOME/spark].",
    )(command)


@click.group(help="Spark jobs of Gantry: trace analytics.")
def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")


@main.command()
@run_dir_option
@click.option("--json", "as_json", is_flag=True, help="Answer as one line of JSON.")
def check(run_dir: Path, as_json: bool) -> None:
    """Say whether Spark can run here, with which Java, or what is missing."""
    answer: dict[str, object] = {"usable": True, "java": None, "reason": None}
    try:
        java = java_for_spark(os.environ, run_dir)
        answer["java"] = f"Java {java.version} from {java.origin}"
    except SparkUnavailableError as error:
        answer |= {"usable": False, "reason": str(error)}
    click.echo(json.dumps(answer) if as_json else answer["reason"] or answer["java"])
    sys.exit(Exit.DONE if answer["usable"] else Exit.NO_SPARK)


def job_options(command: click.decorators.FC) -> click.decorators.FC:
    """What every job has."""
    options = (
        click.option(
            "--lake", required=True, type=click.Path(path_type=Path), help="Folder of the lake."
        ),
        run_dir_option,
        click.option(
            "--master", envvar="SPARK_MASTER", help="Spark master [SPARK_MASTER, local[*]]."
        ),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark."),
        click.option("--progress-json", is_flag=True, help="Report as JSON lines on stdout."),
        click.option(
            "--until-stdin-closes", is_flag=True, help="Stop when whoever started this is gone."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


RETAIN_DAYS_OPTION = click.option(
    "--retain-days", type=POSITIVE, default=RETAIN_DAYS, show_default=True
)


@main.command()
@click.option(
    "--namesrv", "-n", envvar="NAMESRV_ADDR", default="", help="host:port;… [NAMESRV_ADDR]"
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Read this store folder of a broker in place of a cluster.",
)
@click.option("--topic", default=TRACE_TOPIC, show_default=True, help="Topic with the traces.")
@click.option("--messages-per-round", type=POSITIVE, default=MESSAGES_PER_ROUND, show_default=True)
@RETAIN_DAYS_OPTION
@click.option(
    "--retry-seconds", type=POSITIVE, default=60, show_default=True, help="Wait so for brokers."
)
@click.option(
    "--retry-times-max",
    multiple=True,
    metavar="GROUP=N",
    help="Where clients set their own number.",
)
@click.option("--events-only", is_flag=True, help="Leave the tables to the jobs that make them.")
@click.option(
    "--follow", type=POSITIVE, metavar="SECONDS", help="Stay, and read what is new every SECONDS."
)
@job_options
def ingest(
    *,
    namesrv: str,
    store: Path | None,
    lake: Path,
    topic: str,
    messages_per_round: int,
    retain_days: int,
    retry_seconds: int,
    retry_times_max: tuple[str, ...],
    events_only: bool,
    follow: int | None,
    **shell: Any,
) -> None:
    """Bring what is new in the trace topic into the lake."""
    if not namesrv and store is None:
        raise click.UsageError("--namesrv or --store is needed.")
    if store is not None and follow is not None:
        raise click.UsageError("A store folder cannot be followed; --follow needs --namesrv.")
    job = Ingest(
        namesrv,
        lake.resolve(),
        topic,
        messages_per_round=messages_per_round,
        retain_days=retain_days,
        retry_timeout_ms=retry_seconds * 1000,
        events_only=events_only,
        store=store,
        retry_times_max=_limits(retry_times_max),
    )

    def work(progress: Progress, start_spark: StartSpark) -> Result:
        if follow is not None:
            return run_follow(job, follow, progress, start_spark, now_ms)
        return run_ingest(job, progress, start_spark, now_ms)

    run_job(f"ingest {topic}", work, **shell)


def _table_job(name: str, help_text: str) -> None:
    @main.command(name, help=help_text)
    @click.option(
        "--from", "begin", metavar="HOUR", help="First hour to make again, as 2026-11-05T13."
    )
    @click.option("--to", "end", metavar="HOUR", help="Last hour [the first].")
    @job_options
    def command(*, lake: Path, begin: str | None, end: str | None, **shell: Any) -> None:
        if end and not begin:
            raise click.UsageError("--to needs --from.")
        try:
            hours = hours_between(begin, end or begin) if begin else None
        except ClientError as error:
            raise click.UsageError(str(error)) from error
        job = Derive(lake.resolve(), TABLES_OF_JOB[name], hours)
        run_job(
            name,
            lambda progress, start_spark: run_derive(job, progress, start_spark, now_ms),
            **shell,
        )


_table_job("rollup", "Make the figures per minute of all hours that changed, or of given ones.")
_table_job("edges", "Make the table of who sends to whom.")
_table_job("slow", "Make the lists of slowest and of never-consumed messages.")


@main.command()
@RETAIN_DAYS_OPTION
@job_options
def compact(*, lake: Path, retain_days: int, **shell: Any) -> None:
    """Make one file of many small ones, and let go of old hours."""
    job = Compact(lake.resolve(), retain_days)
    run_job(
        "compact",
        lambda progress, start_spark: run_compact(job, progress, start_spark, now_ms),
        **shell,
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


Work = Callable[[Progress, StartSpark], Result]


def run_job(
    name: str,
    work: Work,
    *,
    run_dir: Path,
    master: str | None,
    conf: tuple[str, ...],
    progress_json: bool,
    until_stdin_closes: bool,
) -> None:
    """Run a job as this process; does not return."""
    settings = _settings(conf)
    if until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, name="stdin-watch", daemon=True).start()

    def start_spark(is_short: bool) -> "AbstractContextManager[SparkSession]":
        return spark_session(
            f"gantry {name}",
            run_dir=run_dir,
            master=master,
            settings={**(SHORT_RUN if is_short else {}), **settings},
        )

    sys.exit(_reported(name, work, Progress(sys.stdout, as_json=progress_json), start_spark))


def _reported(name: str, work: Work, progress: Progress, start_spark: StartSpark) -> Exit:
    """Run the job; whatever happens becomes its last line and its exit code."""
    begun = time.monotonic()
    try:
        result = work(progress, start_spark)
    except Exception as error:
        log.exception("%s failed", name)
        progress.error(type(error).__name__, _reason(error))
        return _exit_code(error)
    progress.done(**asdict(result), seconds=round(time.monotonic() - begun, 1))
    return Exit.DONE


def _exit_code(error: Exception) -> Exit:
    if isinstance(error, SparkUnavailableError):
        return Exit.NO_SPARK
    if isinstance(error, LakeError):
        return Exit.LAKE
    if isinstance(error, TransportError | RequestRefused | ReadError):
        return Exit.CLUSTER
    return Exit.FAILED


def _reason(error: Exception) -> str:
    """One sentence: Spark wraps what a worker raised in pages of traceback."""
    text = str(error)
    raised_by_worker = re.search(r"^(?:core_broker|spark_jobs)\.[\w.]+: (.+)$", text, re.MULTILINE)
    reason = raised_by_worker.group(1) if raised_by_worker else text.strip().partition("\n")[0]
    return (reason or type(error).__name__)[:REASON_CHARS_MAX]


def _limits(given: tuple[str, ...]) -> dict[str, int]:
    limits = {}
    for entry in given:
        group, _, times = entry.rpartition("=")
        if not group or not (times.isascii() and times.isdigit() and len(times) < 7):
            raise click.BadParameter(f"{entry!r} is not GROUP=N", param_hint="--retry-times-max")
        limits[group] = int(times)
    return limits


def _settings(conf: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for entry in conf:
        key, equals, value = entry.partition("=")
        if not equals:
            raise click.BadParameter(f"{entry!r} is not KEY=VALUE", param_hint="--conf")
        settings[key.strip()] = value
    return settings


def _stop_with_stdin() -> None:
    """The console's worker holds our stdin; when it dies, nobody could stop us any more."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    log.error("stopping: whoever started this job is gone")
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
