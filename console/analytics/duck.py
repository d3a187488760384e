"""DuckDB over the lake: read only, shut in, with an end to every query.

A connection may open files of its lake and nothing else, writes nowhere, loads no extensions and
has bounded memory and time. A file that cannot be read is left out and named, so that one broken
file does not take the page with it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

from trace.lake import HourIndex, Lake, Snapshot

logger = logging.getLogger(__name__)

THREADS: Final = 2
MEMORY: Final = "512MB"
QUERY_SECONDS_MAX: Final = 15.0
BROKEN_NAMED_MAX: Final = 10

Row = tuple[Any, ...]


class TooSlowError(Exception):
    """A query was stopped; a shorter range may do."""


@dataclass(slots=True)
class LakeReader:
    """Answers questions about one snapshot of a lake."""

    lake: Lake
    snapshot: Snapshot
    connection: duckdb.DuckDBPyConnection
    broken: list[str] = field(default_factory=list)
    """Files that could not be read, as paths below the lake."""

    def rows(
        self,
        sql: str,
        dataset: str,
        hours: Sequence[HourIndex],
        parameters: Mapping[str, object] | None = None,
    ) -> list[Row]:
        """Run `sql`, in which {files} stands for the table of `dataset` in `hours`."""
        files = self._files(dataset, hours)
        if not files:
            return []
        try:
            return self._execute(sql, files, parameters or {})
        except duckdb.InterruptException as error:
            raise TooSlowError(f"The query took longer than {QUERY_SECONDS_MAX:.0f} s.") from error
        except duckdb.Error as error:
            logger.warning("a query on %s failed: %s", self.lake.root, error)
        sound = [path for path in files if self._is_sound(sql, path, parameters or {})]
        return self._execute(sql, sound, parameters or {}) if sound else []

    def _files(self, dataset: str, hours: Sequence[HourIndex]) -> list[str]:
        folders = self.lake.folders(dataset, self.snapshot.parts.get(dataset, {}), hours)
        files: list[str] = []
        for folder in folders:
            found = sorted(str(path) for path in folder.glob("*.parquet"))
            if not found:
                self._name_broken(folder)
            files += found
        return files

    def _is_sound(self, sql: str, path: str, parameters: Mapping[str, object]) -> bool:
        try:
            self._execute(sql, [path], parameters)
        except duckdb.Error:
            self._name_broken(Path(path))
            return False
        return True

    def _name_broken(self, path: Path) -> None:
        name = str(path.relative_to(self.lake.root))
        if name not in self.broken and len(self.broken) < BROKEN_NAMED_MAX:
            self.broken.append(name)

    def _execute(
        self, sql: str, files: Sequence[str], parameters: Mapping[str, object]
    ) -> list[Row]:
        table = "read_parquet($files, hive_partitioning = false)"
        guard = threading.Timer(QUERY_SECONDS_MAX, self.connection.interrupt)
        guard.start()
        try:
            given = {"files": list(files), **parameters}
            return self.connection.execute(sql.replace("{files}", table), given).fetchall()
        finally:
            guard.cancel()


@contextmanager
def reading(lake: Lake, snapshot: Snapshot) -> Iterator[LakeReader]:
    """A reader for as long as the block runs."""
    connection = duckdb.connect(":memory:")
    try:
        folder = str(lake.root).replace("'", "''")
        for setting in (
            f"threads = {THREADS}",
            f"memory_limit = '{MEMORY}'",
            "temp_directory = ''",
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            f"allowed_directories = ['{folder}']",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        yield LakeReader(lake, snapshot, connection)
    finally:
        connection.close()
