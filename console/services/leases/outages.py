"""The log lines of periodic work during an outage of the database."""

import logging
from typing import Final

#: Minimum interval between two warnings about one outage, ms.
WARNING_INTERVAL_MS: Final = 300_000

log = logging.getLogger(__name__)


class OutageLog:
    """Logs the first failure, then one warning per interval with a count, and the recovery.

    `work` names the work that does not run meanwhile. `now_ms` is the monotonic clock.
    """

    def __init__(self, work: str) -> None:
        self._work = work
        self._failures = 0
        self._warned_ms = 0

    def failed(self, trouble: Exception, now_ms: int) -> None:
        """Count a failed attempt; log the first, and later ones when a warning is due."""
        self._failures += 1
        if self._failures > 1 and now_ms - self._warned_ms < WARNING_INTERVAL_MS:
            return
        self._warned_ms = now_ms
        attempts = f" ({self._failures} attempts)" if self._failures > 1 else ""
        log.warning("no %s until the database answers%s: %s", self._work, attempts, trouble)

    def succeeded(self) -> None:
        """Log the end of an outage."""
        if self._failures:
            log.info(
                "the database answers again: %s after %d failed attempts",
                self._work,
                self._failures,
            )
        self._failures = 0
