"""The index of SQLite's write-ahead log stays while the console runs.

The last connection to a database deletes the log and its index, and the next one makes them anew.
On a full disk that fails, and no page could be read. One connection, open from start to shutdown,
keeps both. A console that starts on a full disk without the index tries again until there is space.
"""

import asyncio
import logging
import sqlite3
from typing import Final

from console.frame.own_disks import database_file, why_database_fails

log = logging.getLogger(__name__)

#: Time between two attempts to open the database, seconds.
RETRY_S: Final = 10.0


class WalIndex:
    """A connection from `keep` to `close`; does nothing without a file of SQLite."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._retries: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Keep the index, now or later."""
        if not self.keep():
            self._retries = asyncio.create_task(self._retry())

    def keep(self) -> bool:
        """Return False while the database cannot be opened; the first cause is logged."""
        path = database_file()
        if path is None:
            return True
        try:
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw", uri=True, check_same_thread=False
            )
            try:
                # The first read opens the index.
                connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            except sqlite3.Error:
                connection.close()
                raise
        except sqlite3.Error as trouble:
            if self._retries is None:
                log.warning("%s", why_database_fails() or f"{path} cannot be opened: {trouble}.")
            return False
        self._connection = connection
        return True

    def close(self) -> None:
        if self._retries is not None:
            self._retries.cancel()
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def _retry(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            if self.keep():
                return
