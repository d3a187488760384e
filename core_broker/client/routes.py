"""What a topic's route means to a client: where it may send, read, and find a broker. Pure.

Compatible with RocketMQ's MQClientInstance.topicRouteData2TopicPublishInfo and its twin for
subscribing.
"""

import msgspec

from core_broker.remoting.bodies import MASTER_ID, MessageQueue, TopicRouteData

#: What a route may claim of one broker; more would only fill our memory.
QUEUES_OF_BROKER_MAX = 65_536
#: The text comes from the name server's configuration; a slip there must not fill our memory.
QUEUES_OF_ORDER_ENTRY_MAX = 1024
VIP_PORT_BELOW = 2


def publish_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues a producer may use; an order configuration, when there is one, decides alone."""
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    with_master = {
        broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs
    }
    return [
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.is_writable and data.broker_name in with_master
        for queue_id in range(min(data.write_queue_nums, QUEUES_OF_BROKER_MAX))
    ]


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues a consumer may read."""
    return [
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.is_readable
        for queue_id in range(min(data.read_queue_nums, QUEUES_OF_BROKER_MAX))
    ]


def route_for_new_topic(template: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """The route a topic will get when the broker creates it from the template on first use."""
    datas = []
    for data in template.queue_datas:
        nums = min(queue_nums, data.read_queue_nums)
        datas.append(msgspec.structs.replace(data, read_queue_nums=nums, write_queue_nums=nums))
    return msgspec.structs.replace(template, queue_datas=datas)


def broker_addr(addrs: dict[int, str], broker_id: int = MASTER_ID) -> str | None:
    """The address of one broker of a set: the wanted id, else any, the lowest id first."""
    if broker_id in addrs:
        return addrs[broker_id]
    return addrs[min(addrs)] if addrs else None


def vip_addr(addr: str) -> str:
    """The second listener of a broker, two below its own port; it has no pulls."""
    host, _, port = addr.rpartition(":")
    return f"{host}:{int(port) - VIP_PORT_BELOW}"


def _ordered_queues(topic: str, order_conf: str) -> list[MessageQueue]:
    """``brokerA:8;brokerB:4``; an entry that does not parse gives no queues."""
    queues = []
    for entry in order_conf.split(";"):
        broker_name, _, nums = entry.strip().partition(":")
        if broker_name and nums.isascii() and nums.isdigit():
            queues += [
                MessageQueue(topic=topic, broker_name=broker_name, queue_id=queue_id)
                for queue_id in range(min(int(nums), QUEUES_OF_ORDER_ENTRY_MAX))
            ]
    return queues
