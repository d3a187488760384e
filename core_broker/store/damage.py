"""What readers and recovery found damaged: each place is reported once, and all are counted.

Nothing is deleted and nothing is repaired for it; `mqstore repair` builds queues and index again.
"""

import logging
from pathlib import Path

#: So many places are remembered; then all are forgotten, and may be reported once more.
PLACES_MAX = 10_000

log = logging.getLogger(__name__)


class Damage:
    """Takes reports of damaged places. Event loop only."""

    def __init__(self) -> None:
        #: Places found since the start.
        self.count = 0
        self._places: set[tuple[Path, int]] = set()

    def report(self, path: Path, offset: int, reason: str) -> None:
        """Note that something is wrong at a byte of a file."""
        if (path, offset) in self._places:
            return
        if len(self._places) >= PLACES_MAX:
            self._places.clear()
        self._places.add((path, offset))
        self.count += 1
        log.error("%s is damaged at %d: %s", path, offset, reason)
