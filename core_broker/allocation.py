"""The queues of a topic for consumers, and their distribution over the clients of a group. Pure.

Every member of a group calls an identical function on identical sorted lists, so members need no
coordination:

    queues   by topic, broker name, queue id
    clients  by client id, in Java's string order

A client missing in the list gets no queues. Compatible with RocketMQ's
AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle and
topicRouteData2TopicSubscribeInfo. The client has further strategies in `consumer/allocate.py`.
"""

from collections.abc import Callable, Iterable, Sequence

from core_broker.remoting.bodies import MessageQueue, TopicRouteData

#: (client id, sorted queues, sorted client ids) -> the client's queues.
AllocateStrategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]

#: Maximum queues of one broker in a route; bounds the memory for a corrupt answer.
QUEUES_OF_BROKER_MAX = 65_536


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues for consumers."""
    return [
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.is_readable
        for queue_id in range(min(data.read_queue_nums, QUEUES_OF_BROKER_MAX))
    ]


def sorted_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    return sorted(queues)


def sorted_client_ids(client_ids: Iterable[str]) -> list[str]:
    """Sort by UTF-16 units like Java; beyond the first plane the order differs from code points."""
    return sorted(client_ids, key=lambda client_id: client_id.encode("utf-16-be", "surrogatepass"))


def averagely(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """AVG: one run of neighbouring queues per client; the first clients take the remainder."""
    if client_id not in client_ids:
        return []
    index = client_ids.index(client_id)
    size, remainder = divmod(len(queues), len(client_ids))
    start = index * size + min(index, remainder)
    return list(queues[start : start + size + (index < remainder)])


def averagely_by_circle(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """AVG_BY_CIRCLE: round robin over the clients."""
    if client_id not in client_ids:
        return []
    return list(queues[client_ids.index(client_id) :: len(client_ids)])
