"""SQL92 filters over real sockets: kept over a restart, and used by the client library."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.client import (
    ConsumerSettings,
    ConsumeStatus,
    MessageSelector,
    Producer,
    PushConsumer,
)
from core_broker.errors import RequestRefused, StoreCorrupt
from core_broker.message.model import Message, MessageExt
from core_broker.message.record import decode_records
from core_broker.remoting.bodies import (
    ConsumeFromWhere,
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def heartbeat(expression: str) -> bytes:
    subscription = SubscriptionData(
        topic="T", sub_string=expression, expression_type="SQL92", sub_version=7
    )
    consumer = ConsumerData(group_name="CG", subscription_data_set=[subscription])
    return encode_body(HeartbeatData(client_id="c", consumer_data_set=[consumer]))


async def test_an_expression_is_kept_over_a_restart(
    start_broker: MakeBroker, connect: Callable[[str], WireClient], tmp_path: Path
) -> None:
    broker = await start_broker(enable_property_filter=True)
    client = connect(broker.addr)
    for number in range(4):
        await client.send("T", b"%d" % number, f"n\x01{number}")
    await client.request(RequestCode.HEART_BEAT, body=heartbeat("n > 1"))
    await broker.stop()
    file = tmp_path / "store" / "config" / "consumerFilter.json"
    kept = json.loads(file.read_bytes())["filterDataByTopic"]["T"]["groupFilterData"]["CG"]
    assert kept["expression"] == "n > 1"

    broker = await start_broker(enable_property_filter=True)
    client = connect(broker.addr)
    # The broker has this version, so that the expression of the heartbeat is not compiled again.
    await client.request(RequestCode.HEART_BEAT, body=heartbeat("n >"))
    answer = await client.pull(
        "T", sys_flag=0, subscription=None, expression_type="SQL92", sub_version=7
    )
    assert [each.body for each in decode_records(answer.body)] == [b"2", b"3"]


async def test_a_file_that_is_damaged_beyond_its_previous_version_stops_the_start(
    start_broker: MakeBroker, tmp_path: Path
) -> None:
    folder = tmp_path / "store" / "config"
    folder.mkdir(parents=True)
    (folder / "consumerFilter.json").write_text("{damaged")
    with pytest.raises(StoreCorrupt, match=r"consumerFilter\.json"):
        await start_broker()


async def test_the_client_library_gets_matching_messages_and_syntax_errors(
    start_broker: MakeBroker, namesrv_addr: str
) -> None:
    await start_broker(enable_property_filter=True, namesrv_addr=namesrv_addr)
    received: list[str] = []

    async def note(messages: list[MessageExt]) -> ConsumeStatus:
        received.extend(message.body.decode() for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    def consumer(expression: str) -> PushConsumer:
        made = PushConsumer("CG", namesrv_addr, settings=ConsumerSettings(consume_from=FIRST))
        made.subscribe("T", MessageSelector.by_sql(expression))
        made.listener(note)
        return made

    async with Producer("PG", namesrv_addr) as producer:
        for number in range(8):
            await producer.send(Message("T", b"%d" % number, properties={"n": str(number)}))
        wrong = consumer("n > AND")
        with pytest.raises(RequestRefused, match="line 1, column 5") as refused:
            await wrong.start()
        assert refused.value.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
        await wrong.stop()
        async with consumer("n BETWEEN 2 AND 3 OR late = 'yes'"):
            await eventually(lambda: len(received) == 2)
            await producer.send(Message("T", b"no", properties={"late": "no"}))
            await producer.send(Message("T", b"yes", properties={"late": "yes"}))
            await eventually(lambda: len(received) == 3)
    assert sorted(received) == ["2", "3", "yes"]
