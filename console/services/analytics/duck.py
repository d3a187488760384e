"""DuckDB over the lake: read only, sandboxed, with a time limit for every query.

A connection opens only files of the lake, writes no files, loads no extensions, and has limits for
memory, threads and time; at most READERS_MAX connections are open. A job may replace files during a
query: the query is then repeated on the newest snapshot. Unreadable files are skipped and named, so
that a broken file does not break the page.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow
import pyarrow.parquet
from django.conf import settings

from console.services.analytics.day_rollups import ROLLUPS_FOLDER, Mixed, files_of, mixed_files
from console.services.analytics.ranges import TimeRange
from trace.columns import arrow_schema
from trace.lake import Lake, Snapshot
from trace.tables import SUBSCRIPTIONS, TABLES

log = logging.getLogger(__name__)

#: Maximum number of connections per console process; the memory limit is per connection.
READERS_MAX: Final = 4
#: Maximum time that a query waits for a connection, seconds.
READER_WAIT_S: Final = 10.0
#: Maximum number of unreadable files named in a response.
BROKEN_NAMED_MAX: Final = 10
#: Maximum number of attempts of a query whose files vanish.
VANISHED_TRIES_MAX: Final = 3

_PLAIN: Final = "read_parquet($files, hive_partitioning = false)"
#: Rows of sum files within the hours of the sums, and rows of minute files outside of these hours.
_MIXED: Final = """(
    SELECT * FROM read_parquet($files, hive_partitioning = false, filename = true)
    WHERE starts_with(filename, $sums) = ({time} >= $sums_begin AND {time} < $sums_end)
)"""

Row = tuple[Any, ...]
_readers = threading.BoundedSemaphore(READERS_MAX)


class TooSlowError(Exception):
    """A query exceeded the time or memory limit; a shorter range needs less."""


class TooBusyError(Exception):
    """All connections are in use."""


@dataclass(slots=True)
class LakeReader:
    """Runs queries on a snapshot of a lake."""

    lake: Lake
    snapshot: Snapshot
    connection: duckdb.DuckDBPyConnection
    #: Unreadable files, as paths relative to the lake.
    broken: list[str] = field(default_factory=list)
    files_read: int = 0

    def _with_subscriptions(self) -> None:
        """Give the connection the table `subscriptions` of the snapshot; empty when unknown."""
        run = self.snapshot.subscriptions_run
        path = self.lake.subscriptions_file(run)
        try:
            table = pyarrow.parquet.read_table(path, partitioning=None) if run else None
        except (OSError, pyarrow.ArrowException) as error:
            log.warning("no subscriptions of lake %s: %s", self.lake.root, error)
            self._name_broken(path)
            table = None
        if table is None:
            table = arrow_schema(SUBSCRIPTIONS).empty_table()
        self.connection.register(SUBSCRIPTIONS.name, table)

    def rows(
        self,
        sql: str,
        dataset: str,
        range_: TimeRange,
        parameters: Mapping[str, object] | None = None,
        *,
        is_whole: bool = False,
    ) -> list[Row]:
        """Run `sql`, in which {files} stands for the table of `dataset` in the range, and
        `subscriptions` for the subscriptions of the groups.

        `is_whole` is for queries over the whole range, without the points of the range: such
        queries may read longer sums. Raises TooSlowError.
        """
        for _attempt in range(VANISHED_TRIES_MAX):
            if SUBSCRIPTIONS.name in sql:
                self._with_subscriptions()
            mixed = mixed_files(self.lake, self.snapshot, dataset, range_) if is_whole else None
            files, missing = self._files(dataset, range_, is_whole, mixed)
            values = {**(parameters or {}), **self._mixed_parameters(mixed)}
            if missing and self._take_newest_snapshot():
                continue
            try:
                rows = (
                    self._execute(_with_table(sql, dataset, mixed), files, values) if files else []
                )
            except duckdb.Error as error:
                log.warning("query on lake %s failed: %s", self.lake.root, error)
                if not all(Path(path).is_file() for path in files) and self._take_newest_snapshot():
                    continue
                break
            for folder in missing:
                self._name_broken(folder)
            return rows
        query = _with_table(sql, dataset, mixed)
        readable = [path for path in files if self._is_readable(query, path, values)]
        return self._execute(query, readable, values) if readable else []

    def _take_newest_snapshot(self) -> bool:
        """Switch to the newest snapshot; False when the current snapshot is the newest."""
        newest = self.lake.snapshot()
        is_newer = newest.run != self.snapshot.run
        self.snapshot = newest
        return is_newer

    def _files(
        self, dataset: str, range_: TimeRange, is_whole: bool, mixed: Mixed | None
    ) -> tuple[list[str], list[Path]]:
        """The files to read, and the missing or empty folders of the snapshot."""
        files: list[str] = []
        missing: list[Path] = []
        if mixed is not None:
            paths = mixed.files
        else:
            paths = files_of(self.lake, self.snapshot, dataset, range_, is_whole=is_whole)
        for path in paths:
            parquet_files = [path] if path.suffix == ".parquet" else sorted(path.glob("*.parquet"))
            files += map(str, parquet_files)
            if not parquet_files:
                missing.append(path)
        self.files_read += len(files)
        return files, missing

    def _mixed_parameters(self, mixed: Mixed | None) -> dict[str, object]:
        """The parameters of `_MIXED`."""
        if mixed is None:
            return {}
        folder = f"{self.lake.root / ROLLUPS_FOLDER}/"
        return {"sums": folder, "sums_begin": mixed.begin_ms, "sums_end": mixed.end_ms}

    def _is_readable(self, sql: str, path: str, parameters: Mapping[str, object]) -> bool:
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
            values = {"files": list(files), **parameters}
            return self.connection.execute(sql, values).fetchall()
        except duckdb.InterruptException as error:
            text = f"The query took longer than {settings.ANALYTICS_SECONDS} s."
            raise TooSlowError(text) from error
        except duckdb.OutOfMemoryException as error:
            text = f"The query needs more than {settings.ANALYTICS_MEMORY_MB} MB."
            raise TooSlowError(text) from error
        finally:
            guard.cancel()


def _with_table(sql: str, dataset: str, mixed: Mixed | None) -> str:
    """`sql` with the table expression in place of {files}."""
    table = _PLAIN if mixed is None else _MIXED.format(time=TABLES[dataset].time_column)
    return sql.replace("{files}", table)


@contextmanager
def reading(lake: Lake, snapshot: Snapshot) -> Iterator[LakeReader]:
    """A reader for the block. Raises TooBusyError after READER_WAIT_S without a free connection."""
    if not _readers.acquire(timeout=READER_WAIT_S):
        raise TooBusyError(f"{READERS_MAX} queries are running already.")
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
