"""Import a history file into the console's PostgreSQL; print the time and the sizes of the tables.

DATABASE_URL=postgres://… python -m benchmarks.history_import HOME CLUSTER
"""

import os
import sys
import time
from pathlib import Path

MEBIBYTE = 1 << 20


def main(home: Path, cluster: str) -> None:
    """Import the file of a cluster."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from console.services.history.importing import pending_import
    from console.services.history.postgres import PostgresStore

    store = PostgresStore(cluster)
    began, began_s = time.perf_counter(), time.process_time()
    found = pending_import(home, cluster, store)
    assert found is not None, f"no history of {cluster} in {home}"
    assert found.run(lambda: True)
    took_s, used_s = time.perf_counter() - began, time.process_time() - began_s
    print(f"imported in {took_s:.0f} s, {used_s:.1f} s of CPU")
    total = 0
    for table in ("name", "frame", "hour", "day"):
        query = f"SELECT count(*), pg_total_relation_size('history_{table}') FROM history_{table}"
        ((rows, size),) = store._read(query, ())
        total += size
        print(f"history_{table}: {rows:,} rows, {size / MEBIBYTE:,.1f} MiB")
    print(
        f"in PostgreSQL: {total / MEBIBYTE:,.0f} MiB; by rows {store.size_bytes() / MEBIBYTE:,.0f}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
