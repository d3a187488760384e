"""Routes: writable queues, readable queues, addresses, auto-created topics."""

from core_broker.allocation import subscribe_queues
from core_broker.client.queue_choice import TOPICS_REMEMBERED_MAX, QueueChooser
from core_broker.client.routes import (
    QUEUES_OF_ORDER_ENTRY_MAX,
    broker_addr,
    lacks_masters,
    publish_queues,
    route_for_new_topic,
)
from core_broker.remoting.bodies import BrokerData, MessageQueue, QueueData, TopicRouteData


def route(**changes: object) -> TopicRouteData:
    data = TopicRouteData(
        queue_datas=[
            QueueData(broker_name="b", read_queue_nums=3, write_queue_nums=2, perm=6),
            QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=1, perm=6),
        ],
        broker_datas=[
            BrokerData(broker_name="a", broker_addrs={0: "h:1"}),
            BrokerData(broker_name="b", broker_addrs={0: "h:2", 1: "h:3"}),
        ],
    )
    for name, value in changes.items():
        setattr(data, name, value)
    return data


def shown(queues: list[MessageQueue]) -> list[str]:
    return [f"{queue.broker_name}{queue.queue_id}" for queue in queues]


def test_write_and_read_queues_differ() -> None:
    assert shown(publish_queues("T", route())) == ["a0", "b0", "b1"]
    assert shown(subscribe_queues("T", route())) == ["a0", "b0", "b1", "b2"]


def test_the_permission_decides() -> None:
    data = route()
    data.queue_datas[0].perm = 4
    assert shown(publish_queues("T", data)) == ["a0"]
    data.queue_datas[0].perm = 2
    assert shown(subscribe_queues("T", data)) == ["a0"]
    assert shown(publish_queues("T", data)) == ["a0", "b0", "b1"]


def test_a_broker_without_master_takes_no_messages_but_is_read() -> None:
    data = route()
    data.broker_datas[1].broker_addrs = {1: "h:3"}
    assert shown(publish_queues("T", data)) == ["a0"]
    assert shown(subscribe_queues("T", data)) == ["a0", "b0", "b1", "b2"]


def test_a_topic_lacks_masters_when_none_of_its_writable_brokers_has_one() -> None:
    data = route()
    assert not lacks_masters(data)
    data.broker_datas[1].broker_addrs = {1: "h:3"}
    assert not lacks_masters(data), "a has one"
    data.broker_datas[0].broker_addrs = {1: "h:1"}
    assert lacks_masters(data)
    for each in data.queue_datas:
        each.perm = 4
    assert not lacks_masters(data), "nobody waits for a topic that takes no messages"
    assert not lacks_masters(TopicRouteData())


def test_an_order_configuration_replaces_the_list() -> None:
    assert shown(publish_queues("T", route(order_topic_conf="b:2;a:1"))) == ["b0", "b1", "a0"]
    assert shown(publish_queues("T", route(order_topic_conf="b:x;:3;nonsense"))) == []
    huge = publish_queues("T", route(order_topic_conf="b:99999999999"))
    assert len(huge) == QUEUES_OF_ORDER_ENTRY_MAX


def test_a_new_topic_gets_as_many_queues_as_client_and_template_allow() -> None:
    assert [it.write_queue_nums for it in route_for_new_topic(route(), 2).queue_datas] == [2, 1]
    assert [it.read_queue_nums for it in route_for_new_topic(route(), 8).queue_datas] == [3, 1]


def test_the_wanted_broker_or_any_other() -> None:
    assert broker_addr({0: "m", 1: "s"}, 1) == "s"
    assert broker_addr({2: "t", 1: "s"}, 0) == "s"
    assert broker_addr({}, 0) is None


def test_queues_are_used_in_turn_topic_by_topic() -> None:
    chooser, queues = QueueChooser(), publish_queues("T", route())
    other_queues = publish_queues("U", route())
    chosen = []
    for _ in range(6):
        chosen.append(chooser.choose("T", queues))
        chooser.choose("U", other_queues)
    assert sorted(shown(chosen[:3])) == sorted(shown(chosen[3:])) == ["a0", "b0", "b1"]


def test_a_retry_avoids_the_broker_that_failed_if_there_is_another() -> None:
    chooser, queues = QueueChooser(), publish_queues("T", route())
    assert {chooser.choose("T", queues, "b").broker_name for _ in range(9)} == {"a"}
    only = [queue for queue in queues if queue.broker_name == "b"]
    assert {chooser.choose("T", only, "b").broker_name for _ in range(4)} == {"b"}


def test_the_chooser_forgets_before_it_grows_without_end() -> None:
    chooser, queues = QueueChooser(), publish_queues("T", route())
    for number in range(TOPICS_REMEMBERED_MAX * 2):
        chooser.choose(f"T{number}", queues)
    assert len(chooser._next) <= TOPICS_REMEMBERED_MAX
