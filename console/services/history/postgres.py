"""The history in PostgreSQL: tables of the console's database, shared by all clusters.

The tables are those of `store.py`, with the prefix `history_` and the column `cluster`; migration
0003 creates the tables. Each thread uses its own connection of Django. Writers of a cluster wait
for each other: an advisory lock per cluster is held until the end of a transaction. Old rows are
deleted by range, and autovacuum lets new rows use their space.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from console.environment import CLUSTER_NAME
from console.services.history.metrics import SCOPES, Scope
from console.services.history.store import WAIT_S, Rows, Store

#: The console's database.
DATABASE: Final = DEFAULT_DB_ALIAS
PREFIX: Final = "history_"
TABLES: Final = ("name", "frame", "hour", "day", "pace")
#: Size of a row beside its data, bytes: header, key, entries of the indexes, unused parts of pages.
#: With 5,000 topics and groups, the tables take 610 bytes per row more than the data.
ROW_BYTES: Final = 600
#: First number of the advisory locks of clusters; the second is a hash of the name.
LOCKS: Final = 0x48495354


class PostgresStore(Store):
    """The rows of a cluster; used by one thread at a time, with the thread's connection."""

    def __init__(self, cluster: str) -> None:
        if not CLUSTER_NAME.fullmatch(cluster):
            raise ValueError(f"{cluster!r} is no name of a cluster")
        own = f"cluster = '{cluster}'"
        super().__init__({"t": PREFIX, "own": own, "key": "cluster, ", "value": f"'{cluster}', "})
        self._cluster = cluster

    def _sql(self, template: str) -> str:
        return super()._sql(template).replace("?", "%s")

    @contextmanager
    def _cursor(self) -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
        """A cursor that sends and receives data in binary, unlike Django's."""
        connection = connections[DATABASE]
        connection.ensure_connection()
        with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
            cursor.format = psycopg.pq.Format.BINARY
            yield cursor

    def _read(self, template: str, values: Sequence[Any]) -> Rows:
        with self._cursor() as cursor:
            return cursor.execute(self._sql(template).encode(), values).fetchall()

    def _change(self, template: str, values: Sequence[Any]) -> int:
        with self._cursor() as cursor:
            return cursor.execute(self._sql(template).encode(), values).rowcount

    def _change_each(self, template: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._cursor() as cursor:
            cursor.executemany(self._sql(template).encode(), rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with transaction.atomic(using=DATABASE):
            self._read(f"SELECT set_config('lock_timeout', '{int(WAIT_S * 1000)}', TRUE)", ())
            self._read(f"SELECT pg_advisory_xact_lock({LOCKS}, hashtext(?))", (self._cluster,))
            yield

    def see_names(self, scope: Scope, slots: Iterable[int], at_ms: int) -> None:
        self._change(
            "UPDATE {t}name SET last_ms = ?"
            " WHERE {own} AND scope = ? AND slot = ANY(?) AND last_ms < ?",
            (at_ms, SCOPES[scope], list(slots), at_ms),
        )

    def size_bytes(self) -> int:
        """Return the size of the rows, without the space of deleted ones."""
        sizes = (
            self._read(
                f"SELECT coalesce(sum(pg_column_size(data) + {ROW_BYTES}), 0)::bigint"
                f" FROM {{t}}{table} WHERE {{own}}",
                (),
            )
            for table in ("frame", "hour", "day")
        )
        return sum(int(rows[0][0]) for rows in sizes)

    def compact(self) -> None:
        """Do nothing: autovacuum does."""

    def delete_all(self) -> None:
        for table in TABLES:
            self._change(f"DELETE FROM {{t}}{table} WHERE {{own}}", ())

    def close(self) -> None:
        """Do nothing: the connection is that of the thread."""


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """The rows of a cluster in the console's database."""

    cluster: str

    def __str__(self) -> str:
        return "PostgreSQL (DATABASE_URL)"

    @contextmanager
    def reader(self) -> Iterator[PostgresStore]:
        connection = connections[DATABASE]
        is_outermost = not connection.in_atomic_block
        with transaction.atomic(using=DATABASE):
            if is_outermost:  # all reads see the same state
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresStore(self.cluster)

    def writer(self) -> PostgresStore:
        return PostgresStore(self.cluster)

    def delete(self) -> None:
        store = PostgresStore(self.cluster)
        with store.transaction():
            store.delete_all()


def stored_rows() -> list[tuple[str, PostgresPlace]]:
    """Return the rows of all clusters, also of removed ones; every history has names."""
    with connections[DATABASE].cursor() as cursor:
        cursor.execute(f"SELECT DISTINCT cluster FROM {PREFIX}name ORDER BY cluster")
        return [(name, PostgresPlace(name)) for (name,) in cursor.fetchall()]
