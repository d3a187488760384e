"""Reports of a job's work: progress, done, failed. Pure.

A program (see `program.py`) writes reports to standard output as JSON lines in the format of
`spark_jobs.spark.progress`, with `event` progress, done or error; the Spark service also writes
accepted or refused (`spark_jobs.service`). Program output is untrusted: other lines are skipped,
and texts and numbers are bounded.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

LINE_BYTES_MAX: Final = 64 * 1024
TEXT_CHARS_MAX: Final = 2000
STAGE_CHARS_MAX: Final = 32
DETAIL_CHARS_MAX: Final = 200
OUTPUTS_MAX: Final = 32
COUNT_MAX: Final = 2**62

_Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]


class Progress(msgspec.Struct, frozen=True):
    """Progress of the work: `done` of `total` units."""

    stage: str = ""
    percent: float = 0.0
    done: _Count = 0
    total: _Count | None = None
    rate: float | None = None
    detail: str = ""
    spark_ui: str | None = None
    #: Results so far; None keeps the previous results.
    outputs: Mapping[str, Any] | None = None


class Done(msgspec.Struct, frozen=True):
    """The work succeeded: units done, and results.

    `outputs` are texts, numbers and lists by name; `note` is a sentence for display.
    """

    done: _Count = 0
    outputs: Mapping[str, Any] = {}
    note: str = ""

    def kept(self) -> dict[str, Any]:
        """Outputs for the job's row."""
        note = {"note": self.note[:TEXT_CHARS_MAX]} if self.note else {}
        return {**self.outputs, **note}


class Failed(msgspec.Struct, frozen=True):
    """The work failed, with the reason."""

    kind: str = ""
    message: str = ""


class Accepted(msgspec.Struct, frozen=True):
    """The service runs the job now."""


class Refused(msgspec.Struct, frozen=True):
    """The service does not run the job, with the reason."""

    kind: str = ""
    message: str = ""


Report = Progress | Done | Failed | Accepted | Refused


def read_line(line: bytes) -> Report | None:
    """The report of an output line; None for other lines."""
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        said = msgspec.json.decode(line)
        if not isinstance(said, dict):
            return None
        return _read(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _read(said: dict[str, Any]) -> Report | None:
    event = said.pop("event", None)
    rows, rows_total = said.pop("rows", 0), said.pop("rows_total", None)
    if event == "progress":
        named = {**said, "done": rows, "total": rows_total, "outputs": None}
        return bounded(msgspec.convert(named, Progress))
    if event == "done":
        note = said.pop("note", "")
        plain = {name: value for name, value in said.items() if _is_plain(value)}
        outputs = dict(list(plain.items())[:OUTPUTS_MAX])
        return msgspec.convert({"done": rows, "outputs": outputs, "note": note}, Done)
    if event == "error":
        return msgspec.convert(said, Failed)
    if event == "accepted":
        return Accepted()
    if event == "refused":
        return msgspec.convert(said, Refused)
    return None


def _is_plain(value: Any) -> bool:
    """Whether the value is a bounded number or text."""
    if isinstance(value, str):
        return len(value) <= TEXT_CHARS_MAX
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) <= COUNT_MAX)


def bounded(progress: Progress) -> Progress:
    """Bounded progress: percent 0 to 100, valid link, texts of column length."""
    link = progress.spark_ui or ""
    is_link = link.startswith(("http://", "https://")) and len(link) <= 200
    return msgspec.structs.replace(
        progress,
        stage=_text(progress.stage, STAGE_CHARS_MAX),
        detail=_text(progress.detail, DETAIL_CHARS_MAX),
        percent=min(max(progress.percent, 0.0), 100.0),
        rate=progress.rate if progress.rate is not None and math.isfinite(progress.rate) else None,
        spark_ui=link if is_link else None,
    )


def _text(text: str, most: int) -> str:
    return text.replace("\x00", "")[:most]
