"""Connected consumers and producers of a big cluster: heartbeats, and the running info for the page
of a client.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.big_cluster import GROUPS_PER_CLIENT, QUEUES, SEND_TIMEOUT_MS, Size
from core_broker.client import Credentials
from core_broker.message.topics import retry_topic
from core_broker.remoting.bodies import (
    ConsumerData,
    ConsumerRunningInfo,
    ConsumeStatus,
    HeartbeatData,
    MessageQueue,
    ProcessQueueInfo,
    ProducerData,
    SubscriptionData,
    encode_body,
)
from core_broker.remoting.client import RemotingClient, refuse
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import GetConsumerRunningInfoRequestHeader

HEARTBEAT_SECONDS = 30


@asynccontextmanager
async def clients(addr: str, size: Size, signing: Credentials) -> AsyncIterator[None]:
    """Connect the consumers of the first groups, and a producer."""
    hooks = [signing.hook()]
    beats = [
        (RemotingClient(name="big-cluster", rpc_hooks=hooks, dispatch=answer), _beat(size, number))
        for number in range(0, size.connected, GROUPS_PER_CLIENT)
    ]

    async def beat_all() -> None:
        for client, body in beats:
            request = RemotingCommand.request(RequestCode.HEART_BEAT, body=body)
            await client.invoke(addr, request, SEND_TIMEOUT_MS)

    async def go_on() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await beat_all()

    await beat_all()
    beating = asyncio.create_task(go_on())
    try:
        yield
    finally:
        beating.cancel()
        for client, _body in beats:
            await client.close()


def answer(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """Answer a broker's request for the running info of a consumer; refuse other requests."""
    if request.code != RequestCode.GET_CONSUMER_RUNNING_INFO:
        return refuse(connection, request)
    group = request.header(GetConsumerRunningInfoRequestHeader).consumer_group
    return RemotingCommand.response(body=encode_body(running_info(group)))


def running_info(group: str) -> ConsumerRunningInfo:
    """The state of the consumer of a group: its topic's queues, and rates."""
    topic = group.replace("group-", "topic-")
    queues = [MessageQueue(topic, "broker-a", number) for number in range(QUEUES)]
    return ConsumerRunningInfo(
        properties={"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CLIENT_VERSION": "V5_3_3"},
        subscription_set=[SubscriptionData(topic=topic, sub_string="*")],
        mq_table={each: ProcessQueueInfo(cached_msg_count=each.queue_id) for each in queues},
        status_table={topic: ConsumeStatus(consume_ok_tps=10.0, pull_tps=10.0)},
    )


def _beat(size: Size, number: int) -> bytes:
    """The heartbeat of a client that consumes for GROUPS_PER_CLIENT groups, and produces."""
    members = range(number, min(number + GROUPS_PER_CLIENT, size.connected))
    return encode_body(
        HeartbeatData(
            client_id=f"10.0.0.{number // GROUPS_PER_CLIENT}@{number}",
            consumer_data_set=[_consumer(size, each) for each in members],
            producer_data_set=[ProducerData(group_name="big-producers")],
        )
    )


def _consumer(size: Size, number: int) -> ConsumerData:
    group = size.group(number)
    names = (size.topic(number), retry_topic(group))
    return ConsumerData(
        group_name=group,
        subscription_data_set=[SubscriptionData(topic=name, sub_string="*") for name in names],
    )
