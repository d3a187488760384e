"""Whether each group of a topic has consumed a message.

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
    #: The group pulls by itself; brokers do not know how far it is.
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
    """One for each group that consumes the topic."""
    groups: set[str] = set()
    for addr in (await topic_addrs(admin, message.topic)).values():
        groups |= set(await admin.groups_of_topic(addr, message.topic))
    # RocketMQ 5 lists a topic as a group of its own.
    return [await _track(admin, message, group) for group in sorted(groups - {message.topic})]


async def _track(admin: AdminClient, message: MessageExt, group: str) -> MessageTrack:
    try:
        connection = await group_connection(admin, group)
        if connection.consume_type == ConsumeType.CONSUME_ACTIVELY:
            return MessageTrack(group, TrackType.PULL)
        if not await _is_behind(admin, message, group):
            return MessageTrack(group, TrackType.NOT_CONSUME_YET)
    except RequestRefused as refused:
        offline = refused.code == ResponseCode.CONSUMER_NOT_ONLINE
        reason = f"CODE:{refused.code} DESC:{refused.remark}"
        return MessageTrack(group, TrackType.NOT_ONLINE if offline else TrackType.UNKNOWN, reason)
    except GantryError as error:
        return MessageTrack(group, TrackType.UNKNOWN, str(error))
    return MessageTrack(group, _consumed(connection, message))


async def _is_behind(admin: AdminClient, message: MessageExt, group: str) -> bool:
    """True when the group's offset has passed the message, on the broker that stored it."""
    brokers = (await admin.cluster_info()).broker_addr_table
    stored_at = host_text(message.store_host)
    for queue, entry in (await group_stats(admin, group)).offset_table.items():
        broker = brokers.get(queue.broker_name)
        here = broker is not None and broker.master_addr == stored_at
        if here and (queue.topic, queue.queue_id) == (message.topic, message.queue_id):
            return entry.consumer_offset > message.queue_offset
    return False


def _consumed(connection: ConsumerConnection, message: MessageExt) -> TrackType:
    wanted = connection.subscription_table.get(message.topic)
    if wanted is None or not wanted.tags_set or wanted.tags_set & {message.tags, SUBSCRIBE_ALL}:
        return TrackType.CONSUMED
    return TrackType.CONSUMED_BUT_FILTERED
