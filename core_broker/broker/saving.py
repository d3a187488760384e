"""Writes of the tables below storePathRootDir/config, one after the other, off the event loop.

A table is encoded on the event loop, where large tables encode only what has changed, and written
in a thread. Changes during a write are written together after the write.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from core_broker.processors.context import ConfigTable
from core_broker.state.config_files import write_config_parts
from core_broker.store.io_threads import SerialExecutor

log = logging.getLogger(__name__)

#: Called on the event loop with the error of a write, or None.
Then = Callable[[Exception | None], None]


class TableSaver:
    """Owns the files of the tables; `encoders` return the content of each file in parts."""

    def __init__(
        self,
        folder: Path,
        encoders: Mapping[ConfigTable, Callable[[], Sequence[bytes]]],
        executor: SerialExecutor,
    ) -> None:
        self._folder = folder
        self._encoders = encoders
        self._executor = executor
        self._waiting: dict[ConfigTable, list[Then]] = {}
        self._writing: set[ConfigTable] = set()
        #: Tables whose last write failed, for example because the disk is full.
        self._failed: set[ConfigTable] = set()

    def path(self, table: ConfigTable) -> Path:
        """Return the file of a table."""
        return self._folder / table.value

    def save(self, table: ConfigTable, then: Then | None = None) -> None:
        """Write the current table; `then` is called on the event loop after the write."""
        waiting = self._waiting.setdefault(table, [])
        if then is not None:
            waiting.append(then)
        if table not in self._writing:
            self._write(table)

    def retry_failed(self) -> None:
        """Write the tables whose last write failed."""
        for table in list(self._failed):
            self.save(table)

    def close(self) -> None:
        """Write every table and return when the files are on disk. Blocks the caller."""
        for table in self._encoders:
            self.save(table)
        self._executor.close()

    def _write(self, table: ConfigTable) -> None:
        waiting = self._waiting.pop(table)
        self._writing.add(table)
        parts = self._encoders[table]()
        self._executor.submit(
            partial(write_config_parts, self.path(table), parts),
            partial(self._written, table, waiting),
        )

    def _written(self, table: ConfigTable, waiting: list[Then], error: Exception | None) -> None:
        self._writing.discard(table)
        if error is None:
            self._failed.discard(table)
        elif table not in self._failed:
            self._failed.add(table)
            log.error("%s cannot be written: %s", self.path(table), error)
        for then in waiting:
            then(error)
        if table in self._waiting:
            self._write(table)
