"""The index of SQLite's write-ahead log stays while the console runs.

The last connection to a database deletes the log and its index, and the next one makes them anew.
On a full disk that fails, and no page could be read. One connection, open from start to shutdown,
keeps both.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path

from django.conf import settings


class WalIndex:
    """A connection from `keep` to `close`; does nothing without a file of SQLite."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None

    def keep(self) -> None:
        database = settings.DATABASES["default"]
        path = Path(str(database["NAME"]))
        if not database["ENGINE"].endswith("sqlite3") or not path.is_file():
            return
        with suppress(sqlite3.Error):  # pages and /readyz name the trouble
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw", uri=True, check_same_thread=False
            )
            # The first read opens the index.
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchall()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
