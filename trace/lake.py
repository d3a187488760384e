"""The trace lake: a folder of Parquet files, and which of them count.

    snapshot.json                                    table of contents, replaced in one rename
    events/day=2026-11-05/hour=13/run=12/*.parquet   trace records, as they were read
    minute/day=…/hour=…/run=…/*.parquet              counters and percentiles per minute
    latency/…                                        latency histograms per minute
    edges/…                                          who sends to whom, per hour
    slow/…                                           slowest and never-consumed, per hour
    lock                                             held by the one job that writes

`trace.tables` describes the columns. A run of a job writes new folders and commits by replacing
snapshot.json, which also holds the queue offsets read up to. So a run counts whole or not at all,
and a killed one leaves only folders that nobody reads. Hours are UTC. Events are added to; the
derived tables are replaced by the hour, and an hour whose events changed since is stale.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from core_broker.errors import GantryError
from trace import tables

EVENTS: Final = tables.EVENTS.name
MINUTE: Final = tables.MINUTE.name
LATENCY: Final = tables.LATENCY.name
EDGES: Final = tables.EDGES.name
SLOW: Final = tables.SLOW.name
#: Made from the events alone, so that any hour can be made again.
DERIVED: Final = (MINUTE, LATENCY, EDGES, SLOW)
DATASETS: Final = (EVENTS, *DERIVED)
HOUR_MS: Final = 3_600_000
LAKE_VERSION: Final = 2
#: Its events are the same, its rollups had fewer columns.
_VERSION_WITH_OLD_ROLLUPS: Final = 1

#: Hours since 1970 in UTC.
HourIndex = int
#: Of one dataset: hour, and the runs whose files count.
Parts = Mapping[HourIndex, list[int]]


class LakeError(GantryError):
    """The lake's table of contents cannot be read, or another job is writing (operator)."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What one commit of the lake consists of."""

    version: int = LAKE_VERSION
    topic: str = ""
    #: The run that made it; the next one counts on from here.
    run: int = 0
    committed_ms: int = 0
    #: Broker name, queue: the offset of the first message not yet read.
    offsets: dict[str, dict[int, int]] = {}
    #: Dataset, hour: the runs whose files count.
    parts: dict[str, dict[HourIndex, list[int]]] = {}
    #: Derived dataset: hours whose events changed since the dataset was made.
    stale: dict[str, list[HourIndex]] = {}
    #: When the newest trace message read was stored: what is newer cannot be known yet.
    watermark_ms: int = msgspec.field(default=0, name="told_until_ms")
    #: Retries before the dead letter, of the groups that do not use 16.
    retry_times_max: dict[str, int] = {}
    messages: int = 0
    records: int = 0
    broken_records: int = 0
    #: Messages the broker deleted before any run could read them.
    lost_messages: int = 0


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake by its root folder. Readers need no lock: a snapshot's files never change."""

    root: Path

    def snapshot(self) -> Snapshot:
        """The last commit; an empty snapshot when there was none yet."""
        path = self.root / "snapshot.json"
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=Snapshot)
        except FileNotFoundError:
            return Snapshot()
        except (OSError, msgspec.MsgspecError) as error:
            raise LakeError(f"{path} is not readable: {error}") from error
        if snapshot.version == _VERSION_WITH_OLD_ROLLUPS:
            return _with_rollups_to_be_made(snapshot)
        if snapshot.version != LAKE_VERSION:
            raise LakeError(f"{path} has version {snapshot.version}, expected {LAKE_VERSION}")
        return snapshot

    def commit(self, snapshot: Snapshot) -> None:
        """Make `snapshot` the lake's content. Its files must be complete before."""
        self.root.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self.root, prefix="snapshot-")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(snapshot))
            file.flush()
            os.fsync(file.fileno())
        Path(draft).chmod(0o644)
        Path(draft).replace(self.root / "snapshot.json")
        folder = os.open(self.root, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def dataset(self, name: str) -> Path:
        return self.root / name

    def folders(
        self, dataset: str, parts: Parts, hours: Iterable[HourIndex] | None = None
    ) -> list[Path]:
        """The folders of `parts` of `dataset`, in order of time; of `hours` only when given."""
        wanted = parts.keys() if hours is None else parts.keys() & set(hours)
        return [
            self.dataset(dataset) / part_path(hour, run)
            for hour in sorted(wanted)
            for run in parts[hour]
        ]

    def on_disk(self, dataset: str) -> Iterator[tuple[HourIndex, int, Path]]:
        """Every hour and run of `dataset` that has a folder, whether it counts or not."""
        for path in self.dataset(dataset).glob("day=*/hour=*/run=*"):
            found = _PART.search(path.as_posix())
            if found:
                day, hour, run = found.groups()
                start = datetime.fromisoformat(f"{day}T{hour}:00:00+00:00")
                yield int(start.timestamp()) // 3600, int(run), path


def _with_rollups_to_be_made(old: Snapshot) -> Snapshot:
    hours = old.parts.get(EVENTS, {})
    return msgspec.structs.replace(
        old,
        version=LAKE_VERSION,
        parts={EVENTS: hours},
        stale={name: sorted(hours) for name in DERIVED},
    )


_PART: Final = re.compile(r"/day=(\d{4}-\d\d-\d\d)/hour=(\d\d)/run=(\d+)$")


def hour_of(time_ms: int) -> HourIndex:
    return time_ms // HOUR_MS


def part_path(hour: HourIndex, run: int) -> str:
    """The folder of one hour and run below its dataset."""
    start = datetime.fromtimestamp(hour * 3600, UTC)
    return f"day={start:%Y-%m-%d}/hour={start:%H}/run={run}"


def replaced_parts(
    parts: Parts, run: int, written: Iterable[HourIndex], redone: Iterable[HourIndex]
) -> dict[HourIndex, list[int]]:
    """`parts` after `run` did the hours `redone` anew and `written` of them had any rows."""
    gone = set(redone)
    kept = {hour: runs for hour, runs in parts.items() if hour not in gone}
    return kept | {hour: [run] for hour in written}


def extended_parts(
    parts: Parts, run: int, written: Iterable[HourIndex]
) -> dict[HourIndex, list[int]]:
    """`parts` after `run` added rows to the hours `written`."""
    return {**parts, **{hour: [*parts.get(hour, ()), run] for hour in written}}
