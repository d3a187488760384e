"""The data source `rocketmq` in Spark, against a real broker."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader

from spark_jobs.sources.columns import COLUMNS
from spark_jobs.sources.rocketmq import RocketMQDataSource
from tests.spark.traffic import send
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def read(spark: SparkSession, shared_cluster: Cluster) -> Callable[..., DataFrameReader]:
    spark.dataSource.register(RocketMQDataSource)

    def make(topic: str, **options: object) -> DataFrameReader:
        given = {"namesrv": shared_cluster.namesrv_addr, "topic": topic, **options}
        return spark.read.format("rocketmq").options(**given)

    return make


def offsets(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("queue_id", "queue_offset").collect())


def test_a_topic_as_a_frame(read: Callable[..., DataFrameReader], shared_cluster: Cluster) -> None:
    send(shared_cluster, "source-all", [b"body %d" % n for n in range(300)], queues=3)
    frame = read("source-all", maxRowsPerPartition=40).load()
    assert frame.columns == list(COLUMNS)
    assert frame.rdd.getNumPartitions() == 9
    rows = frame.collect()
    assert sorted((row.queue_id, row.queue_offset) for row in rows) == [
        (queue, offset) for queue in range(3) for offset in range(100)
    ]
    [row] = [row for row in rows if (row.queue_id, row.queue_offset) == (1, 33)]
    assert bytes(row.body) == b"body 100"
    assert (row.topic, row.broker_name, row.tags, row["keys"]) == (
        "source-all",
        "broker-a",
        "T",
        ["k"],
    )
    assert row.properties["UNIQ_KEY"] == row.msg_id
    assert row.store_timestamp >= row.born_timestamp


def test_ranges_columns_and_wrong_options(
    read: Callable[..., DataFrameReader], shared_cluster: Cluster
) -> None:
    send(shared_cluster, "source-range", [b"%d" % n for n in range(20)], queues=2)
    frame = read(
        "source-range",
        startingOffsets=json.dumps({"broker-a": {"0": 4}}),
        endingOffsets=json.dumps({"broker-a": {"0": 7, "1": 2}}),
        columns="queue_offset,queue_id",
    ).load()
    assert frame.columns == ["queue_offset", "queue_id"]
    assert offsets(frame) == [(0, 4), (0, 5), (0, 6), (1, 0), (1, 1)]
    assert read("source-range", startingOffsets="latest").load().count() == 0
    with pytest.raises(Exception, match="Did you mean startingOffsets"):
        read("source-range", startingOffset="latest").load()


def test_a_stream_continues_from_its_checkpoint(
    spark: SparkSession,
    read: Callable[..., DataFrameReader],
    shared_cluster: Cluster,
    tmp_path: Path,
) -> None:
    def run() -> list[int]:
        """Run a query to the end of the topic; returns the row count of each micro-batch."""
        query = (
            spark.readStream.format("rocketmq")
            .option("namesrv", shared_cluster.namesrv_addr)
            .option("topic", "source-stream")
            .option("columns", "queue_id,queue_offset")
            .option("maxRowsPerBatch", 60)
            .load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return [progress["numInputRows"] for progress in query.recentProgress]

    send(shared_cluster, "source-stream", [b"x"] * 100, queues=2)
    assert run() == [60, 40]
    send(shared_cluster, "source-stream", [b"x"] * 10, queues=2)
    assert sum(run()) == 10
    stored = spark.read.parquet(str(tmp_path / "out"))
    assert offsets(stored) == [(queue, offset) for queue in range(2) for offset in range(55)]
