"""The trace lake: a folder of Parquet files, and the snapshot that lists the valid files.

    snapshot.json                                    table of contents, replaced in one rename
    events/day=2026-11-05/hour=13/run=12/*.parquet   trace records as decoded
    minute/day=…/hour=…/run=…/*.parquet              counters and percentiles per minute
    latency/…                                        latency histograms per minute
    edges/…                                          message flow per hour
    slow/…                                           slow and untraced messages, per hour
    untraced/…                                       counts of untraced messages per minute
    facts/…                                          sends and attempts, input of the tables
    consumers/…                                      consumer groups per topic and hour
    subscriptions/run=12.parquet                     what the cluster says about the groups
    staging/run=12/*.parquet                         files of running tasks
    lock                                             held by the one job that writes

`trace.tables` describes the columns. A run of a job writes new folders and commits by replacing
snapshot.json, which also holds the next queue offsets. A run is therefore committed as a whole or
not at all; a killed run leaves only unreferenced folders. Hours are UTC. Runs append events and
facts; they replace derived tables by the hour. An hour whose facts changed after the derivation is
stale. Only the hours of the look-back keep their facts: older facts are derived again from events.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from core_broker.durable_files import replace_file
from core_broker.errors import GantryError
from trace import tables

EVENTS: Final = tables.EVENTS.name
MINUTE: Final = tables.MINUTE.name
LATENCY: Final = tables.LATENCY.name
EDGES: Final = tables.EDGES.name
SLOW: Final = tables.SLOW.name
UNTRACED: Final = tables.UNTRACED.name
FACTS: Final = tables.FACTS.name
CONSUMERS: Final = tables.CONSUMERS.name
#: Derived from the facts of an hour, and the consumers of the look-back.
DERIVED: Final = (MINUTE, LATENCY, EDGES, SLOW, UNTRACED)
#: Derived datasets that depend on the consumers of the look-back, and on the watermark.
WITH_UNTRACED: Final = (EDGES, SLOW, UNTRACED)
DATASETS: Final = (EVENTS, *DERIVED)
#: Datasets for the jobs only.
STATE: Final = (FACTS, CONSUMERS)
STAGING: Final = "staging"
SNAPSHOT_FILE: Final = "snapshot.json"
HOUR_MS: Final = 3_600_000
LAKE_VERSION: Final = 4
#: A version with the same events, but fewer columns in all rollups.
_VERSION_WITH_OLD_ROLLUPS: Final = 1
#: Versions without facts, or without tags in the facts; without untraced messages.
_VERSIONS_WITHOUT_TAGS: Final = frozenset({2, 3})

#: Hours since 1970 in UTC.
HourIndex = int
#: Valid files of one dataset: hour, run numbers.
Parts = Mapping[HourIndex, list[int]]


class LakeError(GantryError):
    """The snapshot cannot be read, or another job is writing (operator)."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the lake after one commit."""

    version: int = LAKE_VERSION
    topic: str = ""
    #: Number of the run that committed the snapshot; the next run gets a higher number.
    run: int = 0
    committed_ms: int = 0
    #: Broker name, queue: offset of the first unread message.
    offsets: dict[str, dict[int, int]] = {}
    #: Dataset, hour: numbers of the runs with valid files.
    parts: dict[str, dict[HourIndex, list[int]]] = {}
    #: Numbers of the runs whose events are not yet in the facts.
    pending: list[int] = []
    #: First hour of which all facts are stored. Earlier hours may have facts, then all of them.
    facts_from: HourIndex = 0
    #: Derived dataset: hours whose facts changed after the derivation.
    stale: dict[str, list[HourIndex]] = {}
    #: Store time of the newest trace message read, ms. Later events are not yet known.
    watermark_ms: int = msgspec.field(default=0, name="told_until_ms")
    #: Maximum retries before the dead letter, for groups with a limit other than 16.
    retry_times_max: dict[str, int] = {}
    #: Run of the valid file of subscriptions; 0 before the first answer of a cluster.
    subscriptions_run: int = 0
    #: Time of that answer, ms.
    subscriptions_ms: int = 0
    messages: int = 0
    records: int = 0
    broken_records: int = 0
    #: Messages that expired in the broker before any run read them.
    lost_messages: int = 0


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake by its root folder. Readers need no lock: the files of a snapshot never change."""

    root: Path

    def snapshot(self) -> Snapshot:
        """The last commit; an empty snapshot before the first commit."""
        path = self.root / SNAPSHOT_FILE
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=Snapshot)
        except FileNotFoundError:
            return Snapshot()
        except (OSError, msgspec.MsgspecError) as error:
            raise LakeError(f"{path} is not readable: {error}") from error
        if snapshot.version == _VERSION_WITH_OLD_ROLLUPS:
            return _upgraded(snapshot, kept=())
        if snapshot.version in _VERSIONS_WITHOUT_TAGS:
            return _upgraded(snapshot, kept=() if snapshot.pending else (MINUTE, LATENCY))
        if snapshot.version != LAKE_VERSION:
            raise LakeError(f"{path} has version {snapshot.version}, expected {LAKE_VERSION}")
        return snapshot

    def commit(self, snapshot: Snapshot) -> None:
        """Make `snapshot` the content of the lake. All its files must be complete."""
        replace_file(self.root / SNAPSHOT_FILE, [msgspec.json.encode(snapshot)])

    def dataset(self, name: str) -> Path:
        return self.root / name

    def subscriptions_file(self, run: int) -> Path:
        """The file of subscriptions that `run` wrote."""
        return self.dataset(tables.SUBSCRIPTIONS.name) / f"run={run}.parquet"

    def staging(self, run: int) -> Path:
        """The folder of files that belong to no hour yet."""
        return self.root / STAGING / f"run={run}"

    def folders(
        self, dataset: str, parts: Parts, hours: Iterable[HourIndex] | None = None
    ) -> list[Path]:
        """The folders of `parts` of `dataset`, in order of time; optionally of `hours` only."""
        selected = parts.keys() if hours is None else parts.keys() & set(hours)
        return [
            self.dataset(dataset) / part_path(hour, run)
            for hour in sorted(selected)
            for run in parts[hour]
        ]

    def files(self, dataset: str, parts: Parts, hours: Iterable[HourIndex]) -> list[Path]:
        """The files of `parts` of `dataset` in `hours`."""
        folders = self.folders(dataset, parts, hours)
        return [file for folder in folders for file in sorted(folder.glob("*.parquet"))]

    def on_disk(self, dataset: str) -> Iterator[tuple[HourIndex, int, Path]]:
        """Every hour and run of `dataset` with a folder, valid or not."""
        for path in self.dataset(dataset).glob("day=*/hour=*/run=*"):
            match = _PART.search(path.as_posix())
            if match:
                day, hour, run = match.groups()
                start = datetime.fromisoformat(f"{day}T{hour}:00:00+00:00")
                yield int(start.timestamp()) // 3600, int(run), path


def _upgraded(old: Snapshot, kept: Collection[str]) -> Snapshot:
    """A lake whose hours get facts, and all datasets but `kept`, when a job needs them."""
    hours = sorted(old.parts.get(EVENTS, ()))
    after = hours[-1] + 1 if hours else 0
    stale = {name: old.stale.get(name, []) if name in kept else hours for name in DERIVED}
    needed = [hour for hour in hours if hour >= after - 1 - tables.LOOKBACK_HOURS]
    return msgspec.structs.replace(
        old,
        version=LAKE_VERSION,
        parts={name: parts for name, parts in old.parts.items() if name in {EVENTS, *kept}},
        pending=[],
        facts_from=after,
        stale={CONSUMERS: needed, **stale},
    )


_PART: Final = re.compile(r"/day=(\d{4}-\d\d-\d\d)/hour=(\d\d)/run=(\d+)$")


def hour_of(time_ms: int) -> HourIndex:
    return time_ms // HOUR_MS


def part_path(hour: HourIndex, run: int) -> str:
    """The folder of an hour and run, relative to its dataset."""
    start = datetime.fromtimestamp(hour * 3600, UTC)
    return f"day={start:%Y-%m-%d}/hour={start:%H}/run={run}"


def replaced_parts(
    parts: Parts, run: int, written: Iterable[HourIndex], redone: Iterable[HourIndex]
) -> dict[HourIndex, list[int]]:
    """`parts` after `run` replaced the hours `redone`, of which the hours `written` have rows."""
    replaced = set(redone)
    kept = {hour: runs for hour, runs in parts.items() if hour not in replaced}
    return kept | {hour: [run] for hour in written}


def extended_parts(
    parts: Parts, run: int, written: Iterable[HourIndex]
) -> dict[HourIndex, list[int]]:
    """`parts` after `run` appended rows to the hours `written`."""
    return {**parts, **{hour: [*parts.get(hour, ()), run] for hour in written}}
