"""Writes of the tables below storePathRootDir/config, one after the other, off the event loop.

A table is encoded on the event loop and written in a thread. Large tables encode changed entries
only. All consumer offsets change continuously: one iteration of the event loop encodes one slice of
them. Changes during a write are written together after the write.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from core_broker.processors.context import ConfigTable
from core_broker.state.config_files import write_config
from core_broker.store.io_threads import SerialExecutor

log = logging.getLogger(__name__)

Encoder = Callable[[], list[bytes] | Iterator[bytes]]
#: Replaces a file by the joined parts, and keeps its previous version.
Write = Callable[[Path, Sequence[bytes]], None]
#: Called on the event loop with the error of a write, or None.
Then = Callable[[Exception | None], None]


class TableSaver:
    """Owns the files of the tables.

    An encoder returns the content of a file in parts: a list of parts is written as it is, an
    iterator is read in one step per iteration of the event loop.
    """

    def __init__(
        self,
        folder: Path,
        encoders: Mapping[ConfigTable, Encoder],
        executor: SerialExecutor,
        write: Write = write_config,
    ) -> None:
        self._folder = folder
        self._encoders = encoders
        self._executor = executor
        self._write_file = write
        self._waiting: dict[ConfigTable, list[Then]] = {}
        #: The tables that are encoded or written now, with the callbacks of each write.
        self._writing: dict[ConfigTable, list[Then]] = {}
        #: Unfinished encodings: the parts so far, and the iterator with the other parts.
        self._encoding: dict[ConfigTable, tuple[list[bytes], Iterator[bytes]]] = {}
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

    def write_now(self, table: ConfigTable) -> None:
        """Write the current table, before the broker serves. Blocks the caller; raises OSError."""
        self._write_file(self.path(table), list(self._encoders[table]()))

    def retry_failed(self) -> None:
        """Write the tables whose last write failed."""
        for table in list(self._failed):
            self.save(table)

    def close(self) -> None:
        """Write every table and return when the files are on disk. Blocks the caller."""
        for table in self._encoders:
            self.save(table)
        self._executor.close()
        # The executor is inline now: this writes the rest before `close` returns.
        while self._encoding:
            table, (parts, rest) = next(iter(self._encoding.items()))
            self._submit(table, [*parts, *rest])

    def _write(self, table: ConfigTable) -> None:
        self._writing[table] = self._waiting.pop(table)
        parts = self._encoders[table]()
        if isinstance(parts, list):
            self._submit(table, parts)
        else:
            self._encoding[table] = ([], parts)
            self._encode_slice(table)

    def _encode_slice(self, table: ConfigTable) -> None:
        if table not in self._encoding:
            return  # `close` was faster
        parts, rest = self._encoding[table]
        part = next(rest, None)
        if part is None:
            self._submit(table, parts)
        else:
            parts.append(part)
            asyncio.get_running_loop().call_soon(self._encode_slice, table)

    def _submit(self, table: ConfigTable, parts: list[bytes]) -> None:
        self._encoding.pop(table, None)
        self._executor.submit(
            partial(self._write_file, self.path(table), parts), partial(self._written, table)
        )

    def _written(self, table: ConfigTable, error: Exception | None) -> None:
        waiting = self._writing.pop(table)
        if error is None:
            self._failed.discard(table)
        elif table not in self._failed:
            self._failed.add(table)
            log.error("%s cannot be written: %s", self.path(table), error)
        for then in waiting:
            then(error)
        if table in self._waiting:
            self._write(table)
