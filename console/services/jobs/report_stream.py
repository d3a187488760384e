"""Reports read from a stream of JSON lines by a thread."""

import contextlib
import queue
import threading
from typing import IO, Final

from console.services.jobs.reports import LINE_BYTES_MAX, Report, read_line

REPORTS_WAITING_MAX: Final = 1000


class ReportStream:
    """The reports of a stream. The thread ends with the stream; the caller closes the stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        #: None wakes next_report() at the end of the stream.
        self._reports: queue.Queue[Report | None] = queue.Queue(REPORTS_WAITING_MAX)
        self._reader = threading.Thread(target=self._read, name="job-output", daemon=True)
        self._reader.start()

    def next_report(self, timeout_s: float) -> Report | None:
        """The next report; None after the timeout or the end of the stream."""
        with contextlib.suppress(queue.Empty):
            return self._reports.get(timeout=timeout_s)
        return None

    def has_ended(self) -> bool:
        """Whether the stream has ended and all reports were read."""
        return not self._reader.is_alive() and self._reports.empty()

    def is_full(self) -> bool:
        """Whether the thread waits for next_report()."""
        return self._reports.full()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):  # concurrent close
            while line := self._stream.readline(LINE_BYTES_MAX + 1):
                report = read_line(line)
                if report is not None:
                    self._reports.put(report)
        self._reports.put(None)
