"""Small lakes for tests of the queries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from console.services.analytics.day_rollups import COUNTS
from trace.lake import HOUR_MS, Lake, Snapshot, hour_of, part_path
from trace.latency import bucket_of
from trace.subscriptions import filter_of
from trace.tables import SUBSCRIPTIONS, TABLES, Table

BEGIN_MS = 489_563 * HOUR_MS
ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
}


def schema_of(table: Table) -> pa.Schema:
    return pa.schema({column.name: ARROW[column.type] for column in table.columns})


def minute(at: int, topic: str | None, group: str | None = None, **counts: int) -> dict[str, Any]:
    """A row of `minute`, `at` minutes after BEGIN_MS."""
    return {
        "minute_ms": BEGIN_MS + at * 60_000,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": group,
        **dict.fromkeys(COUNTS, 0),
        "msg_type": 0,
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
        "msg_type": 0,
        "measure": measure,
        "bucket": bucket_of(ms),
        "count": count,
    }


def slow(at: int, msg_id: str, latency_ms: int, topic: str = "orders") -> dict[str, Any]:
    """A row of `slow`."""
    start_ms = BEGIN_MS + at * 60_000
    return {
        "at_ms": start_ms,
        "reason": "slow",
        "start_ms": start_ms,
        "msg_type": 0,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": "billing",
        "msg_id": msg_id,
        "stored_ms": start_ms - latency_ms,
        "latency_ms": latency_ms,
        "duration_ms": 5,
        "success": True,
    }


def never(at: int, msg_id: str, topic: str = "orders") -> dict[str, Any]:
    """A row of `slow` for a message without a recorded attempt of the group."""
    gone = dict.fromkeys(("start_ms", "latency_ms", "duration_ms", "success"))
    fields = {"reason": "untraced", "at_ms": BEGIN_MS + at * 60_000, "attempts": 0}
    return {**slow(at, msg_id, 0, topic), **gone, **fields, "stored_ms": fields["at_ms"]}


def edge(
    producer: str | None, topic: str | None, group: str | None, messages: int, **more: int
) -> dict[str, Any]:
    """A row of `edges` in the hour of BEGIN_MS."""
    counted = dict.fromkeys(("bytes", "failures", "dead_letters", "untraced"), 0)
    return {
        "hour_ms": BEGIN_MS,
        "producer_group": producer,
        "topic": topic,
        "consumer_group": group,
        "messages": messages,
        "attempts": messages,
        **counted,
        "first_ms": BEGIN_MS,
        "last_ms": BEGIN_MS + 1,
        **more,
    }


def untraced(
    at: int, topic: str, group: str, messages: int, tags: str | None = "", **more: Any
) -> dict[str, Any]:
    """A row of `untraced`, `at` minutes after BEGIN_MS."""
    begin_ms = BEGIN_MS + at * 60_000
    return {
        "minute_ms": begin_ms,
        "topic": topic,
        "producer_group": "shop",
        "consumer_group": group,
        "msg_type": 0,
        "tags": tags,
        "messages": messages,
        "first_ms": begin_ms,
        "last_ms": begin_ms + 59_000,
        **more,
    }


def subscription(topic: str, group: str, expression: str = "*", **more: Any) -> dict[str, Any]:
    """A row of `subscriptions`: nothing consumed since BEGIN_MS."""
    kind, text, tags = filter_of("TAG", expression)
    return {
        "topic": topic,
        "consumer_group": group,
        "since_ms": 0,
        "until_ms": None,
        "expression_type": kind,
        "expression": text,
        "accepted_tags": tags,
        "consumed_until_ms": BEGIN_MS,
        "asked_ms": BEGIN_MS,
        **more,
    }


def make_lake(
    root: Path,
    *,
    subscriptions: Sequence[dict[str, Any]] = (),
    **datasets: list[dict[str, Any]],
) -> Lake:
    """A lake with the rows in a single committed run."""
    lake = Lake(root)
    if subscriptions:
        path = lake.subscriptions_file(1)
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(list(subscriptions), schema_of(SUBSCRIPTIONS)), path)
    parts: dict[str, dict[int, list[int]]] = {}
    for name, rows in datasets.items():
        by_hour: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            by_hour.setdefault(hour_of(row[TABLES[name].time_column]), []).append(row)
        for hour, of_hour in by_hour.items():
            folder = lake.dataset(name) / part_path(hour, 1)
            folder.mkdir(parents=True)
            table = pa.Table.from_pylist(of_hour, schema=schema_of(TABLES[name]))
            pq.write_table(table, folder / "part-0.parquet")
            parts.setdefault(name, {})[hour] = [1]
    lake.commit(
        Snapshot(
            topic="T",
            run=1,
            committed_ms=BEGIN_MS,
            parts=parts,
            records=1,
            subscriptions_run=1 if subscriptions else 0,
        )
    )
    return lake
