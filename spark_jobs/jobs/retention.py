"""Drop hours of the lake that are older than the retention time."""

from collections.abc import Mapping

import msgspec

from spark_jobs.spark.lake_writer import LakeWriter
from trace.lake import HourIndex, Snapshot, hour_of


def drop_expired_hours(
    writer: LakeWriter, snapshot: Snapshot, retain_days: int, now_ms: int
) -> Snapshot:
    """Commit a snapshot without hours older than `retain_days`; returns the current snapshot.

    The files of the dropped hours stay until the next `delete_unreferenced`, for open readers.
    """
    oldest = hour_of(now_ms) - retain_days * 24
    parts = parts_from_hour(snapshot.parts, oldest)
    if parts == snapshot.parts:
        return snapshot
    stale = {name: [hour for hour in old if hour >= oldest] for name, old in snapshot.stale.items()}
    snapshot = msgspec.structs.replace(
        snapshot, run=writer.next_run(), committed_ms=now_ms, parts=parts, stale=stale
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
