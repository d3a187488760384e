"""processors/flow_control.py: refused requests, their remarks, and codes without flow control."""

import math
import time
from typing import Any

import pytest

from core_broker.processors.flow_control import AFTER_WRITE_S, REJECTED
from core_broker.remoting.bodies import HeartbeatData
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import BUSY_REMARK
from tests.support.broker_harness import BrokerHarness, Peer
from tests.support.broker_requests import pull_header, send_header
from tests.unit.processors.conftest import MakeBroker

HELD = {"sys_flag": 2 | 4, "subscription": "*", "suspend_timeout_millis": 60_000}


def old_peer(broker: BrokerHarness, waited_ms: float) -> Peer:
    """A peer whose requests have waited for the given time."""
    peer = broker.peer()
    peer.state.arrived = time.monotonic() - waited_ms / 1000
    return peer


async def ask(broker: BrokerHarness, code: int, peer: Peer, topic: str) -> RemotingCommand:
    if code == RequestCode.HEART_BEAT:
        return await broker.ask(code, None, HeartbeatData(client_id="c"), peer=peer)
    header: Any = send_header(topic, "")
    if code == RequestCode.PULL_MESSAGE:
        header = pull_header(topic, 0)
    return await broker.ask(code, header, b"body", peer=peer)


@pytest.mark.parametrize(
    ("code", "setting", "limit_ms"),
    [
        (RequestCode.SEND_MESSAGE_V2, "wait_time_mills_in_send_queue", 200),
        (RequestCode.PULL_MESSAGE, "wait_time_mills_in_pull_queue", 5_000),
        (RequestCode.HEART_BEAT, "wait_time_mills_in_heartbeat_queue", 31_000),
    ],
)
async def test_requests_above_the_waiting_limit_are_refused(
    make_broker: MakeBroker, code: RequestCode, setting: str, limit_ms: int
) -> None:
    broker = make_broker()
    topic = broker.topic()
    late = await ask(broker, code, old_peer(broker, limit_ms + 100), topic)
    assert late.code == ResponseCode.SYSTEM_BUSY
    assert (late.remark or "").startswith(
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
    )
    assert (late.remark or "").endswith("ms, size of queue: 1")
    assert broker.requests.flow.refused == {"TIMEOUT_CLEAN_QUEUE": 1}

    patient = make_broker(**{setting: limit_ms + 100_000})
    answer = await ask(patient, code, old_peer(patient, limit_ms + 100), patient.topic())
    assert answer.code != ResponseCode.SYSTEM_BUSY


async def test_no_waiting_limit_without_fast_failure(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(broker_fast_failure_enable=False)
    answer = await ask(
        broker, RequestCode.SEND_MESSAGE_V2, old_peer(broker, 60_000), broker.topic()
    )
    assert answer.code == ResponseCode.SUCCESS


async def test_administration_has_no_waiting_limit(broker: BrokerHarness) -> None:
    answer = await broker.ask(RequestCode.GET_BROKER_CONFIG, peer=old_peer(broker, 600_000))
    assert answer.code == ResponseCode.SUCCESS


async def test_a_refused_message_is_not_stored(broker: BrokerHarness, topic: str) -> None:
    await ask(broker, RequestCode.SEND_MESSAGE_V2, old_peer(broker, 1_000), topic)
    assert await broker.messages(topic) == []


async def test_sends_around_a_slow_write(broker: BrokerHarness, topic: str) -> None:
    now = time.monotonic()
    before, during, after = broker.peer(), broker.peer(), broker.peer()
    before.state.arrived, during.state.arrived = now - 3.0, now - 0.1
    after.state.arrived = now - 0.1 + AFTER_WRITE_S

    async def send_or_pull(code: RequestCode, peer: Peer) -> RemotingCommand:
        # The end of every turn is a write, too.
        broker.requests.turn.last_write = (now - 2.0, now - 0.1)
        return await ask(broker, code, peer, topic)

    queued = await send_or_pull(RequestCode.SEND_MESSAGE_V2, before)
    assert (queued.code, (queued.remark or "")[:32]) == (2, "[PCBUSY_CLEAN_QUEUE]broker busy,")
    came = await send_or_pull(RequestCode.SEND_MESSAGE_V2, during)
    assert (came.code, came.remark) == (2, REJECTED)
    pulled = await send_or_pull(RequestCode.PULL_MESSAGE, during)
    assert pulled.code != ResponseCode.SYSTEM_BUSY, "pulls do not write"
    assert (await send_or_pull(RequestCode.SEND_MESSAGE_V2, after)).code == 0
    assert broker.requests.flow.refused == {"PCBUSY_CLEAN_QUEUE": 1, "REJECTREQUEST": 1}


async def test_a_fast_write_causes_no_refusal(make_broker: MakeBroker) -> None:
    broker = make_broker(os_page_cache_busy_time_out_mills=10_000)
    now = time.monotonic()
    broker.requests.turn.last_write = (now - 2.0, now)
    peer = broker.peer()
    peer.state.arrived = now
    assert (await ask(broker, RequestCode.SEND_MESSAGE_V2, peer, broker.topic())).code == 0


async def test_a_write_is_timed(broker: BrokerHarness, topic: str) -> None:
    assert broker.requests.turn.last_write == (0.0, 0.0)
    await broker.send(topic)
    began, ended = broker.requests.turn.last_write
    assert 0 < began <= ended


async def test_sends_that_wait_for_the_disk_are_limited(make_broker: MakeBroker) -> None:
    broker = make_broker(flush_disk_type="SYNC_FLUSH", send_thread_pool_queue_capacity=2)
    topic = broker.topic()
    waiting = [
        broker.request(RequestCode.SEND_MESSAGE_V2, send_header(topic, "")) for _ in range(2)
    ]
    assert [broker.give(each) for each in waiting] == [None, None]
    refused = await broker.send(topic)
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_BUSY, BUSY_REMARK)
    assert broker.requests.flow.refused == {"OVERLOAD": 1}


async def test_pulls_that_wait_for_messages_are_limited(make_broker: MakeBroker) -> None:
    broker = make_broker(pull_thread_pool_queue_capacity=1)
    topic = broker.topic()
    header = pull_header(topic, 0, **HELD)
    assert broker.give(broker.request(RequestCode.PULL_MESSAGE, header)) is None
    refused = await broker.pull(topic)
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_BUSY, BUSY_REMARK)


async def test_a_peer_of_the_tests_is_never_late(broker: BrokerHarness) -> None:
    assert broker.client.state.arrived == math.inf
