"""The derived tables of the lake, made again for the hours that need it.

Everything in them comes from the events, so an hour can be made at any time and as often as one
likes; what was there is replaced in the commit. Hours are done in chunks, each with a commit of
its own: a run that is killed has lost one chunk.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from spark_jobs import facts, paths, rollup
from spark_jobs.lake_frames import around, read_events, write_hours
from spark_jobs.lake_writer import LakeWriter
from spark_jobs.progress import Progress, Stage
from spark_jobs.watch import watching
from trace.lake import (
    DERIVED,
    EDGES,
    EVENTS,
    LATENCY,
    MINUTE,
    SLOW,
    HourIndex,
    Snapshot,
    replaced_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HOURS_PER_CHUNK: Final = 24


def chunks_to_make(
    snapshot: Snapshot, datasets: Iterable[str], asked: Collection[HourIndex] | None
) -> list[list[HourIndex]]:
    """The hours to make, in chunks; those that are stale when no hours are asked for."""
    if asked is None:
        hours = {hour for name in datasets for hour in snapshot.stale.get(name, ())}
    else:
        made = (snapshot.parts.get(name, {}) for name in (EVENTS, *datasets))
        hours = {hour for known in made for hour in known} & set(asked)
    ordered = sorted(hours)
    return [
        ordered[begin : begin + HOURS_PER_CHUNK]
        for begin in range(0, len(ordered), HOURS_PER_CHUNK)
    ]


def derive(
    spark: SparkSession,
    writer: LakeWriter,
    snapshot: Snapshot,
    datasets: Collection[str],
    chunks: Sequence[Sequence[HourIndex]],
    progress: Progress,
    now_ms: Callable[[], int],
) -> Snapshot:
    """Make `datasets` for every chunk of hours; returns what is committed in the end."""
    for number, hours in enumerate(chunks):
        progress.enter(Stage.ROLLUP, part=number, parts=len(chunks))
        run = writer.next_run()
        parts = dict(snapshot.parts)
        with _tables(spark, writer, snapshot, hours, datasets) as tables:
            for place, (name, frame) in enumerate(tables.items()):
                share = (place / len(tables), (place + 1) / len(tables))
                with watching(spark, progress, share=share):
                    written = write_hours(frame, writer.lake, name, run, one_file=True)
                parts[name] = replaced_parts(parts.get(name, {}), run, written, redone=hours)
        if not tables:  # no events are left of these hours
            parts |= {n: replaced_parts(parts.get(n, {}), run, (), redone=hours) for n in datasets}
        snapshot = msgspec.structs.replace(
            snapshot,
            run=run,
            committed_ms=now_ms(),
            parts=parts,
            stale=fresh(snapshot.stale, datasets, hours),
        )
        writer.lake.commit(snapshot)
    return snapshot


def fresh(
    stale: Mapping[str, list[HourIndex]], datasets: Collection[str], hours: Sequence[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after `datasets` were made for `hours`."""
    return {
        name: [hour for hour in old if name not in datasets or hour not in hours]
        for name, old in stale.items()
    }


@contextmanager
def _tables(
    spark: SparkSession,
    writer: LakeWriter,
    snapshot: Snapshot,
    hours: Sequence[HourIndex],
    datasets: Collection[str],
) -> "Iterator[dict[str, DataFrame]]":
    """The frames of the tables; what they share is kept for as long as the block runs."""
    events = read_events(spark, writer.lake, snapshot.parts.get(EVENTS, {}), around(hours))
    if events is None:
        yield {}
        return
    all_sends = facts.sends(events)
    all_deliveries = facts.deliveries(events, snapshot.retry_times_max).persist()
    sends = rollup.in_hours(all_sends, "sent_ms", hours).persist()
    deliveries = rollup.in_hours(all_deliveries, "start_ms", hours)
    missed = paths.never_consumed(
        events, facts.origins(all_sends), all_deliveries, hours, snapshot.told_until_ms
    ).persist()
    frames = {
        MINUTE: lambda: rollup.per_minute(sends, deliveries),
        LATENCY: lambda: rollup.latency_histograms(sends, deliveries),
        EDGES: lambda: paths.edges(sends, deliveries, missed),
        SLOW: lambda: paths.slow(deliveries, missed),
    }
    try:
        yield {name: frames[name]() for name in DERIVED if name in datasets}
    finally:
        for kept in (missed, sends, all_deliveries):
            kept.unpersist()
