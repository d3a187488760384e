"""Message tracks: the consumption state of a message in each group of the topic.

Compatible with DefaultMQAdminExtImpl.messageTrackDetail.
"""

from dataclasses import dataclass
from enum import StrEnum

from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.model import MessageExt
from core_broker.mqadmin.java_texts import host_text, java
from core_broker.mqadmin.lookup import group_connection, group_stats, topic_addrs
from core_broker.remoting.bodies import SUBSCRIBE_ALL, ConsumerConnection, ConsumeType
from core_broker.remoting.codes import ResponseCode


class TrackType(StrEnum):
    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    #: A group of pull consumers: brokers do not know the group's position.
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class MessageTrack:
    group: str
    track_type: TrackType
    reason: str | None = None

    def __str__(self) -> str:
        return (
            f"MessageTrack [consumerGroup={self.group}, trackType={self.track_type.value}, "
            f"exceptionDesc={java(self.reason)}]"
        )

    def record(self) -> dict[str, str | None]:
        return {
            "consumerGroup": self.group,
            "trackType": self.track_type.value,
            "reason": self.reason,
        }


async def message_tracks(admin: AdminClient, message: MessageExt) -> list[MessageTrack]:
    """Return one track for each group of the topic, sorted by group."""
    groups: set[str] = set()
    for addr in (await topic_addrs(admin, message.topic)).values():
        groups |= set(await admin.groups_of_topic(addr, message.topic))
    # RocketMQ 5 also lists the topic's own name as a group.
    return [await _track(admin, message, group) for group in sorted(groups - {message.topic})]


async def _track(admin: AdminClient, message: MessageExt, group: str) -> MessageTrack:
    try:
        connection = await group_connection(admin, group)
        if connection.consume_type == ConsumeType.CONSUME_ACTIVELY:
            return MessageTrack(group, TrackType.PULL)
        if not await _has_passed(admin, message, group):
            return MessageTrack(group, TrackType.NOT_CONSUME_YET)
    except RequestRefused as refused:
        offline = refused.code == ResponseCode.CONSUMER_NOT_ONLINE
        reason = f"CODE:{refused.code} DESC:{refused.remark}"
        return MessageTrack(group, TrackType.NOT_ONLINE if offline else TrackType.UNKNOWN, reason)
    except GantryError as error:
        return MessageTrack(group, TrackType.UNKNOWN, str(error))
    return MessageTrack(group, _consumed(connection, message))


async def _has_passed(admin: AdminClient, message: MessageExt, group: str) -> bool:
    """Return True when the group's offset on the message's broker is beyond the message."""
    brokers = (await admin.cluster_info()).broker_addr_table
    stored_at = host_text(message.store_host)
    for queue, entry in (await group_stats(admin, group)).offset_table.items():
        broker = brokers.get(queue.broker_name)
        is_broker = broker is not None and broker.master_addr == stored_at
        if is_broker and (queue.topic, queue.queue_id) == (message.topic, message.queue_id):
            return entry.consumer_offset > message.queue_offset
    return False


def _consumed(connection: ConsumerConnection, message: MessageExt) -> TrackType:
    subscription = connection.subscription_table.get(message.topic)
    tags = subscription.tags_set if subscription is not None else None
    if not tags or tags & {message.tags, SUBSCRIBE_ALL}:
        return TrackType.CONSUMED
    return TrackType.CONSUMED_BUT_FILTERED
