"""Which consumers are connected, by group, and what each group subscribes to.

A member is one connection that named the group in a heartbeat. The subscriptions of a group are
those of its latest heartbeat. Whenever members or subscribed topics change, the members must hear
of it, because they share the queues among them. Compatible with RocketMQ's ConsumerManager and
ConsumerGroupInfo.
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
        """The ids of all members; two members with the same id stand there twice."""
        return [member.client_id for member in self.members.values()]

    def ways(self) -> tuple[object, ...]:
        """How the group consumes and what it subscribes to."""
        how = (self.consume_type, self.message_model, self.consume_from_where)
        return *how, *self.subscriptions.values()

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Take over what a heartbeat says; True when topics were added or left out."""
        latest = {data.topic: data for data in subscriptions}
        changed = latest.keys() != self.subscriptions.keys()
        for topic, known in self.subscriptions.items():
            if topic in latest and latest[topic].sub_version <= known.sub_version:
                latest[topic] = known
        self.subscriptions = latest
        return changed


class ConsumerSessions:
    """The consumers of every group."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._groups_of: dict[Channel, set[str]] = {}
        #: Counts changes of who is there, how it consumes and what it subscribes to.
        self.changes = 0

    def register(self, client: ClientChannel, data: ConsumerData) -> bool:
        """Note a heartbeat; True when the members of the group must be told."""
        group = self._groups.get(data.group_name)
        if group is None:
            group = ConsumerGroup(
                data.group_name, data.consume_type, data.message_model, data.consume_from_where
            )
            self._groups[data.group_name] = group
        before = group.ways()
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        joined = client.channel not in group.members
        group.members[client.channel] = client
        self._groups_of.setdefault(client.channel, set()).add(group.name)
        changed = group.subscribe(data.subscription_data_set)
        if joined or before != group.ways():
            self.changes += 1
        return joined or changed

    def unregister(self, group_name: str, channel: Channel) -> bool:
        """Forget a consumer that leaves one group; True when it was a member."""
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
        """Forget a closed connection; returns the groups it was a member of."""
        left = sorted(self._groups_of.get(channel, ()))
        for group_name in left:
            self.unregister(group_name, channel)
        return left

    def expired(self, now_ms: int) -> list[ClientChannel]:
        """The members without a heartbeat for too long; their connections are to be closed."""
        return [
            member
            for group in self._groups.values()
            for member in group.members.values()
            if now_ms - member.seen_ms > CHANNEL_EXPIRED_MS
        ]

    def group(self, name: str) -> ConsumerGroup | None:
        """The connected members of a group, or None when there is none."""
        return self._groups.get(name)

    def member(self, group_name: str, client_id: str) -> ClientChannel | None:
        """The member of a group with this id."""
        group = self._groups.get(group_name)
        members = group.members.values() if group is not None else ()
        return next((member for member in members if member.client_id == client_id), None)

    def subscription(self, group_name: str, topic: str) -> SubscriptionData | None:
        """What a connected group wants of a topic."""
        group = self._groups.get(group_name)
        return group.subscriptions.get(topic) if group is not None else None

    def has_unsubscribed(self, group_name: str, topic: str) -> bool:
        """True when the group is connected with subscriptions but none to this topic."""
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
        """How many connections consume."""
        return len(self._groups_of)
