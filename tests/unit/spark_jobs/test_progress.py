"""The progress reports of a job."""

import io
import json

from spark_jobs.spark.progress import Progress, Stage


def said(progress: Progress, out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_percent_only_goes_up_over_stages_and_their_parts() -> None:
    out = io.StringIO()
    progress = Progress(out, as_json=True)
    progress.rows_total = 100
    progress.enter(Stage.PLAN)
    progress.enter(Stage.START)
    for stage in (Stage.READ, Stage.ROLLUP, Stage.COMMIT):
        for part in range(2):
            progress.enter(stage, part=part, parts=2)
            progress.update(0.5)
            progress.update(7)
    progress.enter(Stage.READ)
    percents = [line["percent"] for line in said(progress, out)]
    assert percents == sorted(percents)  # type: ignore[type-var]
    assert (percents[0], percents[-1]) == (0, 100)


def test_an_unchanged_report_is_written_once() -> None:
    out = io.StringIO()
    progress = Progress(out, as_json=True)
    progress.enter(Stage.READ)
    progress.update(0.0)
    progress.update(0.00001)
    assert len(said(progress, out)) == 1


def test_the_last_line_is_the_result() -> None:
    out = io.StringIO()
    Progress(out, as_json=True).done(rows=3, note="")
    Progress(out, as_json=True).error("LakeError", "in use\nby another")
    assert [line["event"] for line in said(Progress(out, as_json=True), out)] == ["done", "error"]


def test_text_reports() -> None:
    out = io.StringIO()
    progress = Progress(out, as_json=False)
    progress.rows_total = 10
    progress.enter(Stage.READ)
    progress.done(rows=10, records=20, note="")
    assert out.getvalue().splitlines() == [
        " 15.0 %  read: 0 of 10 messages",
        "done: rows 10, records 20",
    ]
