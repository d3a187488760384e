"""Keep the subscriptions and committed offsets of the groups in the lake."""

from typing import Final

import msgspec

from core_broker.durable_files import replace_file
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.subscriptions import fetch_subscriptions
from spark_jobs.spark.lake_writer import LakeWriter
from trace.columns import arrow_schema
from trace.lake import Lake, Snapshot
from trace.subscriptions import Subscription, merged
from trace.tables import SUBSCRIPTIONS

#: Minimum time between two questions to the cluster, ms.
ASKED_EVERY_MS: Final = 60_000
#: Maximum age of the last answer about a topic and group, ms.
KEPT_MS: Final = 30 * 86_400_000


def with_subscriptions(
    writer: LakeWriter,
    snapshot: Snapshot,
    connection: Connection | None,
    now_ms: int,
) -> Snapshot:
    """Ask the cluster, and commit the answer; returns the current snapshot.

    The snapshot stays unchanged without a cluster, without an answer, within ASKED_EVERY_MS after
    the last answer, and in an empty lake.
    """
    if not (connection and snapshot.run) or now_ms - snapshot.subscriptions_ms < ASKED_EVERY_MS:
        return snapshot
    found = fetch_subscriptions(connection, now_ms)
    if not found:
        return snapshot
    rows = merged(subscriptions_of(writer.lake, snapshot), found, now_ms, now_ms - KEPT_MS)
    run = writer.next_run()
    write_subscriptions(writer.lake, run, rows)
    snapshot = msgspec.structs.replace(
        snapshot, run=run, subscriptions_run=run, subscriptions_ms=now_ms
    )
    writer.lake.commit(snapshot)
    return snapshot


def subscriptions_of(lake: Lake, snapshot: Snapshot) -> list[Subscription]:
    """The rows of the last answer; none before the first answer."""
    import pyarrow.parquet as pq

    if not snapshot.subscriptions_run:
        return []
    table = pq.read_table(lake.subscriptions_file(snapshot.subscriptions_run), partitioning=None)
    return [Subscription(**row) for row in table.to_pylist()]


def write_subscriptions(lake: Lake, run: int, rows: list[Subscription]) -> None:
    """Write the file of subscriptions of `run`; a commit makes the file valid."""
    import pyarrow
    import pyarrow.parquet as pq

    table = pyarrow.Table.from_pylist([row._asdict() for row in rows], arrow_schema(SUBSCRIPTIONS))
    sink = pyarrow.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    replace_file(lake.subscriptions_file(run), [sink.getvalue().to_pybytes()])
