"""Derive the tables of the lake from its events, in chunks of hours.

The events are the only input, so an hour can be derived at any time and any number of times; the
commit replaces the previous rows. Each chunk of hours has its own commit: a killed run loses one
chunk.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from spark_jobs.jobs.run import Run
from spark_jobs.jobs.table_tasks import Derivation, write_tables
from spark_jobs.spark.progress import Stage
from spark_jobs.spark.task_monitor import monitor_tasks
from spark_jobs.tables.facts import hours_around
from trace.lake import EVENTS, HourIndex, Snapshot, replaced_parts

HOURS_PER_CHUNK: Final = 24


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
    lake = run.writer.lake
    for chunk_number, hours in enumerate(chunks):
        run.progress.enter(Stage.ROLLUP, part=chunk_number, parts=len(chunks))
        number = run.writer.next_run()
        parts = dict(snapshot.parts)
        events = snapshot.parts.get(EVENTS, {})
        work = Derivation(
            hours=tuple(hours),
            datasets=tuple(datasets),
            files=tuple(lake.files(EVENTS, events, hours_around(hours))),
            staging=lake.staging(number),
            watermark_ms=snapshot.watermark_ms,
            retry_times_max=snapshot.retry_times_max,
        )
        with monitor_tasks(run.session, run.progress):
            written = write_tables(run.session, work) if work.files else []
        for name in datasets:
            files = [(hour, file) for dataset, hour, file in written if dataset == name]
            placed = run.writer.place(name, number, files)
            parts[name] = replaced_parts(parts.get(name, {}), number, placed, redone=hours)
        snapshot = msgspec.structs.replace(
            snapshot,
            run=number,
            committed_ms=run.now_ms(),
            parts=parts,
            stale=without_stale_hours(snapshot.stale, datasets, hours),
        )
        lake.commit(snapshot)
    return snapshot


def without_stale_hours(
    stale: Mapping[str, list[HourIndex]], datasets: Collection[str], hours: Sequence[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after `datasets` were derived for `hours`."""
    return {
        name: [hour for hour in old if name not in datasets or hour not in hours]
        for name, old in stale.items()
    }
