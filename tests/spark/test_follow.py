"""`ingest --follow` against a real broker, beside the changes of a running cluster."""

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.trace_check import rows
from core_broker.client import AdminClient, SubscriptionGroupConfig
from spark_jobs.jobs import follow
from spark_jobs.jobs.ingest import Ingest
from spark_jobs.jobs.run import Runtime
from spark_jobs.sources.connection import Connection
from tests.spark.stops import StopsAfter
from tests.spark.traffic import send
from tests.support.cluster import Cluster
from trace.attempts import RETRY_TIMES_MAX_DEFAULT
from trace.codec import SubAfter, SubBefore, encode_trace
from trace.lake import MINUTE, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TOPIC = "followed-limits"
GROUP = "CG-followed"
RETRIES = 2
SECONDS_MAX = 240.0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def failed_last_retry(msg_id: str) -> bytes:
    """The traces of one failed attempt, which was retry number RETRIES."""
    at_ms = now_ms()
    begin = SubBefore(
        timestamp_ms=at_ms, group=GROUP, request_id="r", msg_id=msg_id, retry_times=RETRIES
    )
    end = SubAfter(
        request_id="r",
        msg_id=msg_id,
        cost_ms=1,
        success=False,
        context_code=0,
        timestamp_ms=at_ms + 1,
        group=GROUP,
    )
    return encode_trace([begin, end])


def set_retry_limit(cluster: Cluster, times: int) -> None:
    async def go() -> None:
        async with AdminClient(cluster.namesrv_addr) as admin:
            config = SubscriptionGroupConfig(group_name=GROUP, retry_max_times=times)
            await admin.create_group(cluster.broker_addr, config)

    asyncio.run(go())


def test_a_followed_lake_obeys_new_retry_limits(
    spark: SparkSession, shared_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "UPKEEP_EVERY_S", 0.0)
    limits = [RETRY_TIMES_MAX_DEFAULT, RETRIES, RETRY_TIMES_MAX_DEFAULT]
    dead_letters: list[int] = []
    sent = 0
    deadline = time.monotonic() + SECONDS_MAX

    def is_over() -> bool:
        """Before each round: the next limit and a message, when the last message has its row."""
        nonlocal sent
        assert time.monotonic() < deadline
        snapshot = Lake(tmp_path).snapshot()
        if snapshot.messages < sent or any(snapshot.stale.values()) or snapshot.pending:
            return False
        if sent:
            [(found,)] = rows(Lake(tmp_path), MINUTE, "SELECT sum(dead_letters) FROM {}")
            dead_letters.append(int(found))
        if sent == len(limits):
            return True
        set_retry_limit(shared_cluster, limits[sent])
        send(shared_cluster, TOPIC, [failed_last_retry(f"message-{sent}")])
        sent += 1
        return False

    job = Ingest(Connection(namesrv=shared_cluster.namesrv_addr), tmp_path, TOPIC)
    runtime = Runtime(StopsAfter(None), lambda _is_short: nullcontext(spark), now_ms)
    follow.run_follow(job, 1, runtime, is_over=is_over)

    assert dead_letters == [0, 1, 1]
    assert GROUP not in Lake(tmp_path).snapshot().retry_times_max
