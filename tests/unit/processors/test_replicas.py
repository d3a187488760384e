"""Codes between the brokers of a set and from controllers: 906, 1008; refused sends."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.broker_harness import BrokerHarness


@pytest.fixture
async def controlled(tmp_path: Path) -> AsyncIterator[BrokerHarness]:
    made = BrokerHarness(
        tmp_path, enable_controller_mode=True, controller_addr="127.0.0.1:9", broker_id=3
    )
    yield made
    made.close()


async def test_a_master_tells_the_port_of_slaves(broker: BrokerHarness) -> None:
    empty = await broker.ask(RequestCode.EXCHANGE_BROKER_HA_INFO)
    assert (empty.code, empty.ext_fields) == (0, {})
    broker.ctx.ha_addr = "10.0.0.1:10912"

    class Copies:
        waiting = 0

    broker.ctx.replicas = Copies()  # type: ignore[assignment] # the handler asks for no method
    answer = await broker.ask(RequestCode.EXCHANGE_BROKER_HA_INFO)
    assert answer.ext_fields == {
        "masterHaAddress": "10.0.0.1:10912",
        "masterFlushOffset": "0",
        "masterAddress": "127.0.0.1:10911",
    }
    told = await broker.ask(RequestCode.EXCHANGE_BROKER_HA_INFO, {"masterHaAddress": "10.0.0.2:1"})
    assert (told.code, told.ext_fields) == (0, {})


async def test_a_notice_without_controllers_changes_nothing(broker: BrokerHarness) -> None:
    assert (await broker.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED)).code == 0


@pytest.mark.parametrize("body", [b'{"syncStateSet":[2,3],"syncStateSetEpoch":9}', b"", b"\xff{"])
async def test_a_notice_is_a_reason_to_ask(controlled: BrokerHarness, body: bytes) -> None:
    notices: list[bool] = []
    controlled.ctx.role_notice = lambda: notices.append(True)
    fields = {"masterAddress": "10.0.0.2:10911", "masterEpoch": "7", "masterBrokerId": "2"}
    answer = await controlled.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, fields, body)
    assert answer.code == 0
    assert notices == [True]


async def test_sends_need_enough_members(controlled: BrokerHarness) -> None:
    topic = controlled.topic()
    assert (await controlled.send(topic)).code == 0
    controlled.ctx.has_enough_members = lambda: False
    answer = await controlled.send(topic)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "in-sync replicas not enough"
