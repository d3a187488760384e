"""brokerRole=SYNC_MASTER: no answer before enough slaves have acknowledged the message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.bodies import (
    HARuntimeInfo,
    SubscriptionGroupConfig,
    decode_body,
    encode_body,
)
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import ConsumerSendMsgBackRequestHeader
from tests.support.broker_requests import send_header
from tests.support.eventually import eventually
from tests.support.scripted_slave import WAIT_S, ScriptedSlave, slave_of
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]
#: A wait that no test reaches.
NEVER_MS = 600_000
SYNC = {"broker_role": "SYNC_MASTER", "slave_timeout": NEVER_MS}


async def status(client: WireClient) -> HARuntimeInfo:
    return decode_body(HARuntimeInfo, (await client.request(907)).body)


async def acknowledge(client: WireClient, slave: ScriptedSlave, offset: int) -> None:
    """Report an offset, and wait until the master has processed the report."""
    slave.report(offset)

    async def is_processed() -> bool:
        return offset in {
            each.slave_ack_offset for each in (await status(client)).ha_connection_info
        }

    await eventually(is_processed, WAIT_S)


async def plain(client: WireClient) -> RemotingCommand:
    return await client.send("T", b"body")


async def with_long_names(client: WireClient) -> RemotingCommand:
    header = {
        "producerGroup": "PG", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
        "queueId": "0", "sysFlag": "0", "bornTimestamp": "1", "flag": "0", "properties": "",
    }  # fmt: skip
    return await client.request(10, header, b"body")


async def delayed(client: WireClient) -> RemotingCommand:
    return await client.send("T", b"body", "DELAY\x015\x02")


async def half(client: WireClient) -> RemotingCommand:
    return await client.send("T", b"body", "TRAN_MSG\x01true\x02PGROUP\x01PG\x02", sys_flag=4)


async def batch(client: WireClient) -> RemotingCommand:
    body = encode_batch([Message("T", b"one"), Message("T", b"two")])
    return await client.request(320, send_header("T", batch=True), body)


SENDS: dict[str, Callable[[WireClient], Awaitable[RemotingCommand]]] = {
    "plain": plain,
    "long names": with_long_names,
    "delayed": delayed,
    "half": half,
    "batch": batch,
}
PATHS = {"kernel": {}, "slow path": {"kernel_enable": False}}


class TestOneSlave:
    @pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("kind", SENDS)
    async def test_no_answer_before_the_acknowledgement_of_the_last_byte(
        self, start_broker: MakeBroker, connect: Connect, kind: str, path: str, flush: str
    ) -> None:
        broker = await start_broker(flush_disk_type=flush, **SYNC, **PATHS[path])
        client = connect(broker.addr)
        await client.send("T", b"the topic exists afterwards")
        begin = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port, begin) as slave:
            await acknowledge(client, slave, begin)
            answer = asyncio.ensure_future(SENDS[kind](client))
            await slave.until(lambda: b"body" in slave.log or b"two" in slave.log)
            end = (await status(client)).master_commit_log_max_offset
            await slave.until(lambda: slave.end == end)
            assert not answer.done(), "the slave has the bytes, but has not acknowledged them"
            await acknowledge(client, slave, end - 1)
            assert not answer.done()
            await acknowledge(client, slave, end)
            assert (await answer).code == 0

    async def test_many_sends_at_once(self, start_broker: MakeBroker, connect: Connect) -> None:
        broker = await start_broker(**SYNC, wait_time_mills_in_send_queue=NEVER_MS)
        client = connect(broker.addr)
        async with slave_of(broker.ha_port) as slave:
            slave.acknowledges = True
            receiving = asyncio.ensure_future(slave.closed())
            await eventually(lambda: seen(client, 1), WAIT_S)
            answers = await asyncio.gather(*(client.send("T", b"x" * 500) for _ in range(500)))
            assert {answer.code for answer in answers} == {0}
            end = (await status(client)).master_commit_log_max_offset
            assert slave.end == end, "an answer came before the acknowledgement"
            receiving.cancel()

    async def test_a_message_with_wait_false_is_answered_at_once(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(**SYNC)
        client = connect(broker.addr)
        async with slave_of(broker.ha_port):
            await eventually(lambda: seen(client, 1), WAIT_S)
            assert (await client.send("T", b"body", "WAIT\x01false\x02")).code == 0

    async def test_a_message_sent_back_waits(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(**SYNC)
        client = connect(broker.addr)
        await client.request(200, None, encode_body(SubscriptionGroupConfig(group_name="CG")))
        stored = await client.send("T", b"failed")
        begin = (await status(client)).master_commit_log_max_offset
        header = ConsumerSendMsgBackRequestHeader(
            offset=int(stored.ext_fields["msgId"][-16:], 16), group="CG", delay_level=0
        )
        async with slave_of(broker.ha_port, begin) as slave:
            await acknowledge(client, slave, begin)
            answer = asyncio.ensure_future(client.request(36, header))
            await slave.until(lambda: b"failed" in slave.log)
            assert not answer.done()
            await acknowledge(client, slave, slave.end)
            assert (await answer).code == 0


async def seen(client: WireClient, slaves: int) -> bool:
    """Whether the master has this number of slaves."""
    return len((await status(client)).ha_connection_info) == slaves


class TestMissingSlaves:
    @pytest.mark.parametrize("path", PATHS)
    async def test_without_a_slave_the_answer_is_slave_not_available(
        self, start_broker: MakeBroker, connect: Connect, path: str
    ) -> None:
        broker = await start_broker(**SYNC, **PATHS[path])
        client = connect(broker.addr)
        for kind in ("plain", "batch", "half"):
            answer = await SENDS[kind](client)
            assert answer.code == 11, kind
            assert answer.ext_fields["msgId"]

    async def test_a_slave_too_far_behind_does_not_count(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(ha_slave_fallbehind_max=1_000, **SYNC)
        client = connect(broker.addr)
        async with slave_of(broker.ha_port):
            await eventually(lambda: seen(client, 1), WAIT_S)
            assert (await client.send("T", b"x" * 2_000)).code == 11

    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
    async def test_a_slave_that_does_not_acknowledge(
        self, start_broker: MakeBroker, connect: Connect, flush: str, path: str
    ) -> None:
        settings: dict[str, Any] = SYNC | {"slave_timeout": 50, "flush_disk_type": flush}
        broker = await start_broker(**settings, **PATHS[path])
        client = connect(broker.addr)
        async with slave_of(broker.ha_port):
            await eventually(lambda: seen(client, 1), WAIT_S)
            answer = await client.send("T", b"x")
            assert answer.code == 12
            assert answer.ext_fields["queueOffset"] == "0"

    async def test_the_acknowledgement_of_a_lost_slave_does_not_count(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(**SYNC)
        client = connect(broker.addr)
        async with slave_of(broker.ha_port) as slave:
            slave.acknowledges = True
            receiving = asyncio.ensure_future(slave.closed())
            await eventually(lambda: seen(client, 1), WAIT_S)
            assert (await client.send("T")).code == 0
            receiving.cancel()
        await eventually(lambda: seen(client, 0), WAIT_S)
        assert (await client.send("T")).code == 11


class TestInSyncReplicas:
    async def test_one_copy_is_the_masters(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(in_sync_replicas=1, **SYNC)
        assert (await connect(broker.addr).send("T")).code == 0

    async def test_three_copies_need_two_slaves(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(in_sync_replicas=3, **SYNC)
        client = connect(broker.addr)
        async with slave_of(broker.ha_port) as first:
            await eventually(lambda: seen(client, 1), WAIT_S)
            assert (await client.send("T")).code == 11
            begin = (await status(client)).master_commit_log_max_offset
            await first.until(lambda: first.end == begin)
            async with slave_of(broker.ha_port, begin) as second:
                await eventually(lambda: seen(client, 2), WAIT_S)
                answer = asyncio.ensure_future(client.send("T", b"body"))
                await second.until(lambda: second.end > begin)
                await first.until(lambda: first.end == second.end)
                await acknowledge(client, second, second.end)
                assert not answer.done()
                await acknowledge(client, first, first.end)
                assert (await answer).code == 0


async def test_an_asynchronous_master_waits_for_nobody(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker()
    client = connect(broker.addr)
    async with slave_of(broker.ha_port):
        await eventually(lambda: seen(client, 1), WAIT_S)
        assert (await client.send("T")).code == 0
