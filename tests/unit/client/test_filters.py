"""Message selectors of subscriptions, and their check by a broker (46)."""

from collections.abc import AsyncIterator

import pytest

from core_broker.client import MessageSelector, PushConsumer
from core_broker.errors import ClientError, RequestRefused
from core_broker.remoting.bodies import CheckClientRequestBody, HeartbeatData, decode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.eventually import eventually
from tests.support.one_broker import OneBroker, succeed
from tests.support.scripted_peer import refuse

CHECK = RequestCode.CHECK_CLIENT_CONFIG
SQL = MessageSelector.by_sql("a > 1 AND b = 'x'")


@pytest.fixture
async def broker() -> AsyncIterator[OneBroker]:
    async with OneBroker() as peer:
        peer.serve_route(["T", "U", "%RETRY%G"], {"b": peer.addr})
        yield peer


def consumer(addr: str, *selectors: MessageSelector | str) -> PushConsumer:
    push_consumer = PushConsumer("G", addr)
    for topic, selector in zip("TU", selectors, strict=False):
        push_consumer.subscribe(topic, selector)
    push_consumer.listener(succeed)
    return push_consumer


async def test_a_broker_checks_what_is_not_a_tag(broker: OneBroker) -> None:
    async with consumer(broker.addr, SQL, MessageSelector.by_tag("A || B")) as joined:
        await eventually(lambda: len(broker.pulls()) == 6)
        assert joined.client_id
    (request,) = broker.received(CHECK)
    body = decode_body(CheckClientRequestBody, request.body)
    assert (body.group, body.subscription_data.topic) == ("G", "T")
    assert body.subscription_data.sub_string == SQL.expression
    beat = decode_body(HeartbeatData, broker.received(RequestCode.HEART_BEAT)[-1].body)
    kinds = {it.topic: it.expression_type for it in beat.consumer_data_set[0].subscription_data_set}
    assert kinds == {"T": "SQL92", "U": "TAG", "%RETRY%G": "TAG"}


@pytest.mark.parametrize("code", [ResponseCode.SUBSCRIPTION_PARSE_FAILED, 1])
async def test_what_it_refuses_does_not_start(broker: OneBroker, code: int) -> None:
    broker.on(CHECK, lambda _: refuse(code, "no such filter"))
    refused = consumer(broker.addr, SQL)
    with pytest.raises(RequestRefused, match="no such filter"):
        await refused.start()
    assert refused.client_id == ""
    assert broker.received(RequestCode.HEART_BEAT) == []


async def test_a_broker_that_cannot_check_is_no_obstacle(broker: OneBroker) -> None:
    broker.on(CHECK, lambda _: refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED))
    async with consumer(broker.addr, SQL):
        await eventually(lambda: len(broker.pulls()) == 4)
    async with consumer("127.0.0.1:1", SQL) as alone:
        assert alone.queues == []


async def test_unsubscribing_gives_the_queues_up(broker: OneBroker) -> None:
    async with consumer(broker.addr, "*", "*") as joined:
        await eventually(lambda: len(joined.queues) == 6)
        joined.unsubscribe("U")
        await eventually(lambda: {queue.topic for queue in joined.queues} == {"T", "%RETRY%G"})


def test_an_empty_condition_is_refused() -> None:
    with pytest.raises(ClientError):
        consumer("127.0.0.1:1", MessageSelector.by_sql("  "))
