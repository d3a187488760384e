"""Messages and traces sent to a real broker, for the tests of the folder."""

import asyncio
import random
from collections.abc import Sequence

from core_broker.client import AdminClient
from core_broker.message.model import Message, MessageExt
from core_broker.remoting.bodies import TopicConfig
from tests.support.cluster import Cluster
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord, encode_trace

SEND_TOGETHER = 50


def new_topic(cluster: Cluster, topic: str, *, queues: int = 1) -> None:
    """Create a topic."""

    async def go() -> None:
        async with AdminClient(cluster.namesrv_addr) as admin:
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            await admin.create_topic(cluster.broker_addr, config)

    asyncio.run(go())


def pull_all(
    cluster: Cluster, topic: str, *, queues: int = 1, limit: int | None = None
) -> list[MessageExt]:
    """All messages of a topic, or the first `limit` of each queue, by queue in order."""

    async def go() -> list[MessageExt]:
        found = []
        async with AdminClient(cluster.namesrv_addr) as admin:
            for queue_id in range(queues):
                addr, offset = cluster.broker_addr, 0
                end = await admin.max_offset(addr, topic, queue_id)
                end = end if limit is None else min(end, limit)
                while offset < end:
                    pulled = await admin.pull(addr, topic, queue_id, offset, 1024)
                    found += pulled.messages
                    offset = pulled.next_offset
        return found

    return asyncio.run(go())


def send(cluster: Cluster, topic: str, bodies: Sequence[bytes], *, queues: int = 1) -> None:
    """Send bodies round-robin to the queues of a topic; creates a missing topic.

    Keeps the order within a queue.
    """
    new_topic(cluster, topic, queues=queues)

    async def go() -> None:
        async with AdminClient(cluster.namesrv_addr) as admin:
            for begin in range(0, len(bodies), queues):
                group = bodies[begin : begin + queues]
                await asyncio.gather(
                    *(
                        admin.send(
                            cluster.broker_addr, Message(topic, body, tags="T", keys="k"), queue_id
                        )
                        for queue_id, body in enumerate(group)
                    )
                )

    asyncio.run(go())


def trace_bodies(luck: random.Random, name: str, messages: int, begin_ms: int) -> list[bytes]:
    """Traces of `messages` messages over three hours, in several bodies and slightly out of
    order.
    """
    told: list[tuple[int, TraceRecord]] = []
    for number in range(messages):
        msg_id, at_ms = f"{name}-{number}", begin_ms + luck.randrange(3 * 3600_000)
        cost_ms = luck.randrange(1, 50)
        if luck.random() < 0.95:
            told.append(
                (
                    at_ms + luck.randrange(9000),
                    Pub(
                        timestamp_ms=at_ms,
                        group="shop",
                        topic=f"{name}-{number % 3}",
                        msg_id=msg_id,
                        body_bytes=100,
                        cost_ms=cost_ms,
                        success=luck.random() < 0.97,
                    ),
                )
            )
        for retry in range(luck.choice((0, 1, 1, 1, 2))):
            at_ms += luck.randrange(1, 2_000_000)
            request_id = f"{msg_id}-{retry}"
            spent_ms = luck.randrange(1, 5000)
            told.append(
                (
                    at_ms + luck.randrange(9000),
                    SubBefore(
                        timestamp_ms=at_ms,
                        group="billing",
                        request_id=request_id,
                        msg_id=msg_id,
                        retry_times=retry,
                    ),
                )
            )
            told.append(
                (
                    at_ms + spent_ms + luck.randrange(9000),
                    SubAfter(
                        request_id=request_id,
                        msg_id=msg_id,
                        cost_ms=spent_ms,
                        success=luck.random() < 0.8,
                        context_code=0,
                        timestamp_ms=at_ms + spent_ms,
                        group="billing",
                    ),
                )
            )
    told.sort(key=lambda entry: entry[0])
    records = [record for _at_ms, record in told]
    return [encode_trace(records[begin : begin + 7]) for begin in range(0, len(records), 7)]
