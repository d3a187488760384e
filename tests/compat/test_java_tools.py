"""Java's own admin tool and queries against a cluster of ours: no exception, the right answers."""

from collections.abc import Callable

from tests.compat.conftest import Maker
from tests.compat.foreign import ForeignClient
from tests.compat.looking import create_topic, stored_count
from tests.support.cluster import Cluster

StartClients = Callable[[str, str], Maker]


class MqAdmin:
    """Runs commands of mqadmin, one after another, in one Java process."""

    def __init__(self, client: ForeignClient, namesrv: str) -> None:
        self._client = client
        self._namesrv = namesrv
        self._asked = 0

    def __call__(self, *arguments: str) -> str:
        """Return what a command prints; an exception in it fails the test."""
        self._asked += 1
        self._client.tell("mqadmin", arguments=[*arguments, "-n", self._namesrv])
        printed: str = self._client.wait_for("printed", self._asked)[-1]["text"]
        assert "Exception" not in printed, printed
        return printed


def test_commands_that_look_at_the_cluster(
    shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.start(), shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, "Tools", queues=2)
    consumer = clients.consumer("CG-tools", topic)
    producer = clients.producer("PG-tools")
    sent = producer.send(topic, [{"body": f"{n}", "keys": f"tool-{n}"} for n in range(10)])
    consumer.wait_for("message", 10)

    assert shared_cluster.broker_addr in mqadmin("clusterList")
    assert "DefaultCluster" in mqadmin("clusterList", "-m")
    assert topic in mqadmin("topicList").split()
    status = mqadmin("topicStatus", "-t", topic)
    assert len([line for line in status.splitlines() if not line.startswith("#")]) == 2
    assert '"readQueueNums":2' in mqadmin("topicRoute", "-t", topic)
    assert topic in mqadmin("consumerProgress", "-g", "CG-tools")
    assert "CG-tools" in mqadmin("consumerProgress")
    assert "JAVA" in mqadmin("consumerConnection", "-g", "CG-tools")
    found = mqadmin("queryMsgByUniqueKey", "-t", topic, "-i", sent[3]["id"])
    assert "tool-3" in found
    assert sent[4]["id"] in mqadmin("queryMsgByKey", "-t", topic, "-k", "tool-4")
    assert "brokerVersionDesc" in mqadmin("brokerStatus", "-b", shared_cluster.broker_addr)
    assert "listenPort" in mqadmin("getNamesrvConfig")


def test_commands_that_change_something(
    shared_cluster: Cluster, start_clients: StartClients
) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    mqadmin = MqAdmin(clients.start(), shared_cluster.namesrv_addr)
    broker = ("-b", shared_cluster.broker_addr)
    assert "success" in mqadmin("updateTopic", *broker, "-t", "Made", "-r", "3", "-w", "3")
    assert '"writeQueueNums":3' in mqadmin("topicRoute", "-t", "Made")
    assert "SEND_OK" in mqadmin("sendMessage", "-t", "Made", "-p", "hello")
    assert stored_count(shared_cluster, "Made") == 1
    assert "success" in mqadmin("updateSubGroup", *broker, "-g", "CG-made", "-r", "3")
    assert "success" in mqadmin("updateKvConfig", "-s", "NS", "-k", "k", "-v", "v")
    assert "success" in mqadmin("deleteKvConfig", "-s", "NS", "-k", "k")
    change = ("-k", "flushIntervalCommitLog", "-v", "501")
    assert "success" in mqadmin("updateBrokerConfig", *broker, *change)
    assert "501" in mqadmin("getBrokerConfig", *broker)
    assert "success" in mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", "Made")
    assert "Made" not in mqadmin("topicList").split()


def test_queries_by_key_and_by_id(shared_cluster: Cluster, start_clients: StartClients) -> None:
    clients = start_clients("java", shared_cluster.namesrv_addr)
    topic = create_topic(shared_cluster, "Queries", queues=1)
    producer = clients.producer("PG-queries")
    sent = producer.send(topic, [{"body": f"{n}", "keys": f"query-{n}"} for n in range(5)])
    producer.tell("query", topic=topic, key="query-2")
    producer.wait_for("queried")
    assert [each["body"] for each in producer.messages] == ["2"]
    producer.tell("view", topic=topic, id=sent[3]["offsetId"])
    assert producer.wait_for("message", 2)[1]["body"] == "3"
    producer.tell("view", topic=topic, id=sent[4]["id"])
    assert producer.wait_for("message", 3)[2]["body"] == "4"
