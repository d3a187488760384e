"""The histories of clusters that the console no longer has: kept for a time, then deleted.

The sampler's upkeep runs only for the console's clusters. The history of a removed cluster is kept
for CONSOLE_HISTORY_DAYS, for the cluster may come back; then its file or its rows are deleted.
"""

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection

from console.services.history.files import stored_files
from console.services.history.metrics import HOUR_MS
from console.services.history.postgres import stored_rows
from console.services.history.store import STORE_ERRORS, Place, Store
from console.services.history.upkeep import configured_upkeep

log = logging.getLogger(__name__)

#: Interval of the upkeep of removed clusters, ms.
INTERVAL_MS: Final = HOUR_MS
#: Time for one history in one interval, seconds; the next interval continues.
UPKEEP_S: Final = 30.0


def keep_removed(home: Path, clusters: Collection[str], now_ms: int) -> None:
    """Apply the retention to all histories but those of `clusters`; an error leaves a history."""
    try:
        for name, place in list(_places(home)):
            if name not in clusters:
                _keep(name, place, now_ms)
    except STORE_ERRORS as trouble:
        log.warning("the histories of removed clusters are not checked: %s", str(trouble).strip())
    finally:
        connection.close()  # of this thread


def _places(home: Path) -> Iterator[tuple[str, Place]]:
    """Yield the stored histories with their clusters: files, and rows of the database."""
    yield from stored_files(home)
    if settings.HISTORY_IN_DATABASE:
        yield from stored_rows()


def _keep(name: str, place: Place, now_ms: int) -> None:
    until_s = time.monotonic() + UPKEEP_S
    try:
        with closing(place.writer()) as store:
            upkeep = configured_upkeep(store, lambda: None)
            is_done = upkeep.run(now_ms, lambda: time.monotonic() < until_s)
            is_empty = is_done and _is_empty(store)
        if is_empty:
            place.delete()
            log.info("the history of the removed cluster %s is deleted: %s", name, place)
    except STORE_ERRORS as trouble:
        log.warning("the history of the removed cluster %s is kept: %s", name, str(trouble).strip())


def _is_empty(store: Store) -> bool:
    times = store.newest_ms(), store.oldest_ms("hour"), store.oldest_ms("day")
    return all(each is None for each in times)
