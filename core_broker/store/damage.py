"""Damage that readers and recovery detect: logged once for each file offset, and counted.

The broker deletes nothing for damage, and repairs units of consume queues (unit_repairs.py);
`mqstore repair` rebuilds queues and index.
"""

import logging
from pathlib import Path

#: Maximum number of remembered file offsets. Beyond the maximum the set is cleared, and known
#: damage may be logged again.
PLACES_MAX = 10_000

log = logging.getLogger(__name__)


class Damage:
    """Logs and counts damaged file offsets. Event loop only."""

    def __init__(self) -> None:
        #: Damaged file offsets reported since the start.
        self.count = 0
        #: Units of consume queues rebuilt since the start.
        self.repaired = 0
        self._places: set[tuple[Path, int]] = set()

    def report(self, path: Path, offset: int, reason: str) -> None:
        """Report damage at an offset of a file, bytes."""
        if (path, offset) in self._places:
            return
        if len(self._places) >= PLACES_MAX:
            self._places.clear()
        self._places.add((path, offset))
        self.count += 1
        log.error("%s is damaged at %d: %s", path, offset, reason)

    def report_repair(self, path: Path, offset: int, unit: int) -> None:
        """Report that a damaged unit of a consume queue was rebuilt."""
        self.repaired += 1
        log.warning("%s was damaged at %d: unit %d is rebuilt from the log", path, offset, unit)
