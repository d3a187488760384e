"""kill -9 of a broker with open transactions: ended ones stay ended, the others are checked.

A transaction ended by an answered request is never checked again. Each message is delivered exactly
once or never, for any moment of the kill.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from core_broker.errors import TransportError
from core_broker.message.record import decode_record, decode_records
from core_broker.message.topics import TRANS_HALF_TOPIC, TRANSACTION_GROUP
from core_broker.remoting.bodies import HeartbeatData, ProducerData, encode_body
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
    SendMessageResponseHeader,
)
from tests.support.broker_requests import pull_header, send_header
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

pytestmark = pytest.mark.crash

TRANSACTIONS = 90
COMMIT, ROLLBACK = 8, 12
ANSWERED_BEFORE_KILL = 10
ANSWER_TIMEOUT_MS = 10_000


class Transactor:
    """A producer on one connection, which commits every checked transaction."""

    def __init__(self, addr: str) -> None:
        self.addr = addr
        self.asked: Counter[str] = Counter()
        self.answered = 0
        self._client = RemotingClient(name="transactor", dispatch=self._dispatch)
        self._answers: set[asyncio.Task[None]] = set()

    async def beat(self) -> None:
        """Register as a producer by a heartbeat."""
        beat = HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name="PG")])
        await self.ask(RemotingCommand.request(RequestCode.HEART_BEAT, None, encode_body(beat)))

    async def begin(self, name: str) -> SendMessageResponseHeader:
        """Send a half message."""
        header = send_header("T", f"TRAN_MSG\x01true\x02PGROUP\x01PG\x02UNIQ_KEY\x01{name}")
        command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, name.encode())
        return (await self.ask(command)).header(SendMessageResponseHeader)

    async def end(self, offset: int, place: int, how: int) -> None:
        """End a transaction, and wait for the response."""
        header = EndTransactionRequestHeader(
            producer_group="PG",
            tran_state_table_offset=place,
            commit_log_offset=offset,
            commit_or_rollback=how,
            msg_id="",
        )
        await self.ask(RemotingCommand.request(RequestCode.END_TRANSACTION, header))

    async def ask(self, command: RemotingCommand) -> RemotingCommand:
        answer = await self._client.invoke(self.addr, command, ANSWER_TIMEOUT_MS)
        assert answer.code == 0, answer.remark
        return answer

    async def close(self) -> None:
        """Leave; answers under way may be lost with the broker."""
        await self._client.close()
        await asyncio.gather(*self._answers, return_exceptions=True)

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> None:
        assert request.code == RequestCode.CHECK_TRANSACTION_STATE
        header = request.header(CheckTransactionStateRequestHeader)
        self.asked[decode_record(request.body).body.decode()] += 1
        task = asyncio.create_task(self._commit(header))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _commit(self, header: CheckTransactionStateRequestHeader) -> None:
        try:
            await self.end(header.commit_log_offset, header.tran_state_table_offset, COMMIT)
        except TransportError:
            return
        self.answered += 1


async def delivered(addr: str) -> Counter[str]:
    """How often each message is in the topic."""
    client = RemotingClient(name="reader")
    found: Counter[str] = Counter()
    offset = 0
    while True:
        command = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header("T", offset))
        answer = await client.invoke(addr, command, ANSWER_TIMEOUT_MS)
        if answer.code != 0:
            break
        messages = decode_records(answer.body)
        found.update(message.body.decode() for message in messages)
        offset += len(messages)
    await client.close()
    return found


async def all_settled(transactor: Transactor) -> bool:
    """The broker has stored the progress: no half message is open."""
    end = RemotingCommand.request(
        RequestCode.GET_MAX_OFFSET, {"topic": TRANS_HALF_TOPIC, "queueId": "0"}
    )
    kept = RemotingCommand.request(
        RequestCode.QUERY_CONSUMER_OFFSET,
        {"consumerGroup": TRANSACTION_GROUP, "topic": TRANS_HALF_TOPIC, "queueId": "0"},
    )
    return (await transactor.ask(end)).ext_fields == (await transactor.ask(kept)).ext_fields


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_kills_between_and_within_transactions(tmp_path: Path, flush: str) -> None:
    settings = {"transaction_time_out": 300, "transaction_check_interval": 200}
    with Cluster(tmp_path, flush_disk_type=flush, **settings) as cluster:
        # No check may come in the first life: no half message is old enough.
        cluster.restart_broker(transaction_time_out=3_600_000)
        first = Transactor(cluster.broker_addr)
        await first.beat()
        names = [f"transaction {number}" for number in range(TRANSACTIONS)]
        begun = await asyncio.gather(*(first.begin(name) for name in names))
        ends = [
            first.end(int(half.msg_id[16:], 16), half.queue_offset, how)
            for number, half in enumerate(begun)
            if (how := (COMMIT, ROLLBACK, 0)[number % 3])
        ]
        await asyncio.gather(*ends)
        cluster.kill_broker()
        await first.close()
        committed, rolled_back, still_open = names[0::3], names[1::3], names[2::3]

        cluster.restart_broker(transaction_time_out=300)
        assert await delivered(cluster.broker_addr) == Counter(committed)
        second = Transactor(cluster.broker_addr)
        await second.beat()
        await eventually(lambda: second.answered >= ANSWERED_BEFORE_KILL)
        cluster.kill_broker()
        await second.close()

        cluster.restart_broker()
        third = Transactor(cluster.broker_addr)
        await third.beat()
        await eventually(lambda: all_settled(third), timeout_s=90)
        await third.close()
        found = await delivered(cluster.broker_addr)
    assert not first.asked
    assert set(second.asked) | set(third.asked) <= set(still_open)
    assert not found.keys() & set(rolled_back)
    assert found == Counter([*committed, *still_open])
