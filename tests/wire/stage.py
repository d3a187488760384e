"""Preconditions of the recorded requests: topics, messages, groups, online clients."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from core_broker.client.admin import AdminClient
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerData,
    ConsumerRunningInfo,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
    encode_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from tests.support.broker_requests import send_header
from tests.support.cluster import Cluster

TOPICS = ("TA", "TT", "TR", "T1", "TX", "topicA", "TBW102")
GROUPS = ("CG1", "CGR", "CGTR", "CGL", "CGP", "GX")
#: Newer than the subscription of recorded pulls, except pulls answered SUBSCRIPTION_NOT_LATEST.
SUBSCRIPTION_VERSION = 1795252807070
#: The members of CG1 in the recordings.
CONSUMERS = ("192.0.2.2@31313#5258889567786", "192.0.2.2@31309#5259003649855")
ASKING_PRODUCER = "192.0.2.2@rq"
TIMEOUT_MS = 10_000


async def fill(cluster: Cluster, empty_queue: int | None) -> dict[str, str]:
    """Create topics, groups and messages; returns offset and id of a message."""
    async with AdminClient(cluster.namesrv_addr) as admin, _asking("stage") as client:
        for name in {*TOPICS} - {"TBW102"}:
            queues = 8 if name == "topicA" else 2
            config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
            await admin.create_topic(cluster.broker_addr, config)
        for name in GROUPS:
            group = SubscriptionGroupConfig(group_name=name)
            await client.ask(cluster.broker_addr, 200, {}, encode_body(group))
        where: dict[str, str] = {}
        for topic in ("TA", "TR"):
            for queue_id in (0, 1):
                if topic == "TA" and queue_id == empty_queue:
                    continue
                for number in range(12):
                    tag = "TagA" if number < 5 else "Other"
                    properties = f"KEYS\x01K{number}\x02UNIQ_KEY\x01U{number}\x02TAGS\x01{tag}\x02"
                    answer = await client.send(cluster.broker_addr, topic, queue_id, properties)
                    where = {"id": answer.ext_fields["msgId"]}
        where["offset"] = str(int(where["id"][16:], 16))
    return where


class _asking:  # noqa: N801 - used as a function
    """A client with few words."""

    def __init__(self, name: str, dispatch: Any = None) -> None:
        self.remoting = RemotingClient(name=name, dispatch=dispatch)

    async def __aenter__(self) -> "_asking":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.remoting.close()

    async def ask(
        self, addr: str, code: int, fields: dict[str, str], body: bytes = b""
    ) -> RemotingCommand:
        command = RemotingCommand.request(code, fields, body)
        answer = await self.remoting.invoke(addr, command, TIMEOUT_MS)
        assert answer.code == 0, answer.remark
        return answer

    async def send(self, addr: str, topic: str, queue_id: int, properties: str) -> RemotingCommand:
        header = send_header(topic, properties, queue_id=queue_id)
        command = RemotingCommand.request(310, header, b"body")
        answer = await self.remoting.invoke(addr, command, TIMEOUT_MS)
        assert answer.code == 0, answer.remark
        return answer


def _relayed(_: Connection, command: RemotingCommand) -> RemotingCommand | None:
    """A consumer's answers to relayed requests."""
    if command.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
        result = ConsumeMessageDirectlyResult(consume_result="CR_SUCCESS", spent_time_mills=4)
        return RemotingCommand.response(body=encode_body(result))
    if command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
        return RemotingCommand.response(body=encode_body(ConsumerRunningInfo()))
    return RemotingCommand.response()


def _subscription(topic: str, text: str, version: int) -> SubscriptionData:
    tags = [] if text == "*" else text.split(" || ")
    codes = {"TagA": 2598919, "TagB": 2598920, "TagD": 2598922}
    return SubscriptionData(
        topic=topic,
        sub_string=text,
        tags_set=tags,
        code_set=[codes[tag] for tag in tags],
        sub_version=version,
    )


def heartbeat(client_id: str, version: int) -> HeartbeatData:
    """The heartbeat of a client with all groups of the recordings."""
    wanted = {
        "CG1": {"TA": "TagA || TagB || TagD", "TT": "*", "%RETRY%CG1": "*"},
        "CGR": {"TR": "*"},
        "CGTR": {"TA": "*"},
        "CGL": {"TA": "*"},
    }
    return HeartbeatData(
        client_id=client_id,
        producer_data_set=[ProducerData(group_name="PGT"), ProducerData(group_name="PGR2")],
        consumer_data_set=[
            ConsumerData(
                group_name=group,
                subscription_data_set=[
                    _subscription(topic, text, version) for topic, text in topics.items()
                ],
            )
            for group, topics in wanted.items()
        ],
    )


async def come_online(stack: AsyncExitStack, broker_addr: str, version: int) -> None:
    """Connect the clients of the recordings for the time of a test."""
    for client_id in (*CONSUMERS, ASKING_PRODUCER):
        client = await stack.enter_async_context(_asking(client_id, _relayed))
        beat = encode_body(heartbeat(client_id, version))
        await client.ask(broker_addr, RequestCode.HEART_BEAT, {}, beat)


async def commit(stack: AsyncExitStack, broker_addr: str) -> None:
    """Commit the recorded offsets of the groups."""
    client = await stack.enter_async_context(_asking("commits"))
    for group in ("CG1", "CGL", "CGTR", "GX"):
        for topic in ("TA", "TT"):
            for queue_id in ("0", "1"):
                fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
                fields |= {"commitOffset": "0"}
                await client.ask(broker_addr, RequestCode.UPDATE_CONSUMER_OFFSET, fields)


async def register(stack: AsyncExitStack, namesrv_addr: str) -> None:
    """Register the broker of the recordings at a name server."""
    broker = await stack.enter_async_context(_asking("broker"))
    fields = {"brokerName": "broker-a", "brokerAddr": "127.0.0.1:20911", "brokerId": "0"}
    fields |= {"clusterName": "DefaultCluster", "haServerAddr": "127.0.0.1:20912"}
    table = {name: TopicConfig(topic_name=name) for name in TOPICS}
    version = {"counter": 1, "timestamp": 1795251271076}
    wrapper = {"topicConfigTable": table, "dataVersion": version}
    body = encode_body({"filterServerList": [], "topicConfigSerializeWrapper": wrapper})
    await broker.ask(namesrv_addr, RequestCode.REGISTER_BROKER, fields, body)


async def order(stack: AsyncExitStack, namesrv_addr: str) -> None:
    """Make TA an order topic for the time of a test."""
    client = await stack.enter_async_context(_asking("order"))
    key = {"namespace": "ORDER_TOPIC_CONFIG", "key": "TA"}
    await client.ask(namesrv_addr, RequestCode.PUT_KV_CONFIG, key | {"value": "broker-a:2"})
    stack.push_async_callback(client.ask, namesrv_addr, RequestCode.DELETE_KV_CONFIG, key)


def whole_body(code: int) -> bytes:
    """A replacement for a body of which the recorder kept only the start."""
    if code == RequestCode.HEART_BEAT:
        return encode_body(heartbeat("192.0.2.2@23794#4255903183107", SUBSCRIPTION_VERSION))
    assert code == RequestCode.SEND_BATCH_MESSAGE
    return encode_batch([Message("TA", b"%d" % number) for number in range(3)])


async def exchange(addr: str, frame: bytes) -> RemotingCommand:
    """Send a frame unchanged and return the answer."""
    host, _, port = addr.rpartition(":")
    async with asyncio.timeout(TIMEOUT_MS / 1000):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(frame)
            length = await reader.readexactly(4)
            return RemotingCommand.decode(
                length + await reader.readexactly(int.from_bytes(length, "big"))
            )
        finally:
            writer.close()
