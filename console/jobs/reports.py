"""What a job's program says on its standard output, line by line. Pure.

The lines are those of `spark_jobs.progress`: JSON objects whose `event` is progress, done or
error. A program is another process and its output is not trusted: what is not such a line is
counted and skipped, and texts and numbers are bounded.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final

import msgspec

LINE_BYTES_MAX: Final = 64 * 1024
TEXT_CHARS_MAX: Final = 2000

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Moved(msgspec.Struct, tag_field="event", tag="progress", frozen=True):
    """The job is on its way."""

    stage: str = ""
    percent: float = 0.0
    rows: _Count = 0
    rows_total: _Count | None = None
    rate: float | None = None
    spark_ui: str | None = None


class Done(msgspec.Struct, tag_field="event", tag="done", frozen=True):
    """The job did all it was to do."""

    rows: _Count = 0
    records: _Count = 0
    broken: _Count = 0
    lost: _Count = 0
    hours: _Count = 0
    seconds: float = 0.0
    note: str = ""

    def outputs(self) -> dict[str, Any]:
        """For the job's row."""
        return {**msgspec.structs.asdict(self), "note": self.note[:TEXT_CHARS_MAX]}


class Failed(msgspec.Struct, tag_field="event", tag="error", frozen=True):
    """The job gave up, and says why."""

    kind: str = ""
    message: str = ""


Report = Moved | Done | Failed


def read_line(line: bytes) -> Report | None:
    """The report in a line; None when the line is something else."""
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        report: Report = msgspec.json.decode(line, type=Report)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return bounded(report) if isinstance(report, Moved) else report


def bounded(moved: Moved) -> Moved:
    """Percent within 0 to 100, a link that is one, texts that fit their columns."""
    link = moved.spark_ui or ""
    is_link = link.startswith(("http://", "https://")) and len(link) <= 200
    return msgspec.structs.replace(
        moved,
        stage=moved.stage[:32],
        percent=min(max(moved.percent, 0.0), 100.0),
        rate=moved.rate if moved.rate is not None and math.isfinite(moved.rate) else None,
        spark_ui=link if is_link else None,
    )
