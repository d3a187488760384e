"""Tools and consumers of RocketMQ 5.3.3 whose requests RocketMQ 4.9.8 does not have."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from tests.compat.broker_state import create_topic, eventually, lag, stored_count
from tests.compat.conftest import Maker
from tests.compat.test_java_tools import MqAdmin
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]

CLUSTER = ("-c", "DefaultCluster")


def rows(printed: str, first: str) -> list[list[str]]:
    """The words of the printed lines that begin with a word."""
    lines = [line.split() for line in printed.splitlines()]
    return [line for line in lines if line and line[0] == first]


def offsets_printed(printed: str) -> dict[int, int]:
    """Queue ids and new offsets in the output of resetOffsetByTime."""
    return {int(queue_id): int(offset) for _, queue_id, offset in rows(printed, "broker-a")}


def test_topics_and_groups(
    shared_cluster: Cluster, start_clients: StartClients, tmp_path: Path
) -> None:
    clients = start_clients("java5", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    topics = [
        {"topicName": f"Listed{n}", "readQueueNums": n, "writeQueueNums": n, "perm": 6}
        for n in (1, 2)
    ]
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    printed = mqadmin("updateTopicList", *CLUSTER, "-f", str(tmp_path / "topics.json"))
    assert f"submit batch of topic config to {shared_cluster.broker_addr} success" in printed
    status = mqadmin("topicStatus", "-t", "Listed2")
    assert [line[1:4] for line in rows(status, "broker-a")] == [["0", "0", "0"], ["1", "0", "0"]]

    groups = [{"groupName": f"CG-listed{n}", "retryMaxTimes": n} for n in (1, 2)]
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    printed = mqadmin("updateSubGroupList", *CLUSTER, "-f", str(tmp_path / "groups.json"))
    assert f"group config to {shared_cluster.broker_addr} success" in printed
    config = mqadmin("getConsumerConfig", "-g", "CG-listed2")
    assert re.search(r"retryMaxTimes\s*=\s*2\b", config), config

    printed = mqadmin("haStatus", "-b", shared_cluster.broker_addr)
    assert re.search(r"MasterAddr\s*" + re.escape(shared_cluster.broker_addr), printed), printed
    assert re.search(r"SlaveNum\s*0", printed), printed


def test_an_idle_group(shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients("java5", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    # Names of this run: a repetition on the shared cluster begins without messages and offsets.
    run = uuid4().hex[:8]
    group, topic = f"CG-idle{run}", create_topic(shared_cluster, f"Idle{run}", queues=1)
    producer = clients.producer("PG-idle5")
    producer.send(topic, [{"body": f"{n}"} for n in range(5)])
    consumer = clients.consumer(group, topic)
    consumer.wait_for("message", 5)
    # The client commits a message after its listener has returned.
    eventually(lambda: lag(shared_cluster, group, topic) == 0, "a commit of all messages", 60)
    consumer.stop()
    producer.send(topic, [{"body": f"{n}"} for n in range(3)])

    progress = mqadmin("consumerProgress", "-g", group)
    assert "Consume Diff Total: 3" in progress, progress
    assert "success" in mqadmin(
        "cloneGroupOffset", "-s", group, "-d", f"CG-clone{run}", "-t", topic
    )
    assert lag(shared_cluster, f"CG-clone{run}", topic) == 3

    def reset(*arguments: str) -> dict[int, int]:
        return offsets_printed(mqadmin("resetOffsetByTime", "-g", group, "-t", topic, *arguments))

    assert reset("-s", "0") == {0: 0}
    assert lag(shared_cluster, group, topic) == 8
    assert reset("-s", "now", "-f", "false") == {0: 0}
    assert reset("-s", "-1") == {0: 8}
    assert lag(shared_cluster, group, topic) == 0
    broker = ("-b", shared_cluster.broker_addr)
    printed = mqadmin(
        "resetOffsetByTime", "-g", group, "-t", topic, "-s", "0", *broker, "-q", "0", "-o", "6"
    )
    assert "reset consumer offset to 6" in printed
    assert lag(shared_cluster, group, topic) == 2

    again = clients.consumer(group, topic)
    again.wait_for("message", 2)
    assert sorted(each["body"] for each in again.messages) == ["1", "2"]


def test_consumers_whose_queues_the_broker_assigns(
    shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java5", shared_cluster.namesrv_addr)
    run = uuid4().hex[:8]
    group, topic = f"CG-assigned{run}", create_topic(shared_cluster, f"Assigned{run}", queues=4)
    consumers = [clients.consumer(group, topic, assigned=True) for _ in range(2)]
    producer = clients.producer("PG-assigned")

    def both_receive() -> bool:
        producer.send(topic, [{"body": "x"} for _ in range(8)])
        return all(consumer.messages for consumer in consumers)

    eventually(both_receive, "messages at both consumers", 90)
    eventually(lambda: lag(shared_cluster, group, topic) == 0, "no lag", 60)
    received = {each["id"] for consumer in consumers for each in consumer.messages}
    assert len(received) == stored_count(shared_cluster, topic)
