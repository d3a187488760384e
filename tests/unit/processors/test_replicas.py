"""Codes between the brokers of a set and from controllers: 906, 1008; refused sends."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.remoting.bodies.replicas import SyncStateSet
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers.controller import NotifyBrokerRoleChangedRequestHeader
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


async def test_a_notice_reaches_the_replica_manager(controlled: BrokerHarness) -> None:
    notices: list[tuple[NotifyBrokerRoleChangedRequestHeader, SyncStateSet | None]] = []
    controlled.ctx.role_notice = lambda header, body: notices.append((header, body))
    fields = {"masterAddress": "10.0.0.2:10911", "masterEpoch": "7", "masterBrokerId": "2"}
    body = json.dumps({"syncStateSet": [2, 3], "syncStateSetEpoch": 9}).encode()
    answer = await controlled.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, fields, body)
    assert answer.code == 0
    ((header, members),) = notices
    assert (header.master_broker_id, header.master_epoch) == (2, 7)
    assert members == SyncStateSet(sync_state_set=[2, 3], sync_state_set_epoch=9)


async def test_sends_need_enough_members(controlled: BrokerHarness) -> None:
    topic = controlled.topic()
    assert (await controlled.send(topic)).code == 0
    controlled.ctx.has_enough_members = lambda: False
    answer = await controlled.send(topic)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "in-sync replicas not enough"
