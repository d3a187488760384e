"""Derive the facts of new events, and the tables of hours with changed facts.

Events are the only input: the facts of an hour can be rebuilt from events at any time, and its
tables derived from facts any number of times; a commit replaces the previous rows. Each step has
its own commit: a killed run loses one step.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from spark_jobs.jobs.fact_files import fact_files
from spark_jobs.jobs.fact_tasks import Derivation, write_facts
from spark_jobs.jobs.run import Run
from spark_jobs.jobs.table_tasks import TableWork, write_tables
from spark_jobs.spark.progress import Stage
from spark_jobs.spark.task_monitor import monitor_tasks
from spark_jobs.tables.facts import hours_around
from trace.lake import (
    CONSUMERS,
    DERIVED,
    EVENTS,
    FACTS,
    WITH_UNTRACED,
    HourIndex,
    Lake,
    Parts,
    Snapshot,
    extended_parts,
    replaced_parts,
)
from trace.tables import LOOKBACK_HOURS

HOURS_PER_STEP: Final = 24
#: Size of the new event files whose facts are committed together, bytes: 5 to 12 million events.
EVENT_BYTES_PER_STEP: Final = 128 * 1024 * 1024
#: All tables that become stale with the facts of their hour.
TABLES_OF_FACTS: Final = (CONSUMERS, *DERIVED)


def stale_hours(snapshot: Snapshot, datasets: Iterable[str]) -> list[HourIndex]:
    """The hours in which some of `datasets` are stale."""
    return sorted({hour for name in datasets for hour in snapshot.stale.get(name, ())})


def present_hours(
    snapshot: Snapshot, requested: Collection[HourIndex] | None = None
) -> list[HourIndex]:
    """The requested hours, or all hours, with events or derived rows."""
    hours = {hour for parts in snapshot.parts.values() for hour in parts}
    return sorted(hours if requested is None else hours & set(requested))


def derive(run: Run[Any], snapshot: Snapshot, datasets: Collection[str]) -> Snapshot:
    """Derive the facts of new events and the stale hours of `datasets`; returns the last commit."""
    run.progress.enter(Stage.ROLLUP)
    while snapshot.pending:
        snapshot = _derive_pending(run, snapshot)
    step = 0
    while hours := stale_hours(snapshot, datasets):
        steps = step + -(-len(hours) // HOURS_PER_STEP)
        run.progress.enter(Stage.ROLLUP, part=step, parts=steps)
        snapshot = _derive_tables(run, snapshot, datasets, hours[:HOURS_PER_STEP])
        step += 1
    return snapshot


def rebuild_facts(run: Run[Any], snapshot: Snapshot, hours: Sequence[HourIndex]) -> Snapshot:
    """Derive the facts of `hours` from all events around them; their tables become stale."""
    for begin in range(0, len(hours), HOURS_PER_STEP):
        some = hours[begin : begin + HOURS_PER_STEP]
        number, parts = run.writer.next_run(), snapshot.parts
        files = run.writer.lake.files(EVENTS, parts.get(EVENTS, {}), hours_around(some))
        written = _write_facts(run, snapshot, number, files, (), some)
        placed = run.writer.place(FACTS, number, written)
        facts = replaced_parts(parts.get(FACTS, {}), number, placed, redone=some)
        snapshot = _commit(run, snapshot, number, {FACTS: facts}, some)
    return snapshot


def with_stale_hours(
    stale: Mapping[str, list[HourIndex]], datasets: Iterable[str], hours: Iterable[HourIndex]
) -> dict[str, list[HourIndex]]:
    """`stale` after `datasets` of `hours` became stale."""
    return {**stale, **{name: sorted({*stale.get(name, ()), *hours}) for name in datasets}}


def _derive_pending(run: Run[Any], snapshot: Snapshot) -> Snapshot:
    """Derive the facts of the first runs with new events."""
    number, parts, lake = run.writer.next_run(), snapshot.parts, run.writer.lake
    events = parts.get(EVENTS, {})
    runs, files = _first_runs(lake, events, snapshot.pending)
    new = _of_runs(events, runs)
    done = _of_runs(events, {run for of in events.values() for run in of} - {*snapshot.pending})
    older = lake.files(EVENTS, done, hours_around(new, times=2))
    written = _write_facts(run, snapshot, number, files, older, None)
    known = parts.get(FACTS, {})
    # Rows of a few messages would pass for all facts of an hour without stored facts.
    kept = [file for file in written if file[0] >= snapshot.facts_from or file[0] in known]
    facts = extended_parts(known, number, run.writer.place(FACTS, number, kept))
    return _commit(run, snapshot, number, {FACTS: facts}, {hour for hour, _ in written}, runs)


def _first_runs(lake: Lake, events: Parts, pending: Sequence[int]) -> tuple[set[int], list[Path]]:
    """The first pending runs within EVENT_BYTES_PER_STEP, one at least, and their files."""
    runs: set[int] = set()
    files: list[Path] = []
    size = 0
    for number in pending:
        parts = _of_runs(events, {number})
        more = lake.files(EVENTS, parts, parts)
        size += sum(file.stat().st_size for file in more)
        if runs and size > EVENT_BYTES_PER_STEP:
            break
        runs.add(number)
        files += more
    return runs, files


def _of_runs(parts: Parts, runs: Collection[int]) -> dict[HourIndex, list[int]]:
    kept = ((hour, [run for run in of if run in runs]) for hour, of in parts.items())
    return {hour: of for hour, of in kept if of}


def _write_facts(
    run: Run[Any],
    snapshot: Snapshot,
    number: int,
    files: Sequence[Path],
    older: Sequence[Path],
    hours: Sequence[HourIndex] | None,
) -> list[tuple[HourIndex, str]]:
    if not files:
        return []
    work = Derivation(
        files=tuple(files),
        older=tuple(older),
        hours=None if hours is None else tuple(hours),
        staging=run.writer.lake.staging(number),
        retry_times_max=snapshot.retry_times_max,
    )
    with monitor_tasks(run.session, run.progress):
        return write_facts(run.session, work)


def _derive_tables(
    run: Run[Any], snapshot: Snapshot, datasets: Collection[str], hours: Sequence[HourIndex]
) -> Snapshot:
    known = snapshot.parts.get(FACTS, {})
    missing = [hour for hour in hours if hour < snapshot.facts_from and hour not in known]
    snapshot = rebuild_facts(run, snapshot, missing)
    number, lake = run.writer.next_run(), run.writer.lake
    facts = snapshot.parts.get(FACTS, {})
    consumers = snapshot.parts.get(CONSUMERS, {})
    lookback = hours_around(hours) & consumers.keys()
    work = TableWork(
        datasets={hour: _stale_datasets(snapshot, datasets, hour) for hour in hours},
        files=tuple(file for hour in hours for file in fact_files(lake, facts, hour)),
        consumers={hour: tuple(lake.files(CONSUMERS, consumers, [hour])) for hour in lookback},
        staging=lake.staging(number),
        watermark_ms=snapshot.watermark_ms,
    )
    with monitor_tasks(run.session, run.progress):
        written = write_tables(run.session, work)
    parts = {}
    for name in datasets:
        files = [(hour, file) for dataset, hour, file in written.files if dataset == name]
        placed = run.writer.place(name, number, files)
        redone = [hour for hour, names in work.datasets.items() if name in names]
        parts[name] = replaced_parts(snapshot.parts.get(name, {}), number, placed, redone)
    stale = {
        name: [hour for hour in old if name not in datasets or hour not in hours]
        for name, old in snapshot.stale.items()
    }
    snapshot = msgspec.structs.replace(snapshot, stale=stale)
    run.result.hours += len(hours)
    later = _after(written.changed) & {*present_hours(snapshot)} - {*hours}
    return _commit(run, snapshot, number, parts, later, datasets=WITH_UNTRACED)


def _stale_datasets(
    snapshot: Snapshot, datasets: Iterable[str], hour: HourIndex
) -> tuple[str, ...]:
    return tuple(name for name in datasets if hour in snapshot.stale.get(name, ()))


def _after(hours: Iterable[HourIndex]) -> set[HourIndex]:
    """The hours with some of `hours` in their look-back."""
    return {hour + distance for hour in hours for distance in range(1, LOOKBACK_HOURS + 1)}


def _commit(
    run: Run[Any],
    snapshot: Snapshot,
    number: int,
    parts: Mapping[str, dict[HourIndex, list[int]]],
    stale: Iterable[HourIndex],
    derived: Collection[int] = (),
    datasets: Iterable[str] = TABLES_OF_FACTS,
) -> Snapshot:
    """Commit new parts; `datasets` of the hours `stale` become stale, `derived` runs have facts."""
    snapshot = msgspec.structs.replace(
        snapshot,
        run=number,
        committed_ms=run.now_ms(),
        parts={**snapshot.parts, **parts},
        pending=[each for each in snapshot.pending if each not in derived],
        stale=with_stale_hours(snapshot.stale, datasets, stale),
    )
    run.writer.lake.commit(snapshot)
    return snapshot
