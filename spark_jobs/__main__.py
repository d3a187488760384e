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
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core_broker.errors import RequestRefused, TransportError
from spark_jobs.ingest import (
    MESSAGES_PER_ROUND,
    RETAIN_DAYS,
    TRACE_TOPIC,
    Ingest,
    StartSpark,
    run_ingest,
)
from spark_jobs.java import SparkUnavailableError, java_for_spark
from spark_jobs.progress import Progress
from spark_jobs.queues import ReadError
from spark_jobs.session import SHORT_RUN, spark_session
from trace.lake import LakeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

logger = logging.getLogger("spark_jobs")

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


@main.command()
@click.option(
    "--namesrv", "-n", envvar="NAMESRV_ADDR", required=True, help="host:port;… [NAMESRV_ADDR]"
)
@click.option(
    "--lake", required=True, type=click.Path(path_type=Path), help="Folder of the trace lake."
)
@click.option("--topic", default=TRACE_TOPIC, show_default=True, help="Topic with the traces.")
@run_dir_option
@click.option("--master", envvar="SPARK_MASTER", help="Spark master [SPARK_MASTER, local[*]].")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
@click.option("--messages-per-round", type=POSITIVE, default=MESSAGES_PER_ROUND, show_default=True)
@click.option("--retain-days", type=POSITIVE, default=RETAIN_DAYS, show_default=True)
@click.option(
    "--retry-seconds", type=POSITIVE, default=60, show_default=True, help="Wait so for brokers."
)
@click.option("--progress-json", is_flag=True, help="Report as JSON lines on stdout.")
@click.option("--until-stdin-closes", is_flag=True, help="Stop when whoever started this is gone.")
def ingest(
    *,
    namesrv: str,
    lake: Path,
    topic: str,
    run_dir: Path,
    master: str | None,
    conf: tuple[str, ...],
    messages_per_round: int,
    retain_days: int,
    retry_seconds: int,
    progress_json: bool,
    until_stdin_closes: bool,
) -> None:
    """Bring what is new in the trace topic into the lake."""
    if until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, name="stdin-watch", daemon=True).start()
    job = Ingest(
        namesrv,
        lake.resolve(),
        topic,
        messages_per_round=messages_per_round,
        retain_days=retain_days,
        retry_timeout_ms=retry_seconds * 1000,
    )
    settings = _settings(conf)

    def start_spark(is_short: bool) -> "AbstractContextManager[SparkSession]":
        return spark_session(
            f"gantry ingest {topic}",
            run_dir=run_dir,
            master=master,
            settings={**(SHORT_RUN if is_short else {}), **settings},
        )

    sys.exit(_reported(job, Progress(sys.stdout, as_json=progress_json), start_spark))


def _reported(job: Ingest, progress: Progress, start_spark: StartSpark) -> Exit:
    """Run the job; whatever happens becomes its last line and its exit code."""
    begun = time.monotonic()
    try:
        result = run_ingest(job, progress, start_spark, lambda: time.time_ns() // 1_000_000)
    except Exception as error:
        logger.exception("ingest failed")
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
    logger.error("stopping: whoever started this job is gone")
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
