"""Read queue ranges from a real broker, without Spark."""

import asyncio
import random
import threading
import time
import zlib
from dataclasses import replace

import pytest
from pyarrow import RecordBatch

from core_broker.client import AdminClient
from core_broker.message import sysflag
from core_broker.message.compression import compress
from core_broker.message.model import MessageExt
from spark_jobs.sources import partition_reader, pull_window
from spark_jobs.sources.columns import COLUMNS, to_arrow
from spark_jobs.sources.connection import Connection
from spark_jobs.sources.offsets import QueueRange
from spark_jobs.sources.options import ReadOptions
from spark_jobs.sources.partition_reader import read_range
from spark_jobs.sources.queues import ReadError, TopicMissingError, fetch_bounds, fetch_offsets_at
from tests.spark.traffic import send
from tests.support.cluster import Cluster

NARROW = ["queue_offset", "body", "broker_name"]
SEED = 7


def offsets(batch: RecordBatch) -> list[int]:
    found: list[int] = batch.column("queue_offset").to_pylist()
    return found


def options(
    cluster: Cluster, topic: str, *, retry_ms: int = 20_000, fail: bool = True
) -> ReadOptions:
    return ReadOptions(
        namesrv=cluster.namesrv_addr,
        topic=topic,
        fail_on_data_loss=fail,
        request_timeout_ms=1000,
        retry_timeout_ms=retry_ms,
    )


def bodies(count: int) -> list[bytes]:
    return [b"message %d" % number for number in range(count)]


def test_a_range_is_read_exactly_and_in_order(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-exact", bodies(500))
    part = QueueRange("broker-a", 0, 17, 444)
    for columns in (NARROW, list(COLUMNS)):
        batches = list(read_range(options(shared_cluster, "pull-exact"), part, columns))
        read = [row for batch in batches for row in batch.to_pylist()]
        assert [row["queue_offset"] for row in read] == list(range(17, 444))
        assert [row["body"] for row in read] == bodies(500)[17:444]
        assert {row["broker_name"] for row in read} == {"broker-a"}
        assert len(batches) < 10


def test_nothing_is_committed_for_the_group(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-commit", bodies(10))

    async def committed() -> dict[str, object]:
        async with AdminClient(shared_cluster.namesrv_addr) as admin:
            stats = await admin.consume_stats(shared_cluster.broker_addr, "TOOLS_CONSUMER")
            return {queue.topic: entry for queue, entry in stats.offset_table.items()}

    part = QueueRange("broker-a", 0, 0, 10)
    list(read_range(options(shared_cluster, "pull-commit"), part, NARROW))
    assert "pull-commit" not in asyncio.run(committed())


def test_bounds_of_all_queues(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-bounds", bodies(7), queues=3)
    bounds = fetch_bounds(Connection(namesrv=shared_cluster.namesrv_addr), "pull-bounds")
    found = [(each.broker_name, each.queue_id, each.offset_min, each.offset_max) for each in bounds]
    assert found == [("broker-a", 0, 0, 3), ("broker-a", 1, 0, 2), ("broker-a", 2, 0, 2)]


def test_a_topic_without_brokers(shared_cluster: Cluster) -> None:
    with pytest.raises(TopicMissingError, match="No broker has the topic pull-nowhere"):
        fetch_bounds(Connection(namesrv=shared_cluster.namesrv_addr), "pull-nowhere")


def test_an_unreachable_name_server() -> None:
    with pytest.raises(ReadError, match="Gave up requesting the queues of t after 300 ms"):
        fetch_bounds(Connection(namesrv="127.0.0.1:1", retry_timeout_ms=300), "t")


def test_a_read_waits_for_a_lost_broker(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        partition_reader, "OFFSETS_MAX", 300
    )  # limits the readahead of concurrent pulls
    send(cluster, "pull-lost", bodies(3000))
    part = QueueRange("broker-a", 0, 0, 3000)
    reading = read_range(options(cluster, "pull-lost"), part, NARROW)
    read = offsets(next(reading))
    cluster.kill_broker()
    comeback = threading.Timer(0.5, cluster.restart_broker)
    comeback.start()
    read += [offset for batch in reading for offset in offsets(batch)]
    comeback.join()
    assert read == list(range(3000))


def test_an_unreachable_broker_is_an_error_after_the_retries(cluster: Cluster) -> None:
    send(cluster, "pull-away", bodies(10))
    cluster.kill_broker()
    part = QueueRange("broker-a", 0, 0, 10)
    reading = read_range(options(cluster, "pull-away", retry_ms=500), part, NARROW)
    with pytest.raises(ReadError, match="Gave up reading queue 0 of broker-a at offset"):
        list(reading)


def test_expired_messages_fail_the_read_or_are_skipped(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-gone", bodies(10))
    beyond = QueueRange("broker-a", 0, 5, 20)
    with pytest.raises(ReadError, match=r"Messages from offset 1[0-9] of queue 0 .* have expired"):
        list(read_range(options(shared_cluster, "pull-gone"), beyond, NARROW))
    lenient = options(shared_cluster, "pull-gone", fail=False)
    read = [row for batch in read_range(lenient, beyond, NARROW) for row in offsets(batch)]
    assert read == list(range(5, 10))


def test_a_tag_filter_returns_only_its_messages(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-tags", bodies(100))
    part = QueueRange("broker-a", 0, 0, 100)
    for tags, count in (("T || other", 100), ("other", 0)):
        filtered = replace(options(shared_cluster, "pull-tags"), tags=tags)
        assert sum(batch.num_rows for batch in read_range(filtered, part, NARROW)) == count


def test_a_time_becomes_an_offset_of_each_queue(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-time", bodies(40), queues=2)
    connection = Connection(namesrv=shared_cluster.namesrv_addr)
    bounds = fetch_bounds(connection, "pull-time")
    part = QueueRange("broker-a", 1, 0, 20)
    [batch] = read_range(options(shared_cluster, "pull-time"), part, ["store_timestamp"])
    stored = [round(row["store_timestamp"].timestamp() * 1000) for row in batch.to_pylist()]
    for wanted in (0, stored[0], stored[7], stored[-1], stored[-1] + 1, stored[-1] + 10**9):
        found = fetch_offsets_at(connection, "pull-time", bounds, wanted)["broker-a"][1]
        assert found == sum(time_ms < wanted for time_ms in stored), wanted


def test_a_read_keeps_to_the_rate_limit(
    shared_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(shared_cluster, "pull-rate", bodies(300))
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    slow = replace(options(shared_cluster, "pull-rate"), rows_per_second_max=10)
    part = QueueRange("broker-a", 0, 0, 300)
    counts = [batch.num_rows for batch in read_range(slow, part, NARROW)]
    assert sum(counts) == 300
    assert max(counts) < 10 + pull_window.SPAN_OFFSETS_FIRST
    # The sleeps return at once here: each argument is the time left since the start.
    assert slept[-1] > 20


def test_large_messages_reduce_the_rows_of_a_batch(shared_cluster: Cluster) -> None:
    luck = random.Random(SEED)
    sizes = [0, 3, 200, 100_000, 1_000_000]
    sent = [luck.randbytes(luck.choice(sizes)) for _ in range(40)] + bodies(400)
    send(shared_cluster, "pull-sizes", sent)
    part = QueueRange("broker-a", 0, 0, len(sent))
    for columns in (NARROW, ["queue_offset", "body", "tags"]):
        batches = list(read_range(options(shared_cluster, "pull-sizes"), part, columns))
        read = [row for batch in batches for row in batch.to_pylist()]
        assert [row["queue_offset"] for row in read] == list(range(len(sent)))
        assert [row["body"] for row in read] == sent
        # A batch ends with the result that reaches the limit, and a result has at least one
        # message.
        assert max(batch.nbytes for batch in batches) < partition_reader.BATCH_BYTES + 1_500_000


def test_a_slow_reader_is_not_a_lost_broker(
    shared_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulls that timed out while Spark processed a batch are retried."""
    monkeypatch.setattr(partition_reader, "OFFSETS_MAX", 100)
    send(shared_cluster, "pull-slowly", bodies(1000))
    part = QueueRange("broker-a", 0, 0, 1000)
    hasty = replace(
        options(shared_cluster, "pull-slowly"), request_timeout_ms=500, retry_timeout_ms=5000
    )
    read: list[int] = []
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 10 * len(read))
    for batch in read_range(hasty, part, NARROW):
        read += offsets(batch)
    assert read == list(range(1000))


def stored(body: bytes, sys_flag: int) -> MessageExt:
    """A message as a pull returns it."""
    host = ("127.0.0.1", 10911)
    return MessageExt(
        "t", body, {"KEYS": "a b"}, 0, 1, 2, 3, 4, sys_flag, 5, host, 6, host, 7, 8, 9
    )


@pytest.mark.parametrize(
    "kind",
    [
        sysflag.COMPRESSION_ZLIB,
        sysflag.COMPRESSION_LZ4,
        sysflag.COMPRESSION_ZSTD,
        0,
    ],
)
def test_compressed_bodies_are_decompressed(kind: int) -> None:
    body = b"trace " * 1000
    message = stored(compress(body, kind), sysflag.COMPRESSED | kind)
    [row] = to_arrow([message], ["body"]).to_pylist()
    assert row["body"] == body


def test_a_corrupt_compressed_body_stays_as_stored() -> None:
    broken = zlib.compress(b"trace")[:-3]
    [row] = to_arrow([stored(broken, sysflag.COMPRESSED)], ["body"]).to_pylist()
    assert row["body"] == broken


def test_every_column_has_a_value() -> None:
    [row] = to_arrow([stored(b"x", 0)], list(COLUMNS)).to_pylist()
    assert list(row) == list(COLUMNS)
    assert row["keys"] == ["a", "b"]
    assert row["store_timestamp"].timestamp() == 0.006
    assert row["tags"] is None
    assert row["msg_id"] == row["offset_msg_id"]
