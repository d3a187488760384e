"""A real broker on a small file system that fills up under load, and is freed again.

Sends are refused with RocketMQ's code and remark, reading and deleting go on, and sends resume
automatically with free space.
"""

import asyncio
import os
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import AdminClient
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from tests.support.broker_requests import send_header
from tests.support.cluster import PATIENT, Cluster
from tests.support.eventually import eventually
from tests.support.history import History
from tests.support.load import QUEUES, Load, Queues, read_topic
from tests.support.small_disks import fill, mounted

pytestmark = pytest.mark.crash

MIB = 1024 * 1024
DISK_BYTES = 32 * MIB
BALLAST_BYTES = 12 * MIB
BODY_BYTES = (1_000, 20_000)
#: No cleaning and no watermark: only ENOSPC of the file system refuses messages.
SETTINGS = PATIENT | {
    "mapped_file_size_commit_log": MIB,
    "mapped_file_size_consume_queue": 20 * 200,
    "clean_resource_interval": 50,
    "delete_commit_log_files_interval": 1,
    "delete_when": "",
    "disk_max_used_space_ratio": 95,
    "disk_space_clean_forcibly_ratio": 100,
    "disk_space_warning_level_ratio": 100,
}
REMARK = (
    "service not available now. It may be caused by one of the following reasons: "
    "the broker's disk is full"
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system in memory."""
    with mounted(tmp_path, "tmpfs", DISK_BYTES) as folder:
        yield folder


@pytest.fixture(params=["tmpfs", "ext4"])
def full_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A separate file system of each kind."""
    with mounted(tmp_path, request.param, DISK_BYTES) as folder:
        yield folder


async def full(load: Load, addr: str) -> str:
    """The remark of a refusal, "" without one.

    A write that meets the full disk first is not answered: the broker closes the connections of its
    producers, and the load may have no other ones. So another producer asks, too.
    """
    return load.refusals.get(ResponseCode.SERVICE_NOT_AVAILABLE) or await refusal(addr)


async def invoke(addr: str, code: RequestCode, header: Any) -> RemotingCommand:
    client = RemotingClient(name="one")
    try:
        return await client.invoke(addr, RemotingCommand.request(code, header), 10_000)
    finally:
        await client.close()


async def commit(addr: str, offset: int) -> None:
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group="CG", topic="T", queue_id=0, commit_offset=offset
    )
    assert (await invoke(addr, RequestCode.UPDATE_CONSUMER_OFFSET, header)).code == 0


async def committed(addr: str) -> int:
    header = QueryConsumerOffsetRequestHeader(consumer_group="CG", topic="T", queue_id=0)
    answer = await invoke(addr, RequestCode.QUERY_CONSUMER_OFFSET, header)
    return answer.header(QueryConsumerOffsetResponseHeader).offset


def readyz(cluster: Cluster, query: str = "") -> tuple[int, str]:
    url = f"http://127.0.0.1:{cluster.http_ports['broker']}/readyz{query}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def delete_topic(addr: str, topic: str) -> None:
    client = RemotingClient(name="admin")
    request = RemotingCommand.request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})
    assert (await client.invoke(addr, request, 10_000)).code == 0
    await client.close()


async def send_one(addr: str, topic: str) -> RemotingCommand:
    client = RemotingClient(name="one")
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_header(topic), b"x")
    try:
        return await client.invoke(addr, request, 10_000)
    finally:
        await client.close()


async def check(cluster: Cluster, history: History) -> None:
    verdict = history.check(await read_topic(cluster.broker_addr))
    assert verdict.is_clean, verdict.problems[:10]


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
@pytest.mark.parametrize("what", ["the file system", "the warning level"])
async def test_reliability_08_full_disk(
    tmp_path: Path, small_disk: Path, flush: str, what: str
) -> None:
    settings = SETTINGS | {"flush_disk_type": flush, "store_path_root_dir": small_disk / "store"}
    if what == "the warning level":
        settings |= {"disk_space_warning_level_ratio": 85, "clean_file_forcibly_enable": False}
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    history = History()
    with Cluster(tmp_path, **settings) as cluster:
        addr = cluster.broker_addr
        assert (await send_one(addr, "Unwanted")).code == 0
        load = Load(addr, history, random.Random(8), body_bytes=BODY_BYTES)
        sending = asyncio.create_task(load.run())
        remark = await eventually(lambda: full(load, addr), 150)
        assert remark.startswith(REMARK)
        acknowledged = load.count
        assert acknowledged > 100
        load.stop()
        await sending
        # Reading and deleting go on.
        await check(cluster, history)
        await delete_topic(addr, "Unwanted")
        # Free space ends the refusal automatically.
        ballast.unlink()
        await eventually(lambda: accepts(addr), 90)
        await send_more(addr, history, 200)
        await check_over_a_kill(cluster, history)


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
async def test_reliability_08_kill_and_start_on_a_full_disk(
    tmp_path: Path, full_disk: Path, flush: str
) -> None:
    """The broker starts for reading, consuming and deleting; free space needs no restart."""
    settings = SETTINGS | {
        "flush_disk_type": flush,
        "store_path_root_dir": full_disk / "store",
        "disk_max_used_space_ratio": 99,
    }
    ballast = full_disk / "ballast"
    history = History()
    with Cluster(tmp_path, **settings) as cluster:
        addr = cluster.broker_addr
        assert (await send_one(addr, "Unwanted")).code == 0
        load = Load(addr, history, random.Random(8), body_bytes=BODY_BYTES)
        sending = asyncio.create_task(load.run())
        await load.acknowledged(300)
        fill(ballast)
        await eventually(lambda: full(load, addr), 150)
        load.stop()
        await sending
        cluster.kill_broker()
        for offset in (5, 9):
            fill(ballast)
            cluster.restart_broker()
            await check(cluster, history)
            await commit(addr, offset)
            assert await committed(addr) == offset
            refused = await eventually(lambda: refusal(addr), 90)
            assert refused.startswith(REMARK)
            status, text = readyz(cluster)
            assert (status, "[-] store: " in text) == (503, True), text
            assert readyz(cluster, "?exclude=store") == (200, "ok\n")
            cluster.kill_broker()
        fill(ballast)
        cluster.restart_broker()
        await delete_topic(addr, "Unwanted")
        await commit(addr, 9)
        await check(cluster, history)
        # Free space ends the refusal without a restart, and the offsets are saved.
        ballast.unlink()
        await eventually(lambda: accepts(addr), 90)
        assert readyz(cluster) == (200, "ok\n")
        saved = full_disk / "store" / "config" / "consumerOffset.json"
        await eventually(lambda: saved.exists() and b'"T@CG":{"0":9}' in saved.read_bytes(), 90)
        await send_more(addr, history, 100)
        await check_over_a_kill(cluster, history)
        assert await committed(addr) == 9


async def send_more(addr: str, history: History, count: int) -> None:
    """Send until `count` messages are acknowledged."""
    load = Load(addr, history, random.Random(9), body_bytes=BODY_BYTES)
    sending = asyncio.create_task(load.run())
    await load.acknowledged(count)
    load.stop()
    await sending


async def check_over_a_kill(cluster: Cluster, history: History) -> None:
    """Check the messages before and after a kill and a restart of the broker."""
    await check(cluster, history)
    cluster.kill_broker()
    cluster.restart_broker()
    await check(cluster, history)


async def refusal(addr: str) -> str:
    """The remark of a refused send; "" for an accepted one."""
    answer = await send_one(addr, "Other")
    return (answer.remark or "") if answer.code == ResponseCode.SERVICE_NOT_AVAILABLE else ""


async def accepts(addr: str) -> bool:
    return (await send_one(addr, "Other")).code == 0


async def read_between_deletions(cluster: Cluster) -> Queues:
    """Read the topic while the broker deletes no segment, which leaves a gap in what is read."""
    async with AdminClient(cluster.namesrv_addr) as admin:

        async def begin_of_log() -> str:
            return (await admin.runtime_info(cluster.broker_addr))["commitLogMinOffset"]

        while True:
            begin = await begin_of_log()
            found = await read_topic(cluster.broker_addr)
            if await begin_of_log() == begin:
                return found


async def test_reliability_08_forced_cleaning_at_the_watermark(
    tmp_path: Path, small_disk: Path
) -> None:
    """The broker stores many times the size of the disk, since the oldest segments are deleted."""
    settings = SETTINGS | {
        "store_path_root_dir": small_disk / "store",
        "disk_space_clean_forcibly_ratio": 60,
        "disk_space_warning_level_ratio": 90,
    }
    history = History()
    with Cluster(tmp_path, **settings) as cluster:
        load = Load(cluster.broker_addr, history, random.Random(8), body_bytes=BODY_BYTES)
        sending = asyncio.create_task(load.run())
        average = sum(BODY_BYTES) // len(BODY_BYTES)
        await load.acknowledged(2 * DISK_BYTES // average, 90)
        load.stop()
        await sending
        found = await read_between_deletions(cluster)
        for queue, messages in found.items():
            assert messages[0].offset > 0, "nothing was deleted"
            history.expired(queue, messages[0].offset)
        verdict = history.check(found)
        assert verdict.is_clean, verdict.problems[:10]
        assert len(found) == QUEUES
        log = small_disk / "store" / "commitlog"
        assert len(list(log.iterdir())) * MIB <= DISK_BYTES


async def test_reliability_08_cleaning_by_age(tmp_path: Path) -> None:
    """In the hour of deleteWhen, segments older than fileReservedTime are deleted at any disk
    usage."""
    settings = SETTINGS | {"file_reserved_time": 1}
    history = History()
    with Cluster(tmp_path, **settings) as cluster:
        load = Load(cluster.broker_addr, history, random.Random(8), body_bytes=BODY_BYTES)
        sending = asyncio.create_task(load.run())
        await load.acknowledged(600)
        load.stop()
        await sending
        log = cluster.store_folder / "commitlog"
        names = sorted(each.name for each in log.iterdir())
        assert len(names) > 4
        for name in names[:2]:
            long_ago = (log / name).stat().st_mtime - 7200
            os.utime(log / name, (long_ago, long_ago))
        client = RemotingClient(name="admin")
        hours = ";".join(f"{hour:02d}" for hour in range(24))
        body = f"deleteWhen={hours}\n".encode()
        request = RemotingCommand.request(RequestCode.UPDATE_BROKER_CONFIG, None, body)
        assert (await client.invoke(cluster.broker_addr, request)).code == 0
        await client.close()
        await eventually(lambda: not (log / names[0]).exists() and not (log / names[1]).exists())
        assert (log / names[2]).exists()
        found = await read_topic(cluster.broker_addr)
        for queue, messages in found.items():
            history.expired(queue, messages[0].offset)
        verdict = history.check(found)
        assert verdict.is_clean, verdict.problems[:10]
