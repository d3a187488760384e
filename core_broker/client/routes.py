"""Reading a topic's route: writable queues and broker addresses. Pure.

Compatible with RocketMQ's MQClientInstance.topicRouteData2TopicPublishInfo. The queues for
consumers are in `core_broker.allocation`.
"""

import msgspec

from core_broker.allocation import QUEUES_OF_BROKER_MAX
from core_broker.remoting.bodies import MASTER_ID, MessageQueue, TopicRouteData

#: Maximum queues of one entry of an order configuration; bounds the memory for a wrong entry in
#: the name server's KV configuration.
QUEUES_OF_ORDER_ENTRY_MAX = 1024
VIP_PORT_BELOW = 2


def publish_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues for producers; an order configuration overrides the queue data of brokers."""
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


def lacks_masters(route: TopicRouteData) -> bool:
    """Whether brokers accept messages of the topic, and none of these brokers has a master now."""
    by_name = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
    writable = [data.broker_name for data in route.queue_datas if data.is_writable]
    found = [by_name[name] for name in writable if name in by_name]
    return bool(found) and not any(MASTER_ID in addrs for addrs in found)


def route_for_new_topic(template: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """The expected route of a topic after its auto-creation from the template topic."""
    datas = []
    for data in template.queue_datas:
        nums = min(queue_nums, data.read_queue_nums)
        datas.append(msgspec.structs.replace(data, read_queue_nums=nums, write_queue_nums=nums))
    return msgspec.structs.replace(template, queue_datas=datas)


def broker_addr(addrs: dict[int, str], broker_id: int = MASTER_ID) -> str | None:
    """The address of the broker with the id; for a missing id, the address of the lowest id."""
    if broker_id in addrs:
        return addrs[broker_id]
    return addrs[min(addrs)] if addrs else None


def vip_addr(addr: str) -> str:
    """The address of a broker's second listener (port - 2), used for sends and not for pulls."""
    host, _, port = addr.rpartition(":")
    return f"{host}:{int(port) - VIP_PORT_BELOW}"


def _ordered_queues(topic: str, order_conf: str) -> list[MessageQueue]:
    """Read ``brokerA:8;brokerB:4``; malformed entries give no queues."""
    queues = []
    for entry in order_conf.split(";"):
        broker_name, _, nums = entry.strip().partition(":")
        if broker_name and nums.isascii() and nums.isdigit():
            queues += [
                MessageQueue(topic=topic, broker_name=broker_name, queue_id=queue_id)
                for queue_id in range(min(int(nums), QUEUES_OF_ORDER_ENTRY_MAX))
            ]
    return queues
