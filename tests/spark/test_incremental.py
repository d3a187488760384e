"""Runs over random cuts of the same messages: the tables of one run, and of a rebuild.

The messages have late, repeated and out-of-order records, batches, and journeys of several days.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession

from spark_jobs.jobs.ingest import Ingest, make_tables
from spark_jobs.jobs.micro_batch import PlannedBatch, ingest_batch
from spark_jobs.jobs.run import Result, Run, Runtime
from spark_jobs.jobs.table_jobs import TABLES_OF_JOB, Derive, run_derive
from spark_jobs.jobs.write_events import write_events_of
from spark_jobs.spark.lake_writer import delete_unreferenced, exclusive_writer
from tests.spark.lakes import content
from tests.spark.stops import StopHere, StopsAfter
from trace.codec import EndTransaction, Pub, Recall, SubAfter, SubBefore, TraceRecord, encode_trace
from trace.lake import HOUR_MS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BEGIN_MS = 489_000 * HOUR_MS
HOURS = 60
#: A trace message: store time in ms, body.
Stored = tuple[int, bytes]


def told(luck: random.Random, number: int) -> list[TraceRecord]:
    """The records of one journey."""
    at_ms = BEGIN_MS + luck.randrange(HOURS * HOUR_MS)
    if luck.random() < 0.2:  # near the end of an hour
        at_ms += HOUR_MS - at_ms % HOUR_MS - luck.randrange(1, 400)
    members = [f"M{number}"] if luck.random() < 0.8 else [f"M{number}-{n}" for n in range(3)]
    topic, kind = luck.choice("ab"), luck.choice((0, 0, 0, 1, 3))
    send = Pub(
        timestamp_ms=at_ms,
        group="shop",
        topic=topic,
        msg_id=",".join(members),
        body_bytes=100,
        cost_ms=luck.randrange(600),
        msg_type=kind,
        success=luck.random() < 0.9,
    )
    records: list[TraceRecord] = []
    if luck.random() < 0.95:
        records.append(send)
    if kind == 1 and luck.random() < 0.7:
        commit = luck.choice(("COMMIT_MESSAGE", "ROLLBACK_MESSAGE"))
        records.append(
            EndTransaction(
                timestamp_ms=at_ms + 300,
                group="shop",
                msg_id=members[0],
                topic=topic,
                transaction_state=commit,
            )
        )
    if luck.random() < 0.05:
        records.append(
            Recall(timestamp_ms=at_ms + 900, group="shop", msg_id=members[0], topic=topic)
        )
    longest_ms = luck.choice((2000, 3_000_000, 30 * HOUR_MS))
    for msg_id in members:
        for group in luck.sample(["billing", "stock"], luck.randint(0, 2)):
            start_ms = at_ms
            for retry in range(luck.choice((1, 1, 1, 3))):
                start_ms += luck.randrange(longest_ms)
                request, cost_ms = f"{msg_id}-{group}-{retry}", luck.randrange(4000)
                pair: list[TraceRecord] = [
                    SubBefore(
                        timestamp_ms=start_ms,
                        group=group,
                        request_id=request,
                        msg_id=msg_id,
                        retry_times=retry,
                    ),
                    SubAfter(
                        request_id=request,
                        msg_id=msg_id,
                        cost_ms=cost_ms,
                        success=luck.random() < 0.7,
                        context_code=0,
                        timestamp_ms=start_ms + cost_ms,
                        group=group,
                    ),
                ]
                records += pair if luck.random() < 0.9 else [luck.choice(pair)]
    return records


def messages(luck: random.Random, journeys: int) -> list[Stored]:
    """Trace messages in the order of the topic: mostly by time, some late, some repeated."""
    stored: list[Stored] = []
    for number in range(journeys):
        for record in told(luck, number):
            body = encode_trace([record])
            at_ms: int = record.timestamp_ms  # type: ignore[assignment]
            for _ in range(1 + (luck.random() < 0.1)):
                late_ms = luck.choice((5000, 5000, 5000, HOUR_MS, 20 * HOUR_MS))
                stored.append((at_ms + luck.randrange(late_ms), body))
    return sorted(stored)


def batch_of(stored: Sequence[Stored], offset: int) -> Iterator[pyarrow.RecordBatch]:
    columns = {
        "broker_name": pyarrow.array(["b"] * len(stored)),
        "queue_id": pyarrow.array([0] * len(stored), pyarrow.int32()),
        "queue_offset": pyarrow.array(range(offset, offset + len(stored)), pyarrow.int64()),
        "store_timestamp": pyarrow.array([ms * 1000 for ms, _ in stored], pyarrow.timestamp("us")),
        "body": pyarrow.array([body for _, body in stored], pyarrow.binary()),
    }
    yield pyarrow.RecordBatch.from_pydict(columns)


def run_over(
    spark: SparkSession,
    root: Path,
    stored: Sequence[Stored],
    first: int,
    *,
    stop_after: int | None = None,
    tables: bool = True,
) -> None:
    """One run: the next messages of the topic into the lake, and the tables."""
    job = Ingest(None, root, "T", retain_days=100_000, events_only=not tables)
    with exclusive_writer(Lake(root)) as writer:
        snapshot = writer.lake.snapshot()
        delete_unreferenced(writer.lake, snapshot)
        now_ms = partial(int, BEGIN_MS)
        run = Run(job, spark, writer, StopsAfter(stop_after), now_ms, Result())
        if stored:
            write = partial(write_events_of, spark, [partial(batch_of, stored, first)])
            planned = PlannedBatch({"b": {0: first + len(stored)}}, len(stored), 0)
            snapshot, _counts = ingest_batch(run, "T", snapshot, write, planned)
        make_tables(run, snapshot)


def rebuild(spark: SparkSession, root: Path, hours: Sequence[int] | None = None) -> None:
    job = Derive(root, TABLES_OF_JOB["rebuild"], hours, is_rebuild=True)
    run_derive(job, Runtime(StopsAfter(None), lambda _: nullcontext(spark), partial(int, BEGIN_MS)))


def differing(some: dict[str, list[Any]], others: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows by dataset that only one of two lakes has."""
    assert some.keys() == others.keys()
    return {
        name: sorted({*map(repr, some[name])} ^ {*map(repr, others[name])})[:6]
        for name in some
        if some[name] != others[name]
    }


@pytest.mark.parametrize("seed", range(2))
def test_random_cuts_give_the_tables_of_one_run(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    luck = random.Random(seed)
    stored = messages(luck, 120)
    run_over(spark, tmp_path / "whole", stored, 0)
    cuts = [0, *sorted(luck.sample(range(1, len(stored)), luck.randint(4, 6))), len(stored)]
    pieces = tmp_path / "pieces"
    for place, (begin, end) in enumerate(pairwise(cuts)):
        some = stored[begin:end]
        if place % 3 == 1:  # killed after the commit of the events, or of facts, or of tables
            with pytest.raises(StopHere):
                run_over(spark, pieces, some, begin, stop_after=luck.randint(1, 2))
            some = []
        run_over(spark, pieces, some, begin, tables=place % 4 != 3 or end == len(stored))
    whole, cut = content(tmp_path / "whole"), content(pieces)
    assert all(whole.values()), "the world has rows of every table"
    assert differing(whole, cut) == {}, f"seed {seed}, cuts {cuts}"
    rebuild(spark, pieces)
    assert differing(whole, content(pieces)) == {}, f"seed {seed}, after the rebuild"
