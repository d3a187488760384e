"""All commands of Java's mqadmin 4.9.8, run once against a Gantry broker, in one process.

The output of a command must have the expected text and no exception. `test_java_tools.py` checks
the output of some commands in detail.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from core_broker.processors.access import SWITCHED_OFF
from tests.compat.broker_state import (
    by_key,
    create_topic,
    eventually,
    has_offset,
    lag,
    wait_for_producer,
)
from tests.compat.conftest import Maker
from tests.compat.foreign import Event
from tests.compat.test_java_tools import MqAdmin
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]
Row = tuple[str, tuple[str, ...], str]

TOPIC, GROUP, PRODUCERS = "Commands", "CG-commands", "PG-commands"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
#: Commands that never end; other rows cover the requests of both.
ENDLESS = {"clusterRT", "startMonitoring"}
#: Commands for access control, which a broker without access control refuses.
NEEDS_ACCESS_CONTROL = {
    "updateAclConfig",
    "deleteAclConfig",
    "updateGlobalWhiteAddr",
    "clusterAclConfigVersion",
}
_LISTED = re.compile(r"^   (\w+) +\S", re.M)


def about_messages(sent: Event) -> Iterator[Row]:
    """Commands that read or send messages; `sent` is the message to read."""
    position = ("-b", "broker-a", "-i", str(sent["queue"]), "-o", str(sent["offset"]))
    yield "queryMsgById", ("-i", sent["offsetId"]), "command-key"
    yield "queryMsgByUniqueKey", ("-t", TOPIC, "-i", sent["id"]), "command-key"
    yield "queryMsgByKey", ("-t", TOPIC, "-k", "command-key"), sent["id"]
    yield "queryMsgByOffset", ("-t", TOPIC, *position), "command-key"
    yield "queryMsgTraceById", ("-i", sent["id"]), PRODUCERS
    yield "printMsg", ("-t", TOPIC), "MSGID"
    yield "printMsgByQueue", ("-t", TOPIC, "-a", "broker-a", "-i", "0", "-p", "true"), "MSGID"
    yield "consumeMessage", ("-t", TOPIC, *position, "-c", "1"), "MSGID"
    yield "sendMessage", ("-t", TOPIC, "-p", "hello"), "SEND_OK"
    yield "checkMsgSendRT", ("-t", TOPIC, "-a", "2"), "true"
    yield "sendMsgStatus", ("-b", "broker-a", "-s", "10", "-c", "2"), "SEND_OK"


def about_topics(broker: tuple[str, str]) -> Iterator[Row]:
    """Commands about topics and queues."""
    yield "updateTopic", (*broker, "-t", "CommandsMade", "-r", "3", "-w", "3"), "success"
    yield "updateTopicPerm", (*broker, "-t", "CommandsMade", "-p", "4"), "success"
    yield "topicList", (), TOPIC
    yield "topicRoute", ("-t", TOPIC), '"readQueueNums":2'
    yield "topicClusterList", ("-t", TOPIC), "DefaultCluster"
    yield "topicStatus", ("-t", TOPIC), "broker-a"
    yield "statsAll", ("-t", TOPIC), GROUP
    yield "allocateMQ", ("-t", TOPIC, "-i", "ip1,ip2"), '"ip1"'
    yield "queryCq", ("-t", TOPIC, "-q", "0", "-i", "0", "-c", "1", *broker), "tagsCode"
    yield "updateOrderConf", ("-t", TOPIC, "-v", "broker-a:2", "-m", "put"), "success"
    yield "deleteTopic", ("-c", "DefaultCluster", "-t", "CommandsMade"), "success"


def about_groups(broker: tuple[str, str]) -> Iterator[Row]:
    """Commands about groups and their members, while a member is online."""
    yield "updateSubGroup", (*broker, "-g", "CG-made-too", "-r", "3"), "success"
    yield "getConsumerConfig", ("-g", "CG-made-too"), "retryMaxTimes"
    yield "consumerConnection", ("-g", GROUP), "JAVA"
    yield "producerConnection", ("-g", PRODUCERS, "-t", TOPIC), "JAVA"
    yield "producer", broker, PRODUCERS
    yield "consumerProgress", ("-g", GROUP), TOPIC
    yield "consumerStatus", ("-g", GROUP), "Rebalance OK"
    yield "brokerConsumeStats", broker, GROUP
    yield "cloneGroupOffset", ("-s", GROUP, "-d", "CG-cloned", "-t", TOPIC), "success"
    yield "resetOffsetByTime", ("-g", GROUP, "-t", TOPIC, "-s", "now"), "broker-a"
    yield "skipAccumulatedMessage", ("-g", GROUP, "-t", TOPIC), "broker-a"
    yield "deleteSubGroup", (*broker, "-g", "CG-made-too"), "success"


def about_the_cluster(broker: tuple[str, str], folder: Path) -> Iterator[Row]:
    """Commands about brokers, name servers and their settings."""
    yield "clusterList", (), broker[1]
    yield "brokerStatus", broker, "brokerVersionDesc"
    yield "getBrokerConfig", broker, "flushDiskType"
    yield "updateBrokerConfig", (*broker, "-k", "traceOn", "-v", "true"), "success"
    yield "getNamesrvConfig", (), "listenPort"
    yield "updateNamesrvConfig", ("-k", "orderMessageEnable", "-v", "false"), "success"
    yield "updateKvConfig", ("-s", "NS", "-k", "k", "-v", "v"), "success"
    yield "deleteKvConfig", ("-s", "NS", "-k", "k"), "success"
    yield "wipeWritePerm", ("-b", "broker-a"), "OK"
    yield "addWritePerm", ("-b", "broker-a"), "OK"
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        yield command, broker, "success"
    for command in ("exportConfigs", "exportMetadata", "exportMetrics"):
        yield command, ("-c", "DefaultCluster", "-f", str(folder)), "success"


def about_access(broker: tuple[str, str]) -> Iterator[Row]:
    """Commands about access control."""
    yield "updateAclConfig", (*broker, "-a", "rocketmq", "-s", "12345678"), SWITCHED_OFF
    yield "deleteAclConfig", (*broker, "-a", "rocketmq"), SWITCHED_OFF
    yield "updateGlobalWhiteAddr", (*broker, "-g", "10.0.0.*"), SWITCHED_OFF
    yield "clusterAclConfigVersion", broker, SWITCHED_OFF


def test_every_command(
    shared_cluster: Cluster, start_clients: StartClients, tmp_path: Path
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    create_topic(shared_cluster, TOPIC, queues=2)
    consumer = clients.consumer(GROUP, TOPIC)
    producer = clients.producer(PRODUCERS, trace=True)
    sent = producer.send(TOPIC, [{"body": f"{n}", "keys": "command-key"} for n in range(4)])[0]
    consumer.wait_for("message", 4)
    eventually(lambda: has_offset(shared_cluster, GROUP, TOPIC), "a committed offset", 60)
    wait_for_producer(shared_cluster, PRODUCERS)
    eventually(lambda: bool(by_key(shared_cluster, TRACE_TOPIC, sent["id"])), "a trace", 60)

    broker = ("-b", shared_cluster.broker_addr)
    rows = [
        *about_messages(sent),
        *about_topics(broker),
        *about_groups(broker),
        *about_the_cluster(broker, tmp_path),
        *about_access(broker),
    ]
    wrong = []
    for command, arguments, expected in rows:
        printed = mqadmin(command, *arguments, may_fail=command in NEEDS_ACCESS_CONTROL)
        if expected not in printed:
            wrong.append(f"{command}: no {expected!r} in {printed!r}")
    assert not wrong
    commands = set(_LISTED.findall(mqadmin()))
    assert len(commands) > 50
    assert commands == {command for command, _, _ in rows} | ENDLESS


def test_statistics_of_a_group_with_lag(
    shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    group, topic = "CG-lagging", create_topic(shared_cluster, "Lagging", queues=2)
    producer = clients.producer("PG-lagging")
    producer.send(topic, [{"body": f"{n}"} for n in range(10)])
    consumer = clients.consumer(group, topic)
    consumer.wait_for("message", 10)
    consumer.stop()  # commits the offsets of all consumed messages
    producer.send(topic, [{"body": f"{n}"} for n in range(6)])

    rows = [row.split() for row in mqadmin("topicStatus", "-t", topic).splitlines()]
    extents = [(int(low), int(high)) for name, _, low, high, *_ in rows if name == "broker-a"]
    assert [low for low, _ in extents] == [0, 0]
    assert sum(high for _, high in extents) == 16
    progress = mqadmin("consumerProgress", "-g", group)
    assert re.search(r"Consume TPS: \d+\.\d+", progress), progress
    behind = lag(shared_cluster, group, topic)
    assert 6 <= behind <= 16
    assert f"Diff Total: {behind}" in progress, progress
    statistics = next(
        row.split()
        for row in mqadmin("statsAll", "-t", topic).splitlines()
        if row.startswith(topic)
    )
    assert statistics[1:3] == [group, f"{behind}"]
    broker = ("-b", shared_cluster.broker_addr)
    lags = [row for row in mqadmin("brokerConsumeStats", *broker).splitlines() if topic in row]
    assert sum(int(row.split()[6]) for row in lags if group in row) == behind, lags
    status = dict(
        line.replace(" ", "").split(":", 1)
        for line in mqadmin("brokerStatus", *broker).splitlines()
        if ":" in line
    )
    assert int(status["msgPutTotalTodayNow"]) >= 16
    assert int(status["commitLogMaxOffset"]) > 0
    assert status["brokerVersionDesc"] == "V4_9_8"
