"""Half messages on a broker harness: begin, end, checks."""

from typing import Any

from core_broker.message.model import MessageExt
from core_broker.message.topics import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, TRANSACTION_GROUP
from core_broker.remoting.bodies import HeartbeatData, ProducerData
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import EndTransactionRequestHeader
from tests.support.broker_harness import BrokerHarness, Peer

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
#: transactionTimeOut
TIMEOUT_MS = 6_000
HALF = "TRAN_MSG\x01true\x02PGROUP\x01PG\x02UNIQ_KEY\x01U1\x02TAGS\x01A\x02WAIT\x01true"


async def begin(broker: BrokerHarness, properties: str = HALF, **fields: Any) -> MessageExt:
    """Send a half message to queue 2 of T and return the stored half message."""
    answer = await broker.send("T", b"half", properties, queue_id=2, sys_flag=4, **fields)
    assert answer.code == 0, answer.remark
    assert answer.ext_fields["queueId"] == "2"
    half = (await broker.messages(TRANS_HALF_TOPIC))[-1]
    assert answer.ext_fields["queueOffset"] == str(half.queue_offset)
    assert answer.ext_fields["msgId"] == half.offset_msg_id
    return half


async def end(broker: BrokerHarness, half: MessageExt, how: int, **changes: Any) -> RemotingCommand:
    fields: dict[str, Any] = {
        "producer_group": "PG",
        "tran_state_table_offset": half.queue_offset,
        "commit_log_offset": half.offset_physical,
        "commit_or_rollback": how,
        "msg_id": half.msg_id,
    }
    header = EndTransactionRequestHeader(**fields | changes)
    return await broker.ask(RequestCode.END_TRANSACTION, header)


async def ops(broker: BrokerHarness) -> list[bytes]:
    return [each.body for each in await broker.messages(TRANS_OP_HALF_TOPIC)]


async def producer(broker: BrokerHarness, client_id: str = "p1", group: str = "PG") -> Peer:
    """A producer after its heartbeat."""
    peer = broker.peer()
    beat = HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=group)])
    assert (await broker.ask(RequestCode.HEART_BEAT, body=beat, peer=peer)).code == 0
    return peer


async def old(broker: BrokerHarness, properties: str = HALF, **fields: Any) -> MessageExt:
    """A half message older than transactionTimeOut."""
    half = await begin(broker, properties, **{"born_timestamp": broker.now_ms, **fields})
    broker.now_ms += TIMEOUT_MS
    return half


def progress(broker: BrokerHarness) -> tuple[int | None, int | None]:
    committed = broker.ctx.offsets.committed
    return (
        committed(TRANSACTION_GROUP, TRANS_HALF_TOPIC, 0),
        committed(TRANSACTION_GROUP, TRANS_OP_HALF_TOPIC, 0),
    )


def asked(peer: Peer) -> list[RemotingCommand]:
    return [each for each in peer.told if each.code == RequestCode.CHECK_TRANSACTION_STATE]
