"""What a job's program may say, and what is ignored."""

import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.services.jobs.reports import (
    LINE_BYTES_MAX,
    OUTPUTS_MAX,
    Done,
    Failed,
    Progress,
    read_line,
)
from spark_jobs.spark.progress import Progress as ProgramProgress
from spark_jobs.spark.progress import Stage


def test_every_line_of_a_job_is_understood() -> None:
    out = io.StringIO()
    program = ProgramProgress(out, as_json=True)
    program.rows, program.rows_total = 20, 40
    program.set_spark_ui("http://127.0.0.1:4040")
    program.enter(Stage.READ)
    program.done(rows=40, records=90, broken=1, lost=2, hours=3, note="", seconds=4.5)
    program.error("LakeError", "in use")
    progress, done, failed = (read_line(line.encode()) for line in out.getvalue().splitlines())
    assert isinstance(progress, Progress)
    assert (progress.stage, progress.done, progress.total) == ("read", 20, 40)
    assert progress.spark_ui == "http://127.0.0.1:4040"
    assert isinstance(done, Done)
    assert (done.done, done.note) == (40, "")
    assert done.kept() == {"records": 90, "broken": 1, "lost": 2, "hours": 3, "seconds": 4.5}
    assert failed == Failed(kind="LakeError", message="in use")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"26/11/05 WARN NativeCodeLoader: Unable to load",
        b"{}",
        b"[]",
        b"null",
        b'{"event": "unknown"}',
        b'{"event": "progress", "rows": -1}',
        b'{"event": "progress", "rows": "many"}',
        b'{"event": "progress", "rows": 99999999999999999999}',
        b'{"event": "done", "rows": null}',
        b'{"event": ["done"]}',
        b'{"event": "error", "message": 7}',
        b'{"event": "progress", "stage": "' + b"x" * LINE_BYTES_MAX + b'"}',
        b"[" * 50_000,
        b"\xff\xfe",
    ],
)
def test_other_lines_are_no_reports(line: bytes) -> None:
    assert read_line(line) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_none(line: bytes) -> None:
    read_line(line)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "stage": st.text(max_size=100),
            "percent": st.floats(allow_nan=False, allow_infinity=False),
            "rows": st.integers(0, 2**62),
            "rate": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "spark_ui": st.none() | st.text(max_size=300),
        },
    )
)
def test_progress_fits_its_columns(values: dict[str, object]) -> None:
    progress = read_line(json.dumps({"event": "progress", **values}).encode())
    assert isinstance(progress, Progress)
    assert 0 <= progress.percent <= 100
    assert len(progress.stage) <= 32
    assert progress.spark_ui is None or progress.spark_ui.startswith("http")


@pytest.mark.parametrize(
    ("link", "kept"),
    [
        ("http://127.0.0.1:4040", True),
        ("https://spark.example/app-1", True),
        ("javascript:alert(1)", False),
        ("http://" + "x" * 300, False),
    ],
)
def test_only_links_are_shown_as_links(link: str, *, kept: bool) -> None:
    line = msgspec.json.encode({"event": "progress", "spark_ui": link})
    progress = read_line(line)
    assert isinstance(progress, Progress)
    assert progress.spark_ui == (link if kept else None)


def test_what_came_of_it_is_bounded() -> None:
    said = {"event": "done", "long": "x" * 5000, "list": [1], "huge": 10**30, "fine": 7}
    said |= {f"n{index}": index for index in range(100)}
    done = read_line(json.dumps(said).encode())
    assert isinstance(done, Done)
    assert len(done.outputs) == OUTPUTS_MAX
    assert done.outputs["fine"] == 7
    assert not {"long", "list", "huge"} & set(done.outputs)
