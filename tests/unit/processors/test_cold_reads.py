"""Requests for data on disk: answered later, without delaying other requests."""

import asyncio
import contextlib
import errno
import itertools

import pytest

from core_broker.remoting.bodies import SubscriptionGroupConfig
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryMessageRequestHeader,
    SearchOffsetRequestHeader,
    ViewMessageRequestHeader,
)
from core_broker.remoting.loop_watchdog import HOLD_S_MAX, LoopWatchdog
from core_broker.store.cold_reads import ColdReads
from tests.support.broker_harness import BrokerHarness
from tests.support.broker_requests import pull_header
from tests.support.cold_files import ColdFiles
from tests.unit.processors.conftest import MakeBroker

GROUP = "G"


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
async def cold_broker(make_broker: MakeBroker, files: ColdFiles) -> BrokerHarness:
    """A broker whose messages of topic T have left the memory; cold reads wait for a thread."""
    broker = make_broker(files=files)
    broker.topic("T")
    for number in range(100):
        await broker.send("T", b"x" * 400, f"KEYS\x01key{number}\x02", queue_id=number % 4)
    broker.ctx.offsets.commit(GROUP, "T", 0, 5)
    broker.ctx.store.tick(broker.now_ms)
    files.evict()
    for executor in broker.executors:
        executor.hold()
    return broker


def started(broker: BrokerHarness, code: int, header: object) -> RemotingCommand:
    request = broker.request(code, header)  # type: ignore[arg-type]
    assert broker.give(request) is None
    return request


async def test_a_cold_pull_is_answered_after_the_read(cold_broker: BrokerHarness) -> None:
    request = started(cold_broker, RequestCode.PULL_MESSAGE, pull_header("T", 0))
    assert (await cold_broker.send("T", b"new", queue_id=1)).code == ResponseCode.SUCCESS
    newest = await cold_broker.pull("T", 25, queue_id=1)
    assert newest.code == ResponseCode.SUCCESS
    assert request.opaque not in cold_broker.client.answers
    cold_broker.read_cold()
    response = cold_broker.client.answers[request.opaque]
    assert (response.code, response.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "25")


@pytest.mark.parametrize(
    ("code", "header"),
    [
        (RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=0)),
        (
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            SearchOffsetRequestHeader(topic="T", queue_id=0, timestamp=1),
        ),
        (RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader(topic="T")),
        (
            RequestCode.GET_CONSUME_STATS,
            GetConsumeStatsRequestHeader(consumer_group=GROUP, topic="T"),
        ),
        (RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(is_order=False)),
        (
            RequestCode.QUERY_CONSUME_TIME_SPAN,
            QueryConsumeTimeSpanRequestHeader(topic="T", group=GROUP),
        ),
        (
            RequestCode.QUERY_MESSAGE,
            QueryMessageRequestHeader(
                topic="T", key="key7", max_num=8, begin_timestamp=0, end_timestamp=1 << 62
            ),
        ),
    ],
)
async def test_questions_about_cold_data_are_answered_in_the_end(
    cold_broker: BrokerHarness, code: int, header: object
) -> None:
    cold_broker.ctx.groups.put(SubscriptionGroupConfig(group_name=GROUP), cold_broker.now_ms)
    request = started(cold_broker, code, header)
    for _ in range(100):
        await asyncio.sleep(0)
        cold_broker.read_cold()
        if request.opaque in cold_broker.client.answers:
            break
    assert cold_broker.client.answers[request.opaque].code == ResponseCode.SUCCESS


async def test_a_failing_disk_is_an_answer(cold_broker: BrokerHarness, files: ColdFiles) -> None:
    files.error = OSError(errno.EIO, "broken")
    request = started(
        cold_broker, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=0)
    )
    cold_broker.read_cold()
    response = cold_broker.client.answers[request.opaque]
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert "broken" in (response.remark or "")


async def test_too_many_cold_reads_are_refused(
    cold_broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    executors = [
        executor for executor in cold_broker.executors if executor.name.startswith("store-read")
    ]
    reads = ColdReads(executors, executors[0], lambda cold: None, waiting_max=1)
    monkeypatch.setattr(cold_broker.ctx.store, "cold_reads", reads)
    started(cold_broker, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=0))
    response = await cold_broker.ask(
        RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=0)
    )
    assert response.code == ResponseCode.SYSTEM_BUSY


async def test_a_held_pull_with_a_cold_message(
    cold_broker: BrokerHarness, files: ColdFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = pull_header("T", 25, sys_flag=6, queue_id=2)
    request = started(cold_broker, RequestCode.PULL_MESSAGE, header)
    monkeypatch.setattr(files, "wrote", lambda path, pages: None)
    assert (await cold_broker.send("T", b"new", queue_id=2)).code == ResponseCode.SUCCESS
    assert request.opaque not in cold_broker.client.answers
    cold_broker.read_cold()
    assert cold_broker.client.answers[request.opaque].code == ResponseCode.SUCCESS


async def test_delayed_messages_wait_for_the_disk(
    make_broker: MakeBroker, files: ColdFiles
) -> None:
    broker = make_broker(files=files)
    broker.topic("T")
    for _ in range(3):
        await broker.send("T", b"x" * 400, "DELAY\x011\x02")
    broker.ctx.store.tick(broker.now_ms)
    files.evict()
    broker.now_ms += 5_000
    assert broker.delays.deliver_due() >= 0
    assert await broker.messages("T") == []
    running = asyncio.get_running_loop().create_task(broker.delays.run())
    try:
        async with asyncio.timeout(60):
            while len(await broker.messages("T")) < 3:
                await asyncio.sleep(0)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert broker.ctx.delay_progress.offset(1) == 3


async def test_the_second_run_of_a_handler_is_measured(cold_broker: BrokerHarness) -> None:
    readings = itertools.count()
    watchdog = LoopWatchdog("test", lambda: next(readings) * 2 * HOLD_S_MAX, lambda: 0.0)
    cold_broker.ctx.watchdog = watchdog
    started(cold_broker, RequestCode.PULL_MESSAGE, pull_header("T", 0))
    assert not watchdog.counts()
    cold_broker.read_cold()
    assert [*watchdog.counts()] == [("request", str(RequestCode.PULL_MESSAGE.value), "wait")]
