"""`python -m spark_jobs`: the jobs as command-line programs.

Exit codes: 0 success, also without any work; 1 failure; 2 usage error; 3 Spark or Java is missing;
4 the lake is locked or unreadable; 5 the cluster is unreachable.
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core_broker.client import Credentials
from core_broker.errors import ClientError
from spark_jobs.jobs.compact import Compact, run_compact
from spark_jobs.jobs.follow import run_follow
from spark_jobs.jobs.ingest import (
    MESSAGES_PER_BATCH,
    RETAIN_DAYS,
    TRACE_TOPIC,
    Ingest,
    run_ingest,
)
from spark_jobs.jobs.run import Result, Runtime
from spark_jobs.jobs.table_jobs import TABLES_OF_JOB, Derive, hours_between, run_derive
from spark_jobs.outcome import Exit, Work, run_and_report
from spark_jobs.service import JobVisit, RefusedError, RequestedJob, Service
from spark_jobs.service_socket import ServiceRunsError, listening
from spark_jobs.sources.connection import Connection
from spark_jobs.spark.java import SparkUnavailableError, java_for_spark
from spark_jobs.spark.progress import Progress
from spark_jobs.spark.session import (
    SHORT_RUN,
    SessionSettings,
    chosen_master,
    spark_session,
)
from spark_jobs.spark.shared_session import SharedSession

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

POSITIVE = click.IntRange(min=1)
IDLE_SECONDS = 600
#: Jobs that the service runs.
JOBS = ("ingest", *TABLES_OF_JOB, "compact")


def run_dir_option(command: click.decorators.FC) -> click.decorators.FC:
    """The option for the folder of event logs and the Java shim."""
    home = Path(os.environ.get("GANTRY_HOME") or "var")
    return click.option(
        "--run-dir",
        type=click.Path(path_type=Path),
        default=home / "spark",
        help="Folder for event logs and the Java shim [GANTRY_HOME/spark].",
    )(command)


@click.group(help="Spark jobs of Gantry: trace analytics.")
def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")


@main.command()
@run_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def check(run_dir: Path, as_json: bool) -> None:
    """Report whether Spark can run here, with which Java, or which part is missing."""
    answer: dict[str, object] = {"usable": True, "java": None, "reason": None}
    try:
        java = java_for_spark(os.environ, run_dir)
        answer["java"] = f"Java {java.version} ({java.origin})"
    except SparkUnavailableError as error:
        answer |= {"usable": False, "reason": str(error)}
    click.echo(json.dumps(answer) if as_json else answer["reason"] or answer["java"])
    sys.exit(Exit.DONE if answer["usable"] else Exit.NO_SPARK)


STDIN_OPTION = click.option(
    "--until-stdin-closes", is_flag=True, help="Stop when the parent process closes stdin."
)


def session_options(command: click.decorators.FC) -> click.decorators.FC:
    """The options of a Spark session."""
    options = (
        run_dir_option,
        click.option(
            "--master", envvar="SPARK_MASTER", help="Spark master [SPARK_MASTER, local[*]]."
        ),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def job_options(command: click.decorators.FC) -> click.decorators.FC:
    """The options of every job."""
    options = (
        click.option(
            "--lake", required=True, type=click.Path(path_type=Path), help="Folder of the lake."
        ),
        session_options,
        click.option("--progress-json", is_flag=True, help="Report as JSON lines on stdout."),
        STDIN_OPTION,
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
    help="Read a broker's store folder in place of a cluster.",
)
@click.option(
    "--tls-config",
    default="",
    metavar="FILE",
    help="Use TLS, with the keys tls.client.* of a file like tls.properties.",
)
@click.option(
    "--credentials",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Sign requests with accessKey and secretKey of a file like tools.yml.",
)
@click.option("--topic", default=TRACE_TOPIC, show_default=True, help="Topic with the traces.")
@click.option(
    "--messages-per-round",
    "messages_per_batch",
    type=POSITIVE,
    default=MESSAGES_PER_BATCH,
    show_default=True,
    help="Maximum messages of a micro-batch.",
)
@RETAIN_DAYS_OPTION
@click.option(
    "--retry-seconds",
    type=POSITIVE,
    default=60,
    show_default=True,
    help="Time for retries while a broker is unreachable.",
)
@click.option(
    "--retry-times-max",
    multiple=True,
    metavar="GROUP=N",
    help="Retry limit of a group whose clients set their own limit.",
)
@click.option("--events-only", is_flag=True, help="Write events only; derive no tables.")
@click.option(
    "--follow",
    type=POSITIVE,
    metavar="SECONDS",
    help="Keep running, and read new messages every SECONDS.",
)
@job_options
def ingest(
    *,
    namesrv: str,
    store: Path | None,
    tls_config: str,
    credentials: Path | None,
    lake: Path,
    topic: str,
    messages_per_batch: int,
    retain_days: int,
    retry_seconds: int,
    retry_times_max: tuple[str, ...],
    events_only: bool,
    follow: int | None,
    **shell: Any,
) -> None:
    """Read new messages of the trace topic into the lake."""
    if not namesrv and store is None:
        raise click.UsageError("--namesrv or --store is needed.")
    if store is not None and follow is not None:
        raise click.UsageError("A store folder cannot be followed; --follow needs --namesrv.")
    if follow is not None and _visit() is not None:
        raise click.UsageError("The service runs no endless jobs (--follow).")
    connection = Connection(
        namesrv=namesrv, retry_timeout_ms=retry_seconds * 1000, tls_config_file=tls_config
    )
    job = Ingest(
        None if store else connection.signed(_credentials(credentials)),
        lake.resolve(),
        topic,
        messages_per_batch=messages_per_batch,
        retain_days=retain_days,
        events_only=events_only,
        store=store,
        retry_times_max=_limits(retry_times_max),
    )

    def work(runtime: Runtime) -> Result:
        if follow is not None:
            return run_follow(job, follow, runtime)
        return run_ingest(job, runtime)

    if follow is not None:  # the event log would grow by 30 MB per hour
        shell["conf"] = ("spark.eventLog.enabled=false", *shell["conf"])
    run_job(f"ingest {topic}", work, **shell)


def _table_job(name: str, help_text: str) -> None:
    @main.command(name, help=help_text)
    @click.option(
        "--from", "begin", metavar="HOUR", help="First hour to derive again, as 2026-11-05T13."
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
        job = Derive(lake.resolve(), TABLES_OF_JOB[name], hours, is_rebuild=name == "rebuild")
        run_job(name, lambda runtime: run_derive(job, runtime), **shell)


_table_job("rollup", "Derive the tables minute and latency, for the stale or the given hours.")
_table_job("edges", "Derive the table of message flow between groups and topics.")
_table_job(
    "slow", "Derive the lists of slowest messages, and of messages without a trace of consumption."
)
_table_job("rebuild", "Derive all tables of all hours, or of the given hours, from the events.")


@main.command()
@RETAIN_DAYS_OPTION
@job_options
def compact(*, lake: Path, retain_days: int, **shell: Any) -> None:
    """Merge small files, and drop hours older than --retain-days."""
    job = Compact(lake.resolve(), retain_days)
    run_job("compact", lambda runtime: run_compact(job, runtime), **shell)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


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
    """Run a job in this process, and end the process; in the service, hand the job over."""
    wanted = _session_settings(run_dir, master, conf)
    if (visit := _visit()) is not None:
        visit.job = RequestedJob(name, work, wanted)
        return
    if until_stdin_closes:
        _watch_stdin()

    def start_spark(is_short: bool) -> "AbstractContextManager[SparkSession]":
        return spark_session(
            f"gantry {name}",
            run_dir=run_dir,
            master=master,
            settings={**(SHORT_RUN if is_short else {}), **wanted.spark},
        )

    progress = Progress(sys.stdout, as_json=progress_json)
    sys.exit(run_and_report(name, work, Runtime(progress, start_spark, now_ms)))


@main.command()
@click.option(
    "--socket",
    "socket_path",
    required=True,
    type=click.Path(path_type=Path),
    help="Unix socket to listen at.",
)
@click.option(
    "--idle-seconds",
    type=POSITIVE,
    default=IDLE_SECONDS,
    show_default=True,
    help="End when no job used Spark for this time.",
)
@session_options
@STDIN_OPTION
def serve(
    socket_path: Path,
    idle_seconds: int,
    run_dir: Path,
    master: str | None,
    conf: tuple[str, ...],
    until_stdin_closes: bool,
) -> None:
    """Run jobs one after another on one Spark session; see spark_jobs/service.py."""
    if until_stdin_closes:
        _watch_stdin()
    session = SharedSession(_session_settings(run_dir, master, conf))
    service = Service(session, read_command_line, idle_s=idle_seconds, now_ms=now_ms)
    try:
        with listening(socket_path) as listener:
            log.info("listening at %s", socket_path)
            service.serve(listener)
    except ServiceRunsError as error:
        raise click.ClickException(str(error)) from None
    finally:
        session.stop()


def read_command_line(arguments: Sequence[str], visit: JobVisit) -> None:
    """Parse the command line of a job; raises RefusedError."""
    if arguments[0] not in JOBS:
        raise RefusedError("NoJob", f"{arguments[0][:80]!r} is not a job; jobs: {', '.join(JOBS)}")
    try:
        main.main([*arguments], prog_name="spark_jobs", standalone_mode=False, obj=visit)
    except click.ClickException as error:
        raise RefusedError("UsageError", error.format_message()) from None
    except (click.Abort, SystemExit) as error:
        raise RefusedError("UsageError", type(error).__name__) from None


def _visit() -> JobVisit | None:
    """The visit of the service that parses this command line."""
    return click.get_current_context().find_object(JobVisit)


def _session_settings(run_dir: Path, master: str | None, conf: tuple[str, ...]) -> SessionSettings:
    return SessionSettings(run_dir.resolve(), chosen_master(master), _settings(conf))


def _credentials(file: Path | None) -> Credentials | None:
    try:
        return Credentials.from_file(file) if file else None
    except ClientError as error:
        raise click.UsageError(f"--credentials: {error}") from None


def _limits(entries: tuple[str, ...]) -> dict[str, int]:
    limits = {}
    for entry in entries:
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


def _watch_stdin() -> None:
    threading.Thread(target=_stop_with_stdin, name="stdin-watch", daemon=True).start()


def _stop_with_stdin() -> None:
    """Stop when stdin closes: the console's worker holds the other end and may have died."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    log.error("stopping: the parent process closed stdin")
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
