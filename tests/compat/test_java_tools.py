"""Java's mqadmin and queries against a Gantry cluster: no exception, correct output."""

from collections.abc import Callable
from pathlib import Path

from tests.compat.broker_state import (
    create_topic,
    eventually,
    has_offset,
    stored_count,
    wait_for_producer,
)
from tests.compat.conftest import Maker
from tests.compat.foreign import ForeignClient
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]


class MqAdmin:
    """Runs mqadmin commands sequentially in a Java process."""

    def __init__(self, client: ForeignClient, namesrv: str) -> None:
        self._client = client
        self._namesrv = namesrv
        self._commands_sent = 0

    def __call__(self, *arguments: str, may_fail: bool = False) -> str:
        """Return the output of a command; an exception fails the test unless `may_fail`.

        Without arguments mqadmin prints the list of all commands.
        """
        self._commands_sent += 1
        command = [*arguments, "-n", self._namesrv] if arguments else []
        self._client.command("mqadmin", arguments=command)
        printed: str = self._client.wait_for("printed", self._commands_sent)[-1]["text"]
        assert may_fail or "Exception" not in printed, f"{arguments}: {printed}"
        return printed


def test_commands_that_read(
    shared_cluster: Cluster, start_clients: StartClients, tmp_path: Path
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    broker = ("-b", shared_cluster.broker_addr)
    group, topic = "CG-tools", create_topic(shared_cluster, "Tools", queues=2)
    consumer = clients.consumer(group, topic)
    producer = clients.producer("PG-tools")
    sent = producer.send(topic, [{"body": f"{n}", "keys": f"tool-{n}"} for n in range(10)])
    consumer.wait_for("message", 10)

    assert shared_cluster.broker_addr in mqadmin("clusterList")
    assert "DefaultCluster" in mqadmin("clusterList", "-m")
    assert topic in mqadmin("topicList").split()
    assert group in mqadmin("topicList", "-c")
    status = mqadmin("topicStatus", "-t", topic)
    assert len([line for line in status.splitlines() if not line.startswith("#")]) == 2
    assert '"readQueueNums":2' in mqadmin("topicRoute", "-t", topic)
    assert mqadmin("topicClusterList", "-t", topic).strip() == "DefaultCluster"
    assert group in mqadmin("statsAll", "-t", topic)
    eventually(lambda: has_offset(shared_cluster, group, topic), "a committed offset", 90)
    assert topic in mqadmin("consumerProgress", "-g", group)
    assert group in mqadmin("consumerProgress")
    assert "JAVA" in mqadmin("consumerConnection", "-g", group)
    assert "Rebalance OK" in mqadmin("consumerStatus", "-g", group)
    wait_for_producer(shared_cluster, "PG-tools")
    assert "JAVA" in mqadmin("producerConnection", "-g", "PG-tools", "-t", topic)
    assert "PG-tools" in mqadmin("producer", *broker)
    assert group in mqadmin("brokerConsumeStats", *broker)
    assert "brokerVersionDesc" in mqadmin("brokerStatus", *broker)
    assert "listenPort" in mqadmin("getNamesrvConfig")
    for export in ("exportConfigs", "exportMetadata", "exportMetrics"):
        assert "success" in mqadmin(export, "-c", "DefaultCluster", "-f", str(tmp_path))

    assert "tool-3" in mqadmin("queryMsgByUniqueKey", "-t", topic, "-i", sent[3]["id"])
    assert "tool-3" in mqadmin("queryMsgById", "-i", sent[3]["offsetId"])
    assert sent[4]["id"] in mqadmin("queryMsgByKey", "-t", topic, "-k", "tool-4")
    position = ("-b", "broker-a", "-i", "0", "-o", "0")
    assert "CommitLog Offset" in mqadmin("queryMsgByOffset", "-t", topic, *position)
    assert "tagsCode=0" in mqadmin("queryCq", "-t", topic, "-q", "0", "-i", "0", "-c", "1", *broker)
    assert mqadmin("printMsg", "-t", topic).count("MSGID") == 10


def test_commands_that_write(shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    broker = ("-b", shared_cluster.broker_addr)
    group, topic = "CG-made", "Made"
    assert "success" in mqadmin("updateTopic", *broker, "-t", topic, "-r", "3", "-w", "3")
    assert '"writeQueueNums":3' in mqadmin("topicRoute", "-t", topic)
    assert "SEND_OK" in mqadmin("sendMessage", "-t", topic, "-p", "hello")
    assert "true" in mqadmin("checkMsgSendRT", "-t", topic, "-a", "2")
    assert stored_count(shared_cluster, topic) == 3
    assert "success" in mqadmin("updateTopicPerm", *broker, "-t", topic, "-p", "4")
    assert "success" in mqadmin("updateSubGroup", *broker, "-g", group, "-r", "3")
    assert "retryMaxTimes" in mqadmin("getConsumerConfig", "-g", group)
    assert "success" in mqadmin("deleteSubGroup", *broker, "-g", group, "-r", "true")
    assert "success" in mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", topic)
    assert topic not in mqadmin("topicList").split()
    assert "success" in mqadmin("updateKvConfig", "-s", "NS", "-k", "k", "-v", "v")
    assert "success" in mqadmin("deleteKvConfig", "-s", "NS", "-k", "k")
    change = ("-k", "flushIntervalCommitLog", "-v", "501")
    assert "success" in mqadmin("updateBrokerConfig", *broker, *change)
    assert "501" in mqadmin("getBrokerConfig", *broker)
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        assert "success" in mqadmin(command, *broker)


def test_a_broker_without_write_permission_gets_no_messages(
    cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java", cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), cluster.namesrv_addr)
    topic = create_topic(cluster, "Wiped", queues=1)
    assert "OK" in mqadmin("wipeWritePerm", "-b", "broker-a")
    producer = clients.producer("PG-wiped")
    producer.command("send", topic=topic, messages=[{"body": "refused"}])
    eventually(lambda: bool(producer.of("error")), "a refusal", 90)
    assert stored_count(cluster, topic) == 0
    assert "OK" in mqadmin("addWritePerm", "-b", "broker-a")
    clients.producer("PG-added").send(topic, [{"body": "stored"}])
    assert stored_count(cluster, topic) == 1


def test_a_group_after_an_offset_reset_consumes_again(
    shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.admin(), shared_cluster.namesrv_addr)
    group, topic = "CG-reset", create_topic(shared_cluster, "Reset", queues=1)
    clients.producer("PG-reset").send(topic, [{"body": f"{n}"} for n in range(5)])
    first = clients.consumer(group, topic)
    first.wait_for("message", 5)
    first.stop()  # commits the offset
    assert "#rollbackOffset" in mqadmin("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0")
    again = clients.consumer(group, topic).wait_for("message", 5)
    assert sorted(each["body"] for each in again) == ["0", "1", "2", "3", "4"]


def test_queries_by_key_and_by_id(shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, "Queries", queues=1)
    producer = clients.producer("PG-queries")
    sent = producer.send(topic, [{"body": f"{n}", "keys": f"query-{n}"} for n in range(5)])
    producer.command("query", topic=topic, key="query-2")
    producer.wait_for("queried")
    assert [each["body"] for each in producer.messages] == ["2"]
    producer.command("view", topic=topic, id=sent[3]["offsetId"])
    assert producer.wait_for("message", 2)[1]["body"] == "3"
    producer.command("view", topic=topic, id=sent[4]["id"])
    assert producer.wait_for("message", 3)[2]["body"] == "4"
