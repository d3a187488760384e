"""What a store has to keep over versions: messages, keys, offsets, a delayed message."""

import asyncio
from collections.abc import Sequence

from core_broker.client import AdminClient
from core_broker.errors import RequestRefused
from core_broker.message.model import Message
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig

TOPIC, LATER, GROUP = "kept", "kept-later", "kept-readers"
QUEUES = 2
MESSAGES = 12
COMMITTED = 4
DEADLINE_S = 120
POLL_S = 0.1


def bodies(batch: int) -> list[bytes]:
    """The messages of one version, in the order of sending."""
    return [b"%d-%d" % (batch, number) for number in range(MESSAGES)]


async def write(namesrv_addr: str, addr: str, batch: int) -> None:
    """Store a batch of messages, commit offsets, and delay a message by a second."""
    async with AdminClient(namesrv_addr) as admin:
        for name in (TOPIC, LATER):
            config = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            await admin.create_topic(addr, config)
        await admin.create_group(addr, SubscriptionGroupConfig(group_name=GROUP))
        for number, body in enumerate(bodies(batch)):
            message = Message(TOPIC, body, tags="Tag", keys=[f"K{batch}-{number}"])
            await admin.send(addr, message, number % QUEUES)
        await admin.update_consumer_offset(addr, GROUP, TOPIC, 0, COMMITTED)
        await admin.send(addr, Message(LATER, b"later-%d" % batch, delay_level=1), 0)


async def check(namesrv_addr: str, addr: str, batches: Sequence[int]) -> None:
    """Read everything that `write` has stored, in order and once."""
    async with AdminClient(namesrv_addr) as admin, asyncio.timeout(DEADLINE_S):
        found = {queue_id: await read(admin, addr, TOPIC, queue_id) for queue_id in range(QUEUES)}
        assert found == {
            queue_id: [body for batch in batches for body in bodies(batch)[queue_id::QUEUES]]
            for queue_id in range(QUEUES)
        }
        for batch in batches:
            by_key = await admin.query_message(addr, TOPIC, f"K{batch}-3")
            assert [each.body for each in by_key] == [bodies(batch)[3]]
        assert await admin.query_consumer_offset(addr, GROUP, TOPIC, 0) == COMMITTED
        expected = [b"later-%d" % batch for batch in batches]
        while (delayed := await read(admin, addr, LATER, 0)) != expected:
            assert len(delayed) <= len(expected), delayed
            await asyncio.sleep(POLL_S)


async def read(admin: AdminClient, addr: str, topic: str, queue_id: int) -> list[bytes]:
    """The bodies of a queue; none for a topic that does not exist yet."""
    found: list[bytes] = []
    while True:
        try:
            pulled = await admin.pull(addr, topic, queue_id, len(found), 32)
        except RequestRefused:
            return found
        if not pulled.messages:
            return found
        found += [message.body for message in pulled.messages]
