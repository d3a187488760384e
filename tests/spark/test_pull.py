"""Reading slices of queues from a real broker, without Spark around it."""

from __future__ import annotations

import asyncio
import threading
import zlib
from typing import TYPE_CHECKING

import pytest

from core_broker.client import AdminClient
from core_broker.message import sysflag
from core_broker.message.compression import compress
from core_broker.message.model import MessageExt
from spark_jobs.columns import COLUMNS, to_arrow
from spark_jobs.offsets import QueueRange
from spark_jobs.options import ReadOptions
from spark_jobs.pull import read_slice
from spark_jobs.queues import ReadError, TopicMissingError, fetch_bounds
from tests.spark.traffic import send

if TYPE_CHECKING:
    from tests.support.cluster import Cluster


def options(
    cluster: Cluster, topic: str, *, retry_ms: int = 20_000, fail: bool = True
) -> ReadOptions:
    return ReadOptions(
        cluster.namesrv_addr,
        topic,
        fail_on_data_loss=fail,
        request_timeout_ms=1000,
        retry_timeout_ms=retry_ms,
    )


def bodies(count: int) -> list[bytes]:
    return [b"message %d" % number for number in range(count)]


def test_a_slice_is_read_exactly_and_in_order(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-exact", bodies(500))
    part = QueueRange("broker-a", 0, 17, 444)
    batches = list(read_slice(options(shared_cluster, "pull-exact"), part))
    read = [message for batch in batches for message in batch]
    assert [message.queue_offset for message in read] == list(range(17, 444))
    assert [message.body for message in read] == bodies(500)[17:444]
    assert {message.broker_name for message in read} == {"broker-a"}
    assert len(batches) < 10


def test_nothing_is_committed_for_the_group(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-commit", bodies(10))

    async def committed() -> dict[str, object]:
        async with AdminClient(shared_cluster.namesrv_addr) as admin:
            stats = await admin.consume_stats(shared_cluster.broker_addr, "TOOLS_CONSUMER")
            return {queue.topic: entry for queue, entry in stats.offset_table.items()}

    list(read_slice(options(shared_cluster, "pull-commit"), QueueRange("broker-a", 0, 0, 10)))
    assert "pull-commit" not in asyncio.run(committed())


def test_bounds_of_all_queues(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-bounds", bodies(7), queues=3)
    bounds = fetch_bounds(shared_cluster.namesrv_addr, "pull-bounds")
    found = [(each.broker_name, each.queue_id, each.offset_min, each.offset_max) for each in bounds]
    assert found == [("broker-a", 0, 0, 3), ("broker-a", 1, 0, 2), ("broker-a", 2, 0, 2)]


def test_a_topic_that_nobody_has(shared_cluster: Cluster) -> None:
    with pytest.raises(TopicMissingError, match="No broker has the topic pull-nowhere"):
        fetch_bounds(shared_cluster.namesrv_addr, "pull-nowhere")


def test_nobody_at_the_address() -> None:
    with pytest.raises(ReadError, match="Gave up asking for the queues of t after 300 ms"):
        fetch_bounds("127.0.0.1:1", "t", retry_timeout_ms=300)


def test_a_broker_that_is_lost_is_waited_for(cluster: Cluster) -> None:
    send(cluster, "pull-lost", bodies(3000))
    reading = read_slice(options(cluster, "pull-lost"), QueueRange("broker-a", 0, 0, 3000))
    read = next(reading)
    cluster.kill_broker()
    comeback = threading.Timer(0.5, cluster.restart_broker)
    comeback.start()
    read += [message for batch in reading for message in batch]
    comeback.join()
    assert [message.queue_offset for message in read] == list(range(3000))


def test_a_broker_that_stays_away_is_an_error(cluster: Cluster) -> None:
    send(cluster, "pull-away", bodies(10))
    cluster.kill_broker()
    reading = read_slice(
        options(cluster, "pull-away", retry_ms=500), QueueRange("broker-a", 0, 0, 10)
    )
    with pytest.raises(ReadError, match="Gave up reading queue 0 of broker-a at offset"):
        list(reading)


def test_messages_that_are_gone_fail_the_read_or_are_left_out(shared_cluster: Cluster) -> None:
    send(shared_cluster, "pull-gone", bodies(10))
    beyond = QueueRange("broker-a", 0, 5, 20)
    with pytest.raises(ReadError, match=r"Messages from offset 1[0-9] of queue 0 .* are gone"):
        list(read_slice(options(shared_cluster, "pull-gone"), beyond))
    lenient = options(shared_cluster, "pull-gone", fail=False)
    read = [message for batch in read_slice(lenient, beyond) for message in batch]
    assert [message.queue_offset for message in read] == list(range(5, 10))


def stored(body: bytes, sys_flag: int) -> MessageExt:
    """A message as a pull gives it."""
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
def test_compressed_bodies_are_unpacked(kind: int) -> None:
    body = b"trace " * 1000
    message = stored(compress(body, kind), sysflag.COMPRESSED | kind)
    [row] = to_arrow([message], ["body"]).to_pylist()
    assert row["body"] == body


def test_a_body_that_does_not_unpack_is_given_as_stored() -> None:
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
