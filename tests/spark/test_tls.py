"""The data source and the ingest job on a cluster that accepts only TLS."""

import asyncio
import io
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from core_broker.client import AdminClient, ClientTls, Message, Producer
from core_broker.errors import GantryError
from core_broker.remoting.bodies import SubscriptionGroupConfig
from spark_jobs.jobs.ingest import Ingest, run_ingest
from spark_jobs.jobs.run import Runtime
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.queues import fetch_retry_limits
from spark_jobs.sources.rocketmq import RocketMQDataSource
from spark_jobs.sources.subscriptions import fetch_subscriptions
from spark_jobs.spark.progress import Progress
from tests.support.tls_cluster import make_topic, tls_cluster
from trace.hooks import TraceHook
from trace.subscriptions import Found

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


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
            fetch_retry_limits(Connection(namesrv=cluster.namesrv_addr, retry_timeout_ms=1))


def test_traces_are_sent_and_ingested_with_tls(spark: SparkSession, tmp_path: Path) -> None:
    cluster, file = tls_cluster(tmp_path)
    with cluster:
        for topic in ("Traced", "Traces"):
            make_topic(cluster, file, topic)
        asyncio.run(send_traced(cluster.namesrv_addr, ClientTls.from_file(file)))
        job = Ingest(
            Connection(namesrv=cluster.namesrv_addr, tls_config_file=file),
            tmp_path / "lake",
            "Traces",
        )
        progress = Progress(io.StringIO(), as_json=True)
        runtime = Runtime(
            progress, lambda _is_short: nullcontext(spark), lambda: time.time_ns() // 1_000_000
        )
        assert run_ingest(job, runtime).records == 1


async def send_traced(namesrv_addr: str, tls: ClientTls) -> None:
    hook = TraceHook("Traces", tls=tls)
    async with Producer("PG-traced", namesrv_addr, [hook], tls=tls) as producer:
        await producer.send(Message("Traced", b"body"), timeout_ms=60_000)
    assert (hook.sent, hook.dropped) == (1, 0)


def test_subscriptions_are_fetched_with_tls(tmp_path: Path) -> None:
    cluster, file = tls_cluster(tmp_path)
    tls = ClientTls.from_file(file)

    async def commit() -> None:
        async with AdminClient(cluster.namesrv_addr, tls=tls) as admin:
            addr, group = cluster.broker_addr, "readers"
            await admin.create_group(addr, SubscriptionGroupConfig(group_name=group))
            await admin.update_consumer_offset(addr, group, "Rows", 0, 0)

    with cluster:
        make_topic(cluster, file, "Rows")
        asyncio.run(commit())
        asked_ms = 7
        found = fetch_subscriptions(
            Connection(namesrv=cluster.namesrv_addr, tls_config_file=file), asked_ms
        )
        assert found == [Found("Rows", "readers", None, asked_ms)]
        assert fetch_subscriptions(Connection(namesrv=cluster.namesrv_addr), asked_ms) == []
