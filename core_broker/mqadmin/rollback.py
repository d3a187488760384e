"""Reset of a group's offsets in the brokers' offset tables, without its consumers.

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
    """The reset of one queue.

    `broker_offset` is the end of the queue, `consumer_offset` the group's offset before the reset,
    `timestamp_offset` the offset of the requested time, `rollback_offset` the group's offset after
    the reset.
    """

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
    """Reset all queues of the topic, including queues without an offset of the group.

    Without `force` a queue whose target is ahead of the group's offset stays unchanged; with
    `dry_run` all queues stay unchanged.
    """
    rows = []
    route = await admin.topic_route(topic)
    for addr in addrs_of_route(route).values():
        for queue, (broker_offset, consumer_offset) in sorted(
            (await _offsets(admin, addr, group, topic)).items()
        ):
            if timestamp_ms == END:
                target = await admin.max_offset(addr, topic, queue.queue_id)
            else:
                target = await admin.search_offset(addr, topic, queue.queue_id, timestamp_ms)
            is_reset = force or target <= consumer_offset
            if is_reset and not dry_run:
                await admin.update_consumer_offset(addr, group, topic, queue.queue_id, target)
            result = target if is_reset else consumer_offset
            rows.append(Rollback(queue, broker_offset, consumer_offset, target, result))
    return rows


async def _offsets(
    admin: AdminClient, addr: str, group: str, topic: str
) -> dict[MessageQueue, tuple[int, int]]:
    """Return broker and consumer offset of each queue.

    The minimum offset of a queue stands for the consumer offset of a group without offsets.
    """
    stats = (await admin.consume_stats(addr, group, topic)).offset_table
    offsets = {
        queue: (entry.broker_offset, entry.consumer_offset)
        for queue, entry in stats.items()
        if queue.topic == topic
    }
    if offsets:
        return offsets
    extents = await admin.topic_stats(addr, topic)
    return {queue: (extent.max_offset, extent.min_offset) for queue, extent in extents.items()}
