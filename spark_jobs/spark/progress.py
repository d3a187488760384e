"""Progress reports of a job: JSON lines on stdout for the console, or text for a terminal.

    {"event": "progress", "stage": "read", "percent": 31.5, "rows": 90210, "rows_total": 200000,
     "rate": 30070.0, "spark_ui": "http://127.0.0.1:4040"}
    {"event": "done", "rows": 200000, "records": 400123, "broken": 0, "lost": 0, "hours": 3,
     "seconds": 41.2, "note": ""}
    {"event": "error", "kind": "SparkUnavailableError", "message": "…"}

Rows are messages. `rate` is the read rate, rows per second. The last line is `done` or `error`; a
killed job has neither.
"""

import json
import threading
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TextIO

from core_broker.errors import GantryError


class JobCancelledError(GantryError):
    """The client of the job cancelled it."""


class Stage(StrEnum):
    """Stages of a job, in order."""

    WAIT = "wait"
    PLAN = "plan"
    START = "start"
    READ = "read"
    ROLLUP = "rollup"
    COMPACT = "compact"
    COMMIT = "commit"


#: Start and end of each stage, percent, estimated from typical durations.
PERCENT_AT: Final[Mapping[Stage, tuple[float, float]]] = {
    Stage.WAIT: (0, 0),
    Stage.PLAN: (0, 2),
    Stage.START: (2, 15),
    Stage.READ: (15, 60),
    Stage.ROLLUP: (60, 98),
    Stage.COMPACT: (15, 98),
    Stage.COMMIT: (98, 100),
}


class Progress:
    """Writes progress reports. Thread-safe: a monitor thread reports while the job waits for
    Spark.
    """

    def __init__(self, out: TextIO, *, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json
        self._lock = threading.Lock()
        self._stage = Stage.PLAN
        self._part = (0, 1)
        self._spark_ui: str | None = None
        self._last_text = ""
        self._percent = 0.0
        self._read_start_s: float | None = None
        self._cancelled = threading.Event()
        self.rows = 0
        self.rows_total = 0

    @property
    def stage(self) -> Stage:
        return self._stage

    def set_spark_ui(self, url: str | None) -> None:
        """Set the URL of Spark's UI, for the next reports."""
        self._spark_ui = url

    def enter(self, stage: Stage, *, part: int = 0, parts: int = 1) -> None:
        """Start a stage, or part number `part` of a stage with `parts` parts.

        Raises JobCancelledError after `cancel`.
        """
        if self._cancelled.is_set():
            raise JobCancelledError("The job was cancelled.")
        self._stage = stage
        self._part = part, max(parts, part + 1)
        if stage is Stage.READ and self._read_start_s is None:
            self._read_start_s = time.monotonic()
        self.update(0.0)

    def cancel(self) -> None:
        """End the job at the start of the next stage or part."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def update(self, share: float) -> None:
        """Report the finished share of the current part, from 0 to 1. Writes no line without a
        change.
        """
        begin, end = PERCENT_AT[self._stage]
        part, parts = self._part
        percent = begin + (end - begin) * (part + min(max(share, 0.0), 1.0)) / parts
        # A stage may turn out longer than expected; the percentage never decreases.
        self._percent = percent = max(round(percent, 1), self._percent)
        self._write(
            {
                "event": "progress",
                "stage": self._stage.value,
                "percent": percent,
                "rows": self.rows,
                "rows_total": self.rows_total,
                "rate": self._rate(),
                "spark_ui": self._spark_ui,
            },
            f"{percent:5.1f} %  {self._stage}: {self.rows} of {self.rows_total} messages",
        )

    def done(self, **result: Any) -> None:
        text = ", ".join(
            f"{key} {value}" for key, value in result.items() if value not in ("", None)
        )
        self._write({"event": "done", **result}, f"done: {text}")

    def error(self, kind: str, message: str) -> None:
        self._write({"event": "error", "kind": kind, "message": message}, f"failed: {message}")

    def _rate(self) -> float | None:
        if self._stage is not Stage.READ or self._read_start_s is None or not self.rows:
            return None
        return round(self.rows / max(time.monotonic() - self._read_start_s, 0.001), 1)

    def _write(self, line: Mapping[str, Any], text: str) -> None:
        with self._lock:
            if text != self._last_text:
                self._last_text = text
                self._out.write((json.dumps(line) if self._as_json else text) + "\n")
                self._out.flush()
