"""Retention of the trace topic: the traces of older messages may be deleted."""

from typing import cast

from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.queue_slices import QueueRef
from console.gateway.traces.records import kept_since_ms
from core_broker.client import AdminClient, PullResult, PullStatus
from core_broker.remoting.bodies import MessageQueue, TopicOffset
from tests.support.stored_messages import stored

BROKER = BrokerRef("broker-a", 0, "127.0.0.1:10911")
FIRST_MS = 5_000


class TraceTopic:
    """A trace topic whose queues keep the offsets in [begin, end); the first has FIRST_MS."""

    def __init__(self, *kept: tuple[int, int]) -> None:
        self.kept = kept
        self.queues = [QueueRef("T", BROKER, at, readable=True) for at in range(len(kept))]

    async def topic_stats(self, _addr: str, topic: str) -> dict[MessageQueue, TopicOffset]:
        return {
            MessageQueue(topic, BROKER.name, at): TopicOffset(min_offset=begin, max_offset=end)
            for at, (begin, end) in enumerate(self.kept)
        }

    async def pull(
        self, _addr: str, _topic: str, queue_id: int, offset: int, _count: int
    ) -> PullResult:
        begin, end = self.kept[queue_id]
        found = [stored(queue_id, offset, FIRST_MS)] if offset < end else []
        status = PullStatus.FOUND if found else PullStatus.NO_NEW_MSG
        return PullResult(status, found, offset + 1, begin, end, 0)


async def since(*kept: tuple[int, int]) -> int:
    topic = TraceTopic(*kept)
    session = ClusterSession("local", "127.0.0.1:1")
    session.admin = cast("AdminClient", topic)
    return await kept_since_ms(session, topic.queues)


async def test_while_every_record_is_there_none_can_have_expired() -> None:
    assert await since((0, 0)) == 0
    assert await since((0, 9), (0, 4)) == 0


async def test_what_is_older_than_the_first_record_that_is_left_may_have_expired() -> None:
    assert await since((3, 9)) == FIRST_MS
    assert await since((0, 9), (3, 9)) == FIRST_MS


async def test_when_every_record_is_gone_all_may_have_expired() -> None:
    assert await since((9, 9)) > FIRST_MS
