"""Drop hours of the lake that are older than the retention time, and facts of settled hours."""

from collections.abc import Mapping
from typing import Final

import msgspec

from spark_jobs.spark.lake_writer import LakeWriter
from trace.lake import FACTS, HourIndex, Snapshot, hour_of
from trace.tables import LOOKBACK_HOURS

#: Hours before the watermark that keep their facts: events change facts in the look-back, and a
#: day's delay of the events is usual.
FACT_HOURS: Final = 2 * LOOKBACK_HOURS


def drop_expired_hours(
    writer: LakeWriter, snapshot: Snapshot, retain_days: int, now_ms: int
) -> Snapshot:
    """Commit a snapshot without hours older than `retain_days`; returns the current snapshot.

    Hours older than FACT_HOURS before the watermark lose their facts, unless tables are stale.
    The files of the dropped hours stay until the next `delete_unreferenced`, for open readers.
    """
    oldest = hour_of(now_ms) - retain_days * 24
    parts = parts_from_hour(snapshot.parts, oldest)
    facts_from = max(snapshot.facts_from, hour_of(snapshot.watermark_ms) - FACT_HOURS)
    if FACTS in parts and not (snapshot.pending or any(snapshot.stale.values())):
        parts[FACTS] = parts_from_hour(parts, facts_from)[FACTS]
    if parts == snapshot.parts:
        return snapshot
    stale = {name: [hour for hour in old if hour >= oldest] for name, old in snapshot.stale.items()}
    snapshot = msgspec.structs.replace(
        snapshot,
        run=writer.next_run(),
        committed_ms=now_ms,
        parts=parts,
        facts_from=facts_from,
        stale=stale,
    )
    writer.lake.commit(snapshot)
    return snapshot


def parts_from_hour(
    parts: Mapping[str, Mapping[HourIndex, list[int]]], oldest: HourIndex
) -> dict[str, dict[HourIndex, list[int]]]:
    """The parts without the hours before `oldest`."""
    return {
        name: {hour: runs for hour, runs in hours.items() if hour >= oldest}
        for name, hours in parts.items()
    }
