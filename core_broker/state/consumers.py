"""Connected consumers and their subscriptions, by group.

A member is one connection with a heartbeat for the group. The latest heartbeat defines the
subscriptions of the group. When members or subscribed topics change, the broker must notify all
members, because the members divide the queues among themselves. Compatible with RocketMQ's
ConsumerManager and ConsumerGroupInfo.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from core_broker.remoting.bodies import ConsumerData, SubscriptionData
from core_broker.state.channels import CHANNEL_EXPIRED_MS, Channel, ClientChannel


@dataclass(slots=True)
class ConsumerGroup:
    """The connected part of a subscription group."""

    name: str
    consume_type: str
    message_model: str
    consume_from_where: str
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    members: dict[Channel, ClientChannel] = field(default_factory=dict)

    def client_ids(self) -> list[str]:
        """The ids of all members; an id shared by two members is listed twice."""
        return [member.client_id for member in self.members.values()]

    def consume_settings(self) -> tuple[object, ...]:
        """Consume type, message model, start position and subscriptions of the group."""
        how = (self.consume_type, self.message_model, self.consume_from_where)
        return *how, *self.subscriptions.values()

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Apply the subscriptions of a heartbeat; True when topics were added or removed."""
        latest = {data.topic: data for data in subscriptions}
        changed = latest.keys() != self.subscriptions.keys()
        for topic, current in self.subscriptions.items():
            if topic in latest and latest[topic].sub_version <= current.sub_version:
                latest[topic] = current
        self.subscriptions = latest
        return changed


class ConsumerSessions:
    """The consumers of every group."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._groups_of: dict[Channel, set[str]] = {}
        #: Number of changes of members, consume settings and subscriptions.
        self.changes = 0

    def register(self, client: ClientChannel, data: ConsumerData) -> bool:
        """Apply a heartbeat; True when the members of the group must be notified."""
        group = self._groups.get(data.group_name)
        if group is None:
            group = ConsumerGroup(
                data.group_name, data.consume_type, data.message_model, data.consume_from_where
            )
            self._groups[data.group_name] = group
        before = group.consume_settings()
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        joined = client.channel not in group.members
        group.members[client.channel] = client
        self._groups_of.setdefault(client.channel, set()).add(group.name)
        changed = group.subscribe(data.subscription_data_set)
        if joined or before != group.consume_settings():
            self.changes += 1
        return joined or changed

    def unregister(self, group_name: str, channel: Channel) -> bool:
        """Remove a consumer from one group; True when the consumer was a member."""
        group = self._groups.get(group_name)
        if group is None or group.members.pop(channel, None) is None:
            return False
        self.changes += 1
        if not group.members:
            del self._groups[group_name]
        groups = self._groups_of[channel]
        groups.discard(group_name)
        if not groups:
            del self._groups_of[channel]
        return True

    def disconnect(self, channel: Channel) -> list[str]:
        """Remove a closed connection from all groups; returns the groups with this member."""
        left = sorted(self._groups_of.get(channel, ()))
        for group_name in left:
            self.unregister(group_name, channel)
        return left

    def expired(self, now_ms: int) -> list[ClientChannel]:
        """Members without a heartbeat for CHANNEL_EXPIRED_MS, whose connections must be closed."""
        return [
            member
            for group in self._groups.values()
            for member in group.members.values()
            if now_ms - member.seen_ms > CHANNEL_EXPIRED_MS
        ]

    def group(self, name: str) -> ConsumerGroup | None:
        """The connected part of a group; None without a member."""
        return self._groups.get(name)

    def member(self, group_name: str, client_id: str) -> ClientChannel | None:
        """The member of a group with this id."""
        group = self._groups.get(group_name)
        members = group.members.values() if group is not None else ()
        return next((member for member in members if member.client_id == client_id), None)

    def channels_of(self, client_id: str, group_name: str = "") -> list[Channel]:
        """The connections with this client id, of one group or of all; one of two groups twice."""
        names = (group_name,) if group_name else tuple(self._groups)
        return [
            member.channel
            for name in names
            if (group := self._groups.get(name)) is not None
            for member in group.members.values()
            if member.client_id == client_id
        ]

    def subscription(self, group_name: str, topic: str) -> SubscriptionData | None:
        """The subscription of a connected group to a topic."""
        group = self._groups.get(group_name)
        return group.subscriptions.get(topic) if group is not None else None

    def has_unsubscribed(self, group_name: str, topic: str) -> bool:
        """True when the group is connected and has subscriptions, but none to this topic."""
        group = self._groups.get(group_name)
        return group is not None and bool(group.subscriptions) and topic not in group.subscriptions

    def groups_of_topic(self, topic: str) -> set[str]:
        """The connected groups that subscribe to a topic."""
        return {name for name, group in self._groups.items() if topic in group.subscriptions}

    @property
    def groups(self) -> list[str]:
        """The groups that have a member."""
        return list(self._groups)

    @property
    def connections(self) -> int:
        """Number of connections with a consumer."""
        return len(self._groups_of)
