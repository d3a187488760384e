"""Allocation strategies: distribute the queues of a topic over the clients of a group.

Compatible with RocketMQ's AllocateMessageQueueStrategy classes of equal names. The two strategies
that brokers know, too, and the rules for all strategies are in `core_broker.allocation`. All
functions are pure.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import md5

from core_broker.allocation import (
    AllocateStrategy,
    averagely,
    averagely_by_circle,
    sorted_client_ids,
    sorted_queues,
)
from core_broker.errors import ClientError
from core_broker.remoting.bodies import MessageQueue

__all__ = [
    "AllocateStrategy",
    "averagely",
    "averagely_by_circle",
    "by_configuration",
    "by_machine_room",
    "consistent_hash",
    "machine_room_nearby",
    "sorted_client_ids",
    "sorted_queues",
]

VIRTUAL_NODES_DEFAULT = 10


def by_configuration(own_queues: Iterable[MessageQueue]) -> AllocateStrategy:
    """CONFIG: the client takes the configured queues, independent of the members."""
    fixed = list(own_queues)

    def allocate(
        _client_id: str, _queues: Sequence[MessageQueue], _client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return list(fixed)

    return allocate


def by_machine_room(rooms: Collection[str]) -> AllocateStrategy:
    """MACHINE_ROOM: only queues of brokers named ``room@name`` in the given rooms."""

    def allocate(
        client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        room_queues = [queue for queue in queues if _room_in_name(queue) in rooms]
        index, size = client_ids.index(client_id), len(room_queues) // len(client_ids)
        own = room_queues[index * size : (index + 1) * size]
        # The remainder is at the end of the list, unlike in AVG.
        rest = room_queues[size * len(client_ids) :]
        return own + rest[index : index + 1]

    return allocate


def machine_room_nearby(
    inner: AllocateStrategy,
    room_of_queue: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
) -> AllocateStrategy:
    """MACHINE_ROOM_NEARBY: a room's queues go to the room's clients; queues of a room without
    clients go to all clients."""

    def allocate(
        client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        clients_by_room: dict[str, list[str]] = defaultdict(list)
        for other in client_ids:
            clients_by_room[room_of_client(other)].append(other)
        queues_by_room: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            queues_by_room[room_of_queue(queue)].append(queue)
        own_room = room_of_client(client_id)
        result = inner(client_id, queues_by_room.pop(own_room, []), clients_by_room[own_room])
        for room in sorted(queues_by_room):
            if room not in clients_by_room:
                result += inner(client_id, queues_by_room[room], client_ids)
        return result

    return allocate


def consistent_hash(virtual_nodes: int = VIRTUAL_NODES_DEFAULT) -> AllocateStrategy:
    """CONSISTENT_HASH: a joining or leaving client moves few queues."""
    if virtual_nodes < 1:
        raise ClientError("A consistent hash needs at least one virtual node per client.")

    def allocate(
        client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        ring = {
            _ring_hash(f"{other}-{replica}"): other
            for other in client_ids
            for replica in range(virtual_nodes)
        }
        points = sorted(ring)

        def owner(queue: MessageQueue) -> str:
            index = bisect_left(points, _ring_hash(_java_text(queue)))
            return ring[points[index % len(points)]]

        return [queue for queue in queues if owner(queue) == client_id]

    return allocate


def _room_in_name(queue: MessageQueue) -> str | None:
    room, at, name = queue.broker_name.partition("@")
    return room if at and name and "@" not in name else None


def _java_text(queue: MessageQueue) -> str:
    """Java's MessageQueue.toString(), the hashed text of a queue."""
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )


def _ring_hash(key: str) -> int:
    # Like Java, "?" for a lone surrogate: a malformed client id must not break the allocation.
    digest = md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")
