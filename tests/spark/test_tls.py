"""The data source and the ingest job on a cluster that accepts only TLS."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from core_broker.errors import GantryError
from spark_jobs.sources.queues import fetch_retry_limits
from spark_jobs.sources.rocketmq import RocketMQDataSource
from tests.support.tls_cluster import make_topic, tls_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_rows_are_written_and_read_with_tls(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(RocketMQDataSource)
    cluster, file = tls_cluster(tmp_path)
    with cluster:
        make_topic(cluster, file, "Rows")
        given = {"namesrv": cluster.namesrv_addr, "topic": "Rows", "tlsConfigFile": file}
        frame = spark.createDataFrame([("one",), ("two",)], "body string")
        frame.write.format("rocketmq").mode("append").options(**given).save()
        rows = spark.read.format("rocketmq").options(**given).load().collect()
        assert sorted(bytes(row.body) for row in rows) == [b"one", b"two"]
        with pytest.raises(GantryError):
            fetch_retry_limits(cluster.namesrv_addr, retry_timeout_ms=1)
