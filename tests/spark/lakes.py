"""The content of a lake, for comparisons."""

from pathlib import Path
from typing import Any

import duckdb

from trace.lake import CONSUMERS, DATASETS, Lake


def content(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the current snapshot, by dataset, in a fixed order."""
    lake = Lake(root)
    snapshot = lake.snapshot()
    found = {}
    for name in (*DATASETS, CONSUMERS):
        folders = lake.folders(name, snapshot.parts.get(name, {}))
        files = [str(path) for folder in folders for path in folder.glob("*.parquet")]
        sql = "SELECT * FROM read_parquet($files, hive_partitioning = false)"
        rows = duckdb.execute(sql, {"files": files}).fetchall() if files else []
        found[name] = sorted(rows, key=repr)
    return found
