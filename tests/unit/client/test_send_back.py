"""Sending back failed messages: by the broker, by the retry topic, and without any broker."""

from collections.abc import AsyncIterator

import pytest

from core_broker.client.consumer.send_back import SendBack, retry_copy
from core_broker.client.hooks import HookChain
from core_broker.client.instance import ClientInstance
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.sender import Sender
from core_broker.message.properties import decode_properties
from core_broker.remoting.bodies import HeartbeatData
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import SendMessageRequestHeaderV2
from tests.support.consumer_parts import message
from tests.support.scripted_peer import ScriptedPeer, refuse, stored

BACK, SEND = RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2


@pytest.fixture
async def peer() -> AsyncIterator[ScriptedPeer]:
    async with ScriptedPeer() as scripted:
        scripted.serve_route(["T", "%RETRY%G"], {"b": scripted.addr})
        scripted.on(SEND, stored)
        yield scripted


@pytest.fixture
async def send_back(peer: ScriptedPeer) -> AsyncIterator[SendBack]:
    instance = ClientInstance(
        peer.addr, name="test", heartbeat=lambda client_id: HeartbeatData(client_id=client_id)
    )
    await instance.routes.route("T")
    sender = Sender(instance, "INNER", ProducerSettings(), HookChain(()))
    yield SendBack(instance, sender, "G", 16)
    await instance.stop()


async def test_the_broker_is_asked_to_deliver_it_again(
    peer: ScriptedPeer, send_back: SendBack
) -> None:
    assert await send_back.send_back(message(5))
    (request,) = peer.received(BACK)
    assert request.ext_fields == {
        "offset": "5000",
        "group": "G",
        "delayLevel": "0",
        "originMsgId": f"{5:032X}",
        "originTopic": "T",
        "unitMode": "false",
        "maxReconsumeTimes": "16",
    }
    assert peer.received(SEND) == []


async def test_copies_go_to_the_only_queue_of_a_retry_topic_without_a_route(
    peer: ScriptedPeer, send_back: SendBack
) -> None:
    """A broker registers a new retry topic later than it creates the topic."""
    peer.serve_route(["T", "TBW102"], {"b": peer.addr}, queues=8)
    for offset in range(8):
        assert await send_back.to_dead_letters(message(offset))
    assert {request.ext_fields["e"] for request in peer.received(SEND)} == {"0"}


async def test_a_copy_is_sent_when_the_broker_refuses(
    peer: ScriptedPeer, send_back: SendBack
) -> None:
    peer.on(BACK, lambda _: refuse(1))
    failed = message(5, b"body", {"KEYS": "k"})
    failed.reconsume_times = 2
    assert await send_back.send_back(failed)
    (request,) = peer.received(SEND)
    header = request.header(SendMessageRequestHeaderV2)
    assert (header.topic, header.producer_group, request.body) == ("%RETRY%G", "INNER", b"body")
    assert (header.reconsume_times, header.max_reconsume_times) == (3, 16)
    assert decode_properties(header.properties) == {
        "UNIQ_KEY": f"{5:032X}",
        "KEYS": "k",
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": f"{5:032X}",
        "DELAY": "5",
        "WAIT": "true",
    }


async def test_when_both_ways_fail_no_broker_stores_the_message(
    peer: ScriptedPeer, send_back: SendBack
) -> None:
    peer.on(BACK, lambda _: refuse(1))
    peer.on(SEND, lambda _: refuse(1))
    assert not await send_back.send_back(message(5))


async def test_a_broker_that_left_the_routes_is_a_failure_too(
    peer: ScriptedPeer, send_back: SendBack
) -> None:
    failed = message(5)
    failed.broker_name = "gone"
    assert await send_back.send_back(failed)
    assert peer.received(BACK) == []
    assert len(peer.received(SEND)) == 1


def test_a_copy_of_a_copy_keeps_its_origin() -> None:
    again = retry_copy(
        message(5, properties={"RETRY_TOPIC": "FIRST", "ORIGIN_MESSAGE_ID": "ORIGIN"}), "G", 16
    )
    assert again.properties["RETRY_TOPIC"] == "FIRST"
    assert again.properties["ORIGIN_MESSAGE_ID"] == "ORIGIN"


def test_a_copy_of_a_half_message_is_none() -> None:
    assert (
        "TRAN_MSG"
        not in retry_copy(message(5, properties={"TRAN_MSG": "true"}), "G", 16).properties
    )
