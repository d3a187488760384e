"""Derive the tables of the lake from its events, in chunks of hours.

The events are the only input, so an hour can be derived at any time and any number of times; the
commit replaces the previous rows. Each chunk of hours has its own commit: a killed run loses one
chunk.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame

from spark_jobs.jobs.run import Run
from spark_jobs.spark.lake_frames import read_events, write_hours
from spark_jobs.spark.progress import Stage
from spark_jobs.spark.task_monitor import monitor_tasks
from spark_jobs.tables.derived import derived_tables
from spark_jobs.tables.facts import hours_around
from trace.lake import EVENTS, HourIndex, Snapshot, replaced_parts

HOURS_PER_CHUNK: Final = 24
#: Size of the event files per task, bytes; an event takes 10 to 30 bytes.
EVENT_BYTES_PER_TASK: Final = 2 * 1024 * 1024


def chunks_to_derive(
    snapshot: Snapshot, datasets: Iterable[str], requested: Collection[HourIndex] | None
) -> list[list[HourIndex]]:
    """The hours to derive, in chunks: the stale hours when `requested` is None.

    Otherwise the requested hours of which the lake has events or derived rows.
    """
    if requested is None:
        hours = {hour for name in datasets for hour in snapshot.stale.get(name, ())}
    else:
        present = (snapshot.parts.get(name, {}) for name in (EVENTS, *datasets))
        hours = {hour for parts in present for hour in parts} & set(requested)
    ordered = sorted(hours)
    return [
        ordered[begin : begin + HOURS_PER_CHUNK]
        for begin in range(0, len(ordered), HOURS_PER_CHUNK)
    ]


def derive(
    run: Run[Any],
    snapshot: Snapshot,
    datasets: Collection[str],
    chunks: Sequence[Sequence[HourIndex]],
) -> Snapshot:
    """Derive `datasets` for every chunk of hours; returns the last committed snapshot."""
    for chunk_number, hours in enumerate(chunks):
        run.progress.enter(Stage.ROLLUP, part=chunk_number, parts=len(chunks))
        number = run.writer.next_run()
        parts = dict(snapshot.parts)
        with _tables(run, snapshot, hours, datasets) as tables:
            for index, (name, frame) in enumerate(tables.items()):
                share = (index / len(tables), (index + 1) / len(tables))
                with monitor_tasks(run.session, run.progress, share=share):
                    written = write_hours(frame, run.writer, name, number)
                parts[name] = replaced_parts(parts.get(name, {}), number, written, redone=hours)
        if not tables:  # no events left in these hours: remove the derived rows
            parts |= {
                name: replaced_parts(parts.get(name, {}), number, (), redone=hours)
                for name in datasets
            }
        snapshot = msgspec.structs.replace(
            snapshot,
            run=number,
            committed_ms=run.now_ms(),
            parts=parts,
            stale=without_stale_hours(snapshot.stale, datasets, hours),
        )
        run.writer.lake.commit(snapshot)
    return snapshot


def without_stale_hours(
    stale: Mapping[str, list[HourIndex]], datasets: Collection[str], hours: Sequence[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after `datasets` were derived for `hours`."""
    return {
        name: [hour for hour in old if name not in datasets or hour not in hours]
        for name, old in stale.items()
    }


@contextmanager
def _tables(
    run: Run[Any],
    snapshot: Snapshot,
    hours: Sequence[HourIndex],
    datasets: Collection[str],
) -> Iterator[dict[str, DataFrame]]:
    """The DataFrames of the tables; empty when there are no events around `hours`."""
    parts, lake = snapshot.parts.get(EVENTS, {}), run.writer.lake
    events = read_events(run.session, lake, parts, hours_around(hours))
    if events is None:
        yield {}
        return
    with derived_tables(
        events,
        hours,
        datasets,
        watermark_ms=snapshot.watermark_ms,
        retry_times_max=snapshot.retry_times_max,
        partitions=1 + lake.size(EVENTS, parts, hours_around(hours)) // EVENT_BYTES_PER_TASK,
    ) as tables:
        yield tables
