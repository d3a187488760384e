"""DuckDB over the lake: read only, shut in, with an end to every query.

A connection may open files of its lake and nothing else, writes nowhere, loads no extensions and
has bounded memory, threads and time; only so many work at once. A job may replace files while we
read: what vanished is asked for again in the newest snapshot. A file that cannot be read is left
out and named, so that one broken file does not take the page with it.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
from django.conf import settings

from console.services.analytics.day_rollups import ROLLUPS_FOLDER, Mixed, files_of, mixed_files
from console.services.analytics.ranges import TimeRange
from trace.lake import Lake, Snapshot
from trace.tables import TABLES

log = logging.getLogger(__name__)

#: So many connections of a console process at once; each has the memory of the settings.
READERS_MAX: Final = 4
READER_WAIT_S: Final = 10.0
BROKEN_NAMED_MAX: Final = 10
#: So often files may be replaced under one question.
VANISHED_TRIES_MAX: Final = 3

_PLAIN: Final = "read_parquet($files, hive_partitioning = false)"
#: Of files of sums the hours that count, of the others what is not among those.
_MIXED: Final = """(
    SELECT * FROM read_parquet($files, hive_partitioning = false, filename = true)
    WHERE starts_with(filename, $sums) = ({time} >= $sums_begin AND {time} < $sums_end)
)"""

Row = tuple[Any, ...]
_readers = threading.BoundedSemaphore(READERS_MAX)


class TooSlowError(Exception):
    """A query was stopped; a shorter range may do."""


class TooBusyError(Exception):
    """All connections are in use."""


@dataclass(slots=True)
class LakeReader:
    """Answers questions about a lake."""

    lake: Lake
    snapshot: Snapshot
    connection: duckdb.DuckDBPyConnection
    #: Files that could not be read, as paths below the lake.
    broken: list[str] = field(default_factory=list)
    files_read: int = 0

    def rows(
        self,
        sql: str,
        dataset: str,
        range_: TimeRange,
        parameters: Mapping[str, object] | None = None,
        *,
        is_whole: bool = False,
    ) -> list[Row]:
        """Run `sql`, in which {files} stands for the table of `dataset` in the range; `is_whole`
        when it does not tell the points of the range apart."""
        for _attempt in range(VANISHED_TRIES_MAX):
            mixed = mixed_files(self.lake, self.snapshot, dataset, range_) if is_whole else None
            files, gone = self._files(dataset, range_, is_whole, mixed)
            given = {**(parameters or {}), **self._limits(mixed)}
            if gone and self._moves_on():
                continue
            try:
                found = self._execute(_of(sql, dataset, mixed), files, given) if files else []
            except duckdb.Error as error:
                log.warning("a query on %s failed: %s", self.lake.root, error)
                if not all(Path(path).is_file() for path in files) and self._moves_on():
                    continue
                break
            for folder in gone:
                self._name_broken(folder)
            return found
        whole = _of(sql, dataset, mixed)
        sound = [path for path in files if self._is_sound(whole, path, given)]
        return self._execute(whole, sound, given) if sound else []

    def _moves_on(self) -> bool:
        """Take the newest snapshot; False when it is the one we have."""
        newest = self.lake.snapshot()
        moves_on = newest.run != self.snapshot.run
        self.snapshot = newest
        return moves_on

    def _files(
        self, dataset: str, range_: TimeRange, is_whole: bool, mixed: Mixed | None
    ) -> tuple[list[str], list[Path]]:
        """What to read, and the folders that should be there and are not."""
        files: list[str] = []
        gone: list[Path] = []
        if mixed is not None:
            paths = mixed.files
        else:
            paths = files_of(self.lake, self.snapshot, dataset, range_, is_whole=is_whole)
        for path in paths:
            found = [path] if path.suffix == ".parquet" else sorted(path.glob("*.parquet"))
            files += map(str, found)
            if not found:
                gone.append(path)
        self.files_read += len(files)
        return files, gone

    def _limits(self, mixed: Mixed | None) -> dict[str, object]:
        """The parameters of `_MIXED`."""
        if mixed is None:
            return {}
        folder = f"{self.lake.root / ROLLUPS_FOLDER}/"
        return {"sums": folder, "sums_begin": mixed.begin_ms, "sums_end": mixed.end_ms}

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
        guard = threading.Timer(settings.ANALYTICS_SECONDS, self.connection.interrupt)
        guard.start()
        try:
            given = {"files": list(files), **parameters}
            return self.connection.execute(sql, given).fetchall()
        except duckdb.InterruptException as error:
            text = f"The query took longer than {settings.ANALYTICS_SECONDS} s."
            raise TooSlowError(text) from error
        except duckdb.OutOfMemoryException as error:
            text = f"The query needs more than {settings.ANALYTICS_MEMORY_MB} MB."
            raise TooSlowError(text) from error
        finally:
            guard.cancel()


def _of(sql: str, dataset: str, mixed: Mixed | None) -> str:
    """`sql` with its table in place of {files}."""
    table = _PLAIN if mixed is None else _MIXED.format(time=TABLES[dataset].time_column)
    return sql.replace("{files}", table)


@contextmanager
def reading(lake: Lake, snapshot: Snapshot) -> Iterator[LakeReader]:
    """A reader for as long as the block runs. Raises TooBusyError when too many read already."""
    if not _readers.acquire(timeout=READER_WAIT_S):
        raise TooBusyError(f"{READERS_MAX} questions are being answered already.")
    try:
        with duckdb.connect(":memory:") as connection:
            folder = str(lake.root).replace("'", "''")
            for setting in (
                f"threads = {settings.ANALYTICS_THREADS}",
                f"memory_limit = '{settings.ANALYTICS_MEMORY_MB}MB'",
                "temp_directory = ''",
                "preserve_insertion_order = false",
                "autoinstall_known_extensions = false",
                "autoload_known_extensions = false",
                f"allowed_directories = ['{folder}']",
                "enable_external_access = false",
                "lock_configuration = true",
            ):
                connection.execute(f"SET {setting}")
            yield LakeReader(lake, snapshot, connection)
    finally:
        _readers.release()
