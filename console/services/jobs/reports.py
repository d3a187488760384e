"""What the work of a job says: on its way, done, failed. Pure.

A program (see `program.py`) says it on its standard output, as lines of JSON like those of
`spark_jobs.spark.progress`, whose `event` is progress, done or error. A program is another process
and its output is not trusted: what is no such line is skipped, and texts and numbers are bounded.
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
    """The job is on its way; `done` of `total` units."""

    stage: str = ""
    percent: float = 0.0
    done: _Count = 0
    total: _Count | None = None
    rate: float | None = None
    detail: str = ""
    spark_ui: str | None = None
    #: What came of it by now; None leaves what was said before.
    outputs: Mapping[str, Any] | None = None


class Done(msgspec.Struct, frozen=True):
    """The job did all it was to do: so many units, and what came of it.

    `outputs` are texts, numbers and lists of them by name; `note` is a sentence for people.
    """

    done: _Count = 0
    outputs: Mapping[str, Any] = {}
    note: str = ""

    def kept(self) -> dict[str, Any]:
        """For the job's row."""
        note = {"note": self.note[:TEXT_CHARS_MAX]} if self.note else {}
        return {**self.outputs, **note}


class Failed(msgspec.Struct, frozen=True):
    """The job gave up, and says why."""

    kind: str = ""
    message: str = ""


Report = Progress | Done | Failed


def read_line(line: bytes) -> Report | None:
    """The report in a program's line; None when the line is something else."""
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
    return None


def _is_plain(value: Any) -> bool:
    """A number or text that a row may keep and a page may show."""
    if isinstance(value, str):
        return len(value) <= TEXT_CHARS_MAX
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) <= COUNT_MAX)


def bounded(progress: Progress) -> Progress:
    """Percent within 0 to 100, a link that is one, texts that fit their columns."""
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
