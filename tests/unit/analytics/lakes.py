"""Small lakes made by hand, for tests of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from trace.lake import HOUR_MS, Lake, Snapshot, hour_of, part_path
from trace.latency import bucket_of

if TYPE_CHECKING:
    from pathlib import Path

BEGIN_MS = 489_563 * HOUR_MS
KEYS = {
    "minute_ms": pa.int64(),
    "topic": pa.string(),
    "producer_group": pa.string(),
    "consumer_group": pa.string(),
}
COUNTS = ("sends", "send_failures", "bytes", "attempts", "successes", "failures", "retries")
SCHEMAS = {
    "minute": pa.schema({**KEYS, **dict.fromkeys(COUNTS, pa.int64())}),
    "latency": pa.schema(
        {**KEYS, "measure": pa.string(), "bucket": pa.int32(), "count": pa.int64()}
    ),
    "slow": pa.schema(
        {
            "start_ms": pa.int64(),
            "topic": pa.string(),
            "producer_group": pa.string(),
            "consumer_group": pa.string(),
            "msg_id": pa.string(),
            "stored_ms": pa.int64(),
            "latency_ms": pa.int64(),
            "duration_ms": pa.int64(),
            "success": pa.bool_(),
        }
    ),
}


def minute(at: int, topic: str | None, group: str | None = None, **counts: int) -> dict[str, Any]:
    """A row of `minute`, so many minutes after BEGIN_MS."""
    return {
        "minute_ms": BEGIN_MS + at * 60_000,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": group,
        **dict.fromkeys(COUNTS, 0),
        **counts,
    }


def latency(
    at: int, topic: str | None, group: str | None, ms: float, count: int, measure: str = "latency"
) -> dict[str, Any]:
    """A row of `latency`."""
    return {
        "minute_ms": BEGIN_MS + at * 60_000,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": group,
        "measure": measure,
        "bucket": bucket_of(ms),
        "count": count,
    }


def slow(at: int, msg_id: str, latency_ms: int, topic: str = "orders") -> dict[str, Any]:
    """A row of `slow`."""
    start_ms = BEGIN_MS + at * 60_000
    return {
        "start_ms": start_ms,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": "billing",
        "msg_id": msg_id,
        "stored_ms": start_ms - latency_ms,
        "latency_ms": latency_ms,
        "duration_ms": 5,
        "success": True,
    }


def make_lake(root: Path, **datasets: list[dict[str, Any]]) -> Lake:
    """A lake with one committed run that holds these rows."""
    lake = Lake(root)
    parts: dict[str, dict[int, list[int]]] = {}
    for name, rows in datasets.items():
        by_hour: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            by_hour.setdefault(hour_of(row.get("minute_ms") or row["start_ms"]), []).append(row)
        for hour, of_hour in by_hour.items():
            folder = lake.dataset(name) / part_path(hour, 1)
            folder.mkdir(parents=True)
            table = pa.Table.from_pylist(of_hour, schema=SCHEMAS[name])
            pq.write_table(table, folder / "part-0.parquet")
            parts.setdefault(name, {})[hour] = [1]
    lake.commit(Snapshot(topic="T", run=1, committed_ms=BEGIN_MS, parts=parts, records=1))
    return lake
