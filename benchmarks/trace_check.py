"""Compare a lake with the truth of a world: counts exactly, percentiles within 1 %."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from benchmarks.trace_world import Truth
from trace.lake import EDGES, EVENTS, LATENCY, MINUTE, UNTRACED, Lake
from trace.latency import bucket_value_ms
from trace.tables import LEVELS, MEASURES

CLOSENESS: Final = 0.01
DIFFERENCES_MAX: Final = 20
_CONSUMED: Final = (
    "attempts",
    "successes",
    "failures",
    "unfinished",
    "retries",
    "dead_letters",
    "deliveries",
    "consumed",
)


def differences(root: Path, truth: Truth) -> list[str]:
    """The differences, at most DIFFERENCES_MAX; empty when the lake is right."""
    wrong = []
    for difference in _all(Lake(root), truth):
        wrong.append(difference)
        if len(wrong) == DIFFERENCES_MAX:
            break
    return wrong


def _all(lake: Lake, truth: Truth) -> Iterator[str]:
    snapshot = lake.snapshot()
    [(events,)] = rows(lake, EVENTS, "SELECT count(*) FROM {}")
    yield from _same("messages", snapshot.messages, truth.bodies)
    yield from _same("records", (snapshot.records, events), (truth.records, truth.records))
    yield from _same("broken records", snapshot.broken_records, truth.broken)
    yield from _same("stale hours", any(snapshot.stale.values()), False)
    yield from _sends(lake, truth)
    yield from _consumption(lake, truth)
    for dataset, column in ((EDGES, "untraced"), (UNTRACED, "messages")):
        found = rows(lake, dataset, f"SELECT coalesce(sum({column}), 0) FROM {{}}")
        missed = int(found[0][0]) if found else 0
        yield from _same(f"untraced messages in {dataset}", missed, truth.untraced)
    yield from _histograms(lake, truth)


def rows(lake: Lake, dataset: str, sql: str) -> list[tuple[Any, ...]]:
    """Run `sql`, with {} as the table."""
    folders = lake.folders(dataset, lake.snapshot().parts.get(dataset, {}))
    files = [str(path) for folder in folders for path in sorted(folder.glob("*.parquet"))]
    if not files:
        return []
    table = "read_parquet($files, hive_partitioning = false)"
    with duckdb.connect(":memory:") as connection:
        return connection.execute(sql.replace("{}", table), {"files": files}).fetchall()


def _sends(lake: Lake, truth: Truth) -> Iterator[str]:
    found = {}
    spread = _spread_columns(("send_cost",))
    sql = f"SELECT minute_ms, topic, msg_type, sends, send_failures, bytes, {spread} FROM {{}}"
    for minute, topic, kind, *figures in rows(lake, MINUTE, sql + " WHERE consumer_group IS NULL"):
        found[minute, topic, kind] = figures
    yield from _same("minutes of sends", found.keys(), truth.sends.keys())
    for key, known in truth.sends.items():
        counts = [known.sends, known.send_failures, known.bytes]
        yield from _compare(f"sends {key}", found.get(key), counts, (known.costs,))


def _consumption(lake: Lake, truth: Truth) -> Iterator[str]:
    found = {}
    counts = ", ".join(_CONSUMED)
    spread = _spread_columns(("latency", "end_to_end"))
    sql = f"SELECT minute_ms, topic, consumer_group, msg_type, {counts}, {spread} FROM {{}}"
    for row in rows(lake, MINUTE, sql + " WHERE consumer_group IS NOT NULL"):
        found[row[:4]] = list(row[4:])
    yield from _same("minutes of consumption", found.keys(), truth.consumption.keys())
    for key, known in truth.consumption.items():
        wanted = [getattr(known, name) for name in _CONSUMED]
        lists = (known.latencies, known.end_to_end)
        yield from _compare(f"consumption {key}", found.get(key), wanted, lists)


def _compare(
    what: str, found: Sequence[Any] | None, counts: Sequence[int], lists: Sequence[list[int]]
) -> Iterator[str]:
    if found is None:
        return
    yield from _same(what, list(found[: len(counts)]), list(counts))
    at = len(counts)
    for values in lists:
        ordered = sorted(values)
        for level in (*LEVELS.values(), 1.0):
            wanted = percentile(ordered, level)
            if not _is_close(found[at], wanted):
                yield f"{what}: percentile {level} is {found[at]}, should be {wanted}"
            at += 1


def _histograms(lake: Lake, truth: Truth) -> Iterator[str]:
    """Percentiles over all hours, from the histograms."""
    known: dict[str, list[int]] = {measure: [] for measure in MEASURES}
    for sends in truth.sends.values():
        known["send_cost"] += sends.costs
    for consumption in truth.consumption.values():
        known["latency"] += consumption.latencies
        known["end_to_end"] += consumption.end_to_end
    sql = "SELECT measure, bucket, sum(count)::BIGINT FROM {} GROUP BY ALL ORDER BY ALL"
    buckets: dict[str, list[tuple[int, int]]] = {measure: [] for measure in MEASURES}
    for measure, bucket, count in rows(lake, LATENCY, sql):
        buckets[measure].append((bucket, count))
    for measure, values in known.items():
        yield from _same(f"all {measure}", sum(n for _, n in buckets[measure]), len(values))
        ordered = sorted(values)
        for level in LEVELS.values():
            wanted = ordered[max(0, -(-int(level * 100 * len(ordered)) // 100) - 1)]
            found = _from_buckets(buckets[measure], level * len(ordered))
            if not _is_close(found, wanted) and wanted > 1:
                yield f"histogram of {measure}: {level} is {found}, should be {wanted}"


def _from_buckets(buckets: Iterable[tuple[int, int]], rank: float) -> float | None:
    seen = 0
    for bucket, count in buckets:
        seen += count
        if seen >= rank:
            return bucket_value_ms(bucket)
    return None


def percentile(ordered: Sequence[int], level: float) -> float | None:
    """Percentile by linear interpolation, as SQL's percentile_cont; None without values."""
    if not ordered:
        return None
    place = level * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _is_close(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return abs(found - wanted) <= CLOSENESS * abs(wanted) + 1e-6


def _same(what: str, found: Any, wanted: Any) -> Iterator[str]:
    if found != wanted:
        yield f"{what}: {str(found)[:200]}, should be {str(wanted)[:200]}"


def _spread_columns(measures: Sequence[str]) -> str:
    return ", ".join(f"{measure}_{level}" for measure in measures for level in (*LEVELS, "max"))
