"""Connected producers, by group.

A producer is one connection with a heartbeat for the group. Compatible with RocketMQ's
ProducerManager.
"""

from core_broker.state.channels import CHANNEL_EXPIRED_MS, Channel, ClientChannel


class ProducerSessions:
    """The producers of every group."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Channel, ClientChannel]] = {}
        self._groups_of: dict[Channel, set[str]] = {}
        #: Client id in the last heartbeat of each connection.
        self._id_of: dict[Channel, str] = {}
        #: Connection of the last heartbeat with each client id.
        self._by_client_id: dict[str, ClientChannel] = {}
        #: Number of changes of members and of the connections of client ids.
        self.changes = 0
        #: Number of producers chosen by `next_of`, in all groups.
        self._chosen = 0

    def register(self, group: str, client: ClientChannel) -> None:
        """Apply a heartbeat of a producer."""
        members = self._groups.setdefault(group, {})
        current = self._by_client_id.get(client.client_id)
        if client.channel not in members or current is None or current.channel != client.channel:
            self.changes += 1
        members[client.channel] = client
        self._groups_of.setdefault(client.channel, set()).add(group)
        previous_id = self._id_of.get(client.channel)
        if previous_id is not None and previous_id != client.client_id:
            self._forget_client(client.channel)
        self._id_of[client.channel] = client.client_id
        self._by_client_id[client.client_id] = client

    def unregister(self, group: str, channel: Channel) -> None:
        """Remove a producer from one group."""
        members = self._groups.get(group)
        if members is None or members.pop(channel, None) is None:
            return
        self.changes += 1
        if not members:
            del self._groups[group]
        groups = self._groups_of[channel]
        groups.discard(group)
        if not groups:
            del self._groups_of[channel]
            self._forget_client(channel)

    def _forget_client(self, channel: Channel) -> None:
        client_id = self._id_of.pop(channel)
        # The client may have reconnected meanwhile, on another connection.
        if self._by_client_id[client_id].channel == channel:
            del self._by_client_id[client_id]

    def disconnect(self, channel: Channel) -> None:
        """Remove a closed connection from all groups."""
        for group in list(self._groups_of.get(channel, ())):
            self.unregister(group, channel)

    def expired(self, now_ms: int) -> list[ClientChannel]:
        """Clients without a heartbeat for CHANNEL_EXPIRED_MS, whose connections must be closed."""
        return [
            client
            for members in self._groups.values()
            for client in members.values()
            if now_ms - client.seen_ms > CHANNEL_EXPIRED_MS
        ]

    def members(self, group: str) -> list[ClientChannel]:
        """The producers of a group; empty for an unknown group."""
        return list(self._groups.get(group, {}).values())

    def next_of(self, group: str) -> ClientChannel | None:
        """A producer of a group, chosen round-robin; None for a group without producers."""
        members = self._groups.get(group)
        if not members:
            return None
        self._chosen += 1
        return list(members.values())[self._chosen % len(members)]

    def client(self, client_id: str) -> ClientChannel | None:
        """The client on the connection of its last heartbeat."""
        return self._by_client_id.get(client_id)

    def channels_of(self, client_id: str) -> list[Channel]:
        """The connections whose last heartbeat has this client id."""
        return [channel for channel, its_id in self._id_of.items() if its_id == client_id]

    @property
    def groups(self) -> list[str]:
        """The groups that have a producer."""
        return list(self._groups)

    @property
    def connections(self) -> int:
        """Number of connections with a producer."""
        return len(self._groups_of)
