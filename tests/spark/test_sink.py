"""Writes to the data source `rocketmq` in Spark, against a real broker."""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from core_broker.client import Message
from core_broker.client.selectors import by_hash
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue
from spark_jobs.sources.rocketmq import RocketMQDataSource
from tests.spark.traffic import new_topic, pull_all, send
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def write(spark: SparkSession, shared_cluster: Cluster) -> Callable[..., None]:
    spark.dataSource.register(RocketMQDataSource)

    def save(frame: DataFrame, topic: str = "", **options: object) -> None:
        given = {"namesrv": shared_cluster.namesrv_addr, **options}
        if topic:
            given["topic"] = topic
        frame.write.format("rocketmq").mode("append").options(**given).save()

    return save


def test_rows_arrive_with_keys_tags_and_properties(
    spark: SparkSession, write: Callable[..., None], shared_cluster: Cluster
) -> None:
    for topic in ("sink-a", "sink-b"):
        new_topic(shared_cluster, topic, queues=2)
    columns = "topic string, body string, keys array<string>, tags string, \
        properties map<string,string>, queue_id int, broker_name string"
    rows = [
        ("sink-a", "erste", ["k1", "k2"], "T", {"city": "Zürich"}, 1, "broker-a"),
        ("sink-b", "second", None, None, None, None, None),
    ]
    write(spark.createDataFrame(rows, columns))
    [first] = pull_all(shared_cluster, "sink-a", queues=2)
    [second] = pull_all(shared_cluster, "sink-b", queues=2)
    assert (first.body, first.keys, first.tags, first.queue_id) == (b"erste", ["k1", "k2"], "T", 1)
    assert first.properties["city"] == "Zürich"
    assert (second.body, second.keys, second.tags) == (b"second", [], None)
    assert first.msg_id != second.msg_id


def test_equal_ordering_values_share_a_queue_in_order(
    spark: SparkSession, write: Callable[..., None], shared_cluster: Cluster
) -> None:
    new_topic(shared_cluster, "sink-order", queues=5)
    rows = [Row(customer=f"c{n % 13}", body=f"{n:05}") for n in range(4000)]
    frame = spark.createDataFrame(rows).repartition(3, "customer").sortWithinPartitions("body")
    # Small requests: a queue gets many of them.
    write(frame, "sink-order", orderingColumn="customer", maxRequestBytes=2000)
    stored: dict[str, list[MessageExt]] = {}
    for message in pull_all(shared_cluster, "sink-order", queues=5):
        stored.setdefault(f"c{int(message.body) % 13}", []).append(message)
    queues = [MessageQueue("sink-order", "broker-a", number) for number in range(5)]
    assert len(stored) == 13
    for customer, messages in stored.items():
        queue = by_hash(queues, Message("sink-order", b""), customer)
        assert {message.queue_id for message in messages} == {queue.queue_id}
        numbers = [int(message.body) for message in messages]
        assert numbers == sorted(numbers)
        assert len(numbers) == len(range(int(customer[1:]), 4000, 13))


def test_requests_larger_than_the_broker_allows_are_halved(
    spark: SparkSession, write: Callable[..., None], tmp_path: Path
) -> None:
    with Cluster(tmp_path, max_message_size=20_000) as cluster:
        new_topic(cluster, "sink-halves", queues=1)
        frame = spark.range(2000).selectExpr(
            "id", "cast(repeat(lpad(id, 4, '0'), 100) as binary) as body", "0 as queue_id"
        )
        write(frame.coalesce(1).drop("id"), "sink-halves", namesrv=cluster.namesrv_addr)
        stored = [int(message.body[:4]) for message in pull_all(cluster, "sink-halves")]
        # Without one request at a time, halves of several requests would mix.
        assert stored == list(range(2000))
        # Random bytes: the client compresses a large body.
        large = spark.createDataFrame([(random.Random(17).randbytes(30_000),)], "body binary")
        with pytest.raises(Exception, match="Set maxMessageBytes to the maxMessageSize") as said:
            write(large, "sink-halves", namesrv=cluster.namesrv_addr)
        assert "topic sink-halves, any queue" in str(said.value)
        assert cluster.broker_addr.split(":")[1] in str(said.value)


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        ("cast(null as binary) as body", {}, "The body is null"),
        ("'x' as body; 9 as queue_id", {}, "no writable queue 9.*queue_id and broker_name"),
        ("'x' as body", {"topic": "sink-absent"}, "sink-absent.*Create the topic"),
        ("'x' as body", {"orderingColum": "x"}, "Did you mean orderingColumn"),
        ("1.5 as body", {}, "body must be binary or string"),
        ("'x' as body", {"namesrv": "127.0.0.1:1", "retryTimeoutMs": "300"}, "retryTimeoutMs"),
    ],
)
def test_failures_name_the_cause(
    spark: SparkSession,
    write: Callable[..., None],
    strict_cluster: Cluster,
    sql: str,
    options: dict[str, str],
    said: str,
) -> None:
    given = {"namesrv": strict_cluster.namesrv_addr, "topic": "sink-faults", **options}
    with pytest.raises(Exception, match=said):
        write(spark.range(1).selectExpr(sql.split(";")), **given)


@pytest.fixture(scope="module")
def strict_cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cluster without automatic topics."""
    folder = tmp_path_factory.mktemp("strict")
    with Cluster(folder, auto_create_topic_enable=False) as cluster:
        new_topic(cluster, "sink-faults", queues=2)
        yield cluster


def test_a_topic_is_never_overwritten(spark: SparkSession, shared_cluster: Cluster) -> None:
    spark.dataSource.register(RocketMQDataSource)
    writer = spark.range(1).selectExpr("'x' as body").write.format("rocketmq").mode("overwrite")
    with pytest.raises(Exception, match="cannot be overwritten"):
        writer.options(namesrv=shared_cluster.namesrv_addr, topic="sink-a").save()


def test_a_task_continues_after_a_restart_of_the_broker(
    spark: SparkSession, write: Callable[..., None], tmp_path: Path
) -> None:
    """Every row arrives, in order, when the broker is killed and comes back."""
    with Cluster(tmp_path) as cluster:
        new_topic(cluster, "sink-outage", queues=1)
        frame = spark.range(60_000).selectExpr("lpad(id, 6, '0') as body", "0 as queue_id")

        def outage() -> None:
            while not pull_all(cluster, "sink-outage", limit=1):
                time.sleep(0.01)
            cluster.kill_broker()
            cluster.restart_broker()

        thread = threading.Thread(target=outage)
        thread.start()
        write(
            frame.coalesce(1),
            "sink-outage",
            namesrv=cluster.namesrv_addr,
            maxRequestBytes=4000,
            requestTimeoutMs=1000,
        )
        thread.join()
        stored = [int(message.body) for message in pull_all(cluster, "sink-outage")]
    first_seen = list(dict.fromkeys(stored))
    assert first_seen == list(range(60_000))


def test_a_stream_copies_a_topic(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path
) -> None:
    spark.dataSource.register(RocketMQDataSource)
    send(shared_cluster, "sink-from", [b"%d" % n for n in range(200)], queues=2)
    new_topic(shared_cluster, "sink-to", queues=2)
    address = shared_cluster.namesrv_addr
    for sent in (200, 210):
        query = (
            spark.readStream.format("rocketmq")
            .options(namesrv=address, topic="sink-from", maxRowsPerBatch=70)
            .load()
            .select("body", "keys", "tags", "properties", "queue_id", "broker_name")
            .writeStream.format("rocketmq")
            .queryName("copy")
            .options(namesrv=address, topic="sink-to", dropReservedProperties=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        copied = pull_all(shared_cluster, "sink-to", queues=2)
        assert len(copied) == sent
        originals = pull_all(shared_cluster, "sink-from", queues=2)
        for queue_id in range(2):
            assert [it.body for it in copied if it.queue_id == queue_id] == [
                it.body for it in originals if it.queue_id == queue_id
            ]
        assert {(it.tags, it.keys[0]) for it in copied} == {("T", "k")}
        send(shared_cluster, "sink-from", [b"more"] * 10, queues=2)
