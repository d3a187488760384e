"""Setting the offsets of a group at its brokers, without its consumers.

Compatible with DefaultMQAdminExtImpl.resetOffsetByTimestampOld.
"""

from dataclasses import dataclass
from typing import Any

from core_broker.client.admin import AdminClient
from core_broker.mqadmin.lookup import addrs_of_route
from core_broker.mqadmin.times import END
from core_broker.remoting.bodies import MessageQueue


@dataclass(frozen=True, slots=True)
class Rollback:
    """One queue: where the broker and the group are, where the time is, where the group goes."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    rollback_offset: int

    def record(self) -> dict[str, Any]:
        return {
            "brokerName": self.queue.broker_name,
            "queueId": self.queue.queue_id,
            "brokerOffset": self.broker_offset,
            "consumerOffset": self.consumer_offset,
            "timestampOffset": self.timestamp_offset,
            "rollbackOffset": self.rollback_offset,
        }


async def roll_back(
    admin: AdminClient, group: str, topic: str, timestamp_ms: int, *, force: bool, dry_run: bool
) -> list[Rollback]:
    """Every queue of the topic, whether the group has consumed from it or not."""
    rows = []
    route = await admin.topic_route(topic)
    for addr in addrs_of_route(route).values():
        for queue, (broker_offset, consumer_offset) in sorted(
            (await _places(admin, addr, group, topic)).items()
        ):
            if timestamp_ms == END:
                target = await admin.max_offset(addr, topic, queue.queue_id)
            else:
                target = await admin.search_offset(addr, topic, queue.queue_id, timestamp_ms)
            goes = force or target <= consumer_offset
            if goes and not dry_run:
                await admin.update_consumer_offset(addr, group, topic, queue.queue_id, target)
            reached = target if goes else consumer_offset
            rows.append(Rollback(queue, broker_offset, consumer_offset, target, reached))
    return rows


async def _places(
    admin: AdminClient, addr: str, group: str, topic: str
) -> dict[MessageQueue, tuple[int, int]]:
    """Where broker and group are in each queue; a group without an offset is at the beginning."""
    stats = (await admin.consume_stats(addr, group, topic)).offset_table
    places = {
        queue: (entry.broker_offset, entry.consumer_offset)
        for queue, entry in stats.items()
        if queue.topic == topic
    }
    if places:
        return places
    extents = await admin.topic_stats(addr, topic)
    return {queue: (extent.max_offset, extent.min_offset) for queue, extent in extents.items()}
