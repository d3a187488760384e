"""Effects of mqadmin's commands on a cluster, and error texts of refused commands."""

import asyncio
import base64
import itertools
import json
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import AdminClient, Message, Producer
from core_broker.message.properties import PROPERTY_UNIQ_KEY
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.client.mqadmin_runs import Mqadmin, OnlineConsumer, wait_until
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import Cluster
from tests.support.scripted_peer import ScriptedPeer

_numbers = itertools.count(1)
_run = secrets.token_hex(3)


@pytest.fixture
def mqadmin(quick_cluster: ClusterAddrs) -> Mqadmin:
    return Mqadmin(quick_cluster.namesrv_addr)


@pytest.fixture
def broker(quick_cluster: ClusterAddrs) -> str:
    return quick_cluster.broker_addr


@pytest.fixture
def name() -> str:
    """A topic or group name unique to the test."""
    return f"effect-{_run}-{next(_numbers)}"


@pytest.fixture
def topic(mqadmin: Mqadmin, broker: str, name: str) -> str:
    """A topic of one queue with three messages."""
    mqadmin("updateTopic", "-b", broker, "-t", name, "-r", "1", "-w", "1")
    for body in ("one", "two", "three"):
        mqadmin("sendMessage", "-t", name, "-p", body, "-c", f"Tag{body}")
    return name


@pytest.fixture(autouse=True)
def files_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def offset_of(mqadmin: Mqadmin, group: str, topic: str) -> int:
    """Return the group's consumer offset, from the dry run of a reset."""
    options = ("-g", group, "-t", topic, "-s", "0", "--dry-run")
    (queue,) = mqadmin.document("resetOffsetByTimeOld", *options)["queues"]
    offset: int = queue["consumerOffset"]
    return offset


def test_life_cycle_of_a_topic(mqadmin: Mqadmin, broker: str, name: str) -> None:
    topic_options = ("-b", broker, "-t", name, "-r", "3", "-w", "2", "-o", "true", "-u", "true")
    assert mqadmin.document("updateTopic", *topic_options)["orderConf"] == "broker-a:2"
    (queues,) = mqadmin.document("topicRoute", "-t", name)["queueDatas"]
    assert (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (3, 2, 6)
    assert queues["topicSysFlag"] == 1
    assert mqadmin.document("updateOrderConf", "-t", name, "-m", "get")["orderConf"] == "broker-a:2"
    mqadmin("updateTopicPerm", "-c", "DefaultCluster", "-t", name, "-p", "4")
    (queues,) = mqadmin.document("topicRoute", "-t", name)["queueDatas"]
    assert (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (3, 2, 4)
    assert mqadmin.lines("deleteTopic", "-c", "DefaultCluster", "-t", name, "--dry-run") == [
        f"[dry run] delete topic [{name}] from cluster [DefaultCluster] success.",
        f"[dry run] delete topic [{name}] from NameServer success.",
    ]
    assert name in mqadmin.lines("topicList")
    mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", name)
    assert name not in mqadmin.lines("topicList")
    mqadmin("updateOrderConf", "-t", name, "-m", "delete")


def test_life_cycle_of_a_group(mqadmin: Mqadmin, broker: str, name: str) -> None:
    mqadmin("updateSubGroup", "-c", "DefaultCluster", "-g", name, "-r", "3", "-s", "false")
    (broker_config,) = mqadmin.document("getConsumerConfig", "-g", name)["brokers"]
    assert (broker_config["config"]["retryMaxTimes"], broker_config["config"]["consumeEnable"]) == (
        3,
        False,
    )
    mqadmin("deleteSubGroup", "-b", broker, "-g", name, "--dry-run")
    mqadmin("getConsumerConfig", "-g", name)
    mqadmin("deleteSubGroup", "-c", "DefaultCluster", "-g", name, "-r", "true")
    refused = mqadmin("getConsumerConfig", "-g", name, code=1)
    assert f"No broker has a subscription group {name}." in refused.stderr


def test_offsets_of_an_offline_group(mqadmin: Mqadmin, broker: str, topic: str, name: str) -> None:
    group = f"g-{name}"
    mqadmin("updateSubGroup", "-b", broker, "-g", group)
    reset = ("-g", group, "-t", topic, "-s")
    mqadmin("resetOffsetByTime", *reset, "now", "--dry-run")
    assert offset_of(mqadmin, group, topic) == 0
    mqadmin("resetOffsetByTime", *reset, "now")
    assert offset_of(mqadmin, group, topic) == 3
    mqadmin("resetOffsetByTime", *reset, "0", "-f", "false")
    assert offset_of(mqadmin, group, topic) == 0
    mqadmin("skipAccumulatedMessage", "-g", group, "-t", topic, "-f", "false")
    assert offset_of(mqadmin, group, topic) == 0, "without force offsets only go back"
    mqadmin("skipAccumulatedMessage", "-g", group, "-t", topic)
    assert offset_of(mqadmin, group, topic) == 3


def test_offsets_of_an_online_group(
    quick_cluster: ClusterAddrs, mqadmin: Mqadmin, topic: str, name: str
) -> None:
    with OnlineConsumer(quick_cluster.namesrv_addr, f"g-{name}", topic) as consumer:
        wait_until(lambda: offset_of(mqadmin, consumer.group, topic) == 3)
        reset = ("resetOffsetByTime", "-g", consumer.group, "-t", topic, "-s", "0")
        document = mqadmin.document(*reset)
        assert document["online"]
        assert [it["offset"] for it in document["queues"]] == [0]
        wait_until(lambda: len(consumer.bodies) == 6)
        assert mqadmin.document(*reset, "-c")["queues"] == document["queues"]


def test_slices_of_a_topic(mqadmin: Mqadmin, topic: str) -> None:
    def bodies(*arguments: str) -> list[str]:
        documents = mqadmin.documents(*arguments)
        return [base64.b64decode(each["bodyBase64"]).decode() for each in documents]

    assert bodies("printMsg", "-t", topic) == ["one", "two", "three"]
    assert bodies("printMsg", "-t", topic, "-s", "Tagone || Tagtwo") == ["one", "two"]
    assert bodies("printMsg", "-t", topic, "-e", "0") == []
    assert bodies("consumeMessage", "-t", topic, "-c", "2") == ["one", "two"]
    place = ("-t", topic, "-b", "broker-a", "-i", "0")
    assert bodies("consumeMessage", *place, "-o", "1") == ["two", "three"]
    tags = mqadmin.document(
        "printMsgByQueue", "-t", topic, "-a", "broker-a", "-i", "0", "-f", "true"
    )
    assert tags == {"tags": {"Tagone": 1, "Tagtwo": 1, "Tagthree": 1}}
    hidden = mqadmin("printMsg", "-t", topic, "-d", "false").stdout
    assert "NOT PRINT BODY" in hidden
    assert mqadmin.lines("printMsg", "-t", topic)[1].endswith(" BODY: one")


def test_a_producer_is_listed(
    quick_cluster: ClusterAddrs, mqadmin: Mqadmin, broker: str, topic: str, name: str
) -> None:
    async def look() -> tuple[str, list[str], Any]:
        async with Producer(f"p-{name}", quick_cluster.namesrv_addr) as producer:
            await producer.send(Message(topic, b"hi"))
            arguments = ("producerConnection", "-g", f"p-{name}", "-t", topic)

            def ask() -> tuple[list[str], Any]:
                lines = mqadmin.lines(*arguments)
                return lines, mqadmin.document("producer", "-b", broker)

            return producer.client_id, *await asyncio.to_thread(ask)

    client_id, lines, groups = asyncio.run(look())
    (line,) = lines
    assert line.startswith(f"0001  {client_id} ")
    assert [it["clientId"] for it in groups["groups"][f"p-{name}"]] == [client_id]


def test_a_kicked_client_reconnects(
    quick_cluster: ClusterAddrs, mqadmin: Mqadmin, topic: str, name: str
) -> None:
    with OnlineConsumer(quick_cluster.namesrv_addr, f"g-{name}", topic) as consumer:
        wait_until(lambda: len(consumer.bodies) == 3)
        kick = ("kickClient", "-c", "DefaultCluster", "-i", consumer.client_id, "-r")
        dry = mqadmin.document(*kick, "stuck", "-g", consumer.group, "--dry-run")
        (planned,) = dry["brokers"]
        done = mqadmin.document(*kick, "stuck", "-g", consumer.group)
        assert (done["reason"], done["brokers"]) == ("stuck", [planned])
        # The client reconnects by itself, and consumes again.
        mqadmin("sendMessage", "-t", topic, "-p", "four")
        wait_until(lambda: b"four" in consumer.bodies)
    nobody = mqadmin(*kick, "stuck", "-g", "nope", code=1)
    assert f"No client {consumer.client_id} is connected in group nope." in nobody.stderr


def test_running_info_of_consumers_in_files(
    quick_cluster: ClusterAddrs, mqadmin: Mqadmin, topic: str, name: str, tmp_path: Path
) -> None:
    with OnlineConsumer(quick_cluster.namesrv_addr, f"g-{name}", topic) as consumer:
        wait_until(lambda: len(consumer.bodies) == 3)
        lines = mqadmin.lines("consumerStatus", "-g", consumer.group)
        assert "Rebalance OK" in lines
        (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert str(file.relative_to(tmp_path)) in lines[1]
        assert "#Consumer Properties#" in file.read_text()
        refused = mqadmin("consumerStatus", "-g", consumer.group, "-i", "nobody", code=1)
        assert "nobody" in refused.stderr


def test_a_hostile_message_id_cannot_move_the_body_file(
    quick_cluster: ClusterAddrs, mqadmin: Mqadmin, broker: str, topic: str, tmp_path: Path
) -> None:
    async def send() -> str:
        message = Message(topic, b"evil", properties={PROPERTY_UNIQ_KEY: "../../../evil"})
        async with AdminClient(quick_cluster.namesrv_addr) as admin:
            return (await admin.send(broker, message, 0)).offset_msg_id

    (path,) = [
        line.split()[-1]
        for line in mqadmin.lines("queryMsgById", "-i", asyncio.run(send()))
        if line.startswith("Message Body Path:")
    ]
    assert Path(path).parent == tmp_path / "rocketmq" / "msgbodys"
    assert Path(path).read_bytes() == b"evil"
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_exports(mqadmin: Mqadmin, topic: str, tmp_path: Path) -> None:
    def exported(command: str, *arguments: str) -> Any:
        path = mqadmin.document(command, "-f", str(tmp_path / "e"), *arguments)["path"]
        return json.loads(Path(path).read_text())

    cluster = ("-c", "DefaultCluster")
    metadata = exported("exportMetadata", *cluster)
    assert metadata["topicConfigTable"][topic]["readQueueNums"] == 1
    assert "TBW102" not in metadata["topicConfigTable"]
    assert set(exported("exportMetadata", *cluster, "-g")) == {
        "subscriptionGroupTable",
        "exportTime",
    }
    configs = exported("exportConfigs", *cluster)
    assert configs["clusterScale"] == {
        "namesrvSize": 1,
        "masterBrokerSize": 1,
        "slaveBrokerSize": 0,
    }
    assert configs["brokerConfigs"]["broker-a"]["brokerClusterName"] == "DefaultCluster"
    metrics = exported("exportMetrics", *cluster)
    assert metrics["evaluateReport"]["broker-a"]["runtimeQuota"]["topicSize"] >= 1
    assert metrics["totalData"]["totalTps"]["totalNormalInTps"] >= 0


def test_settings(mqadmin: Mqadmin, broker: str) -> None:
    def value() -> str:
        settings = mqadmin.document("getBrokerConfig", "-b", broker)["brokers"][broker]
        return str(settings["flushCommitLogLeastPages"])

    change = ("updateBrokerConfig", "-c", "DefaultCluster", "-k", "flushCommitLogLeastPages", "-v")
    before = value()
    mqadmin(*change, "3", "--dry-run")
    assert value() == before
    mqadmin(*change, "3")
    assert value() == "3"
    mqadmin(*change, before)


def test_an_invalid_setting_is_refused(shared_cluster: Cluster) -> None:
    """An Apache broker accepts an invalid value and keeps the old value."""
    mqadmin, broker = Mqadmin(shared_cluster.namesrv_addr), shared_cluster.broker_addr
    change = ("-b", broker, "-k", "flushCommitLogLeastPages", "-v", "many")
    assert "flushCommitLogLeastPages" in mqadmin("updateBrokerConfig", *change, code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("topicStatus -t nope", 1, "No topic route info in name server for the topic: nope"),
        ("topicRoute -t %RETRY%nope", 1, "TOPIC_NOT_EXIST (17)"),
        ("statsAll -t nope", 1, "The name server knows no topic nope."),
        ("consumerProgress -g nope", 1, "The group nope has no retry topic"),
        ("consumerConnection -g nope", 1, "The group nope has no retry topic"),
        ("cloneGroupOffset -s nope -d x -t TBW102", 1, "The group nope has no retry topic"),
        ("producerConnection -g nope -t TBW102", 1, "nope"),
        ("deleteTopic -c nope -t T", 1, "Make sure the specified clusterName exists"),
        ("brokerStatus -c nope", 1, "Make sure the specified clusterName exists"),
        ("clusterRT -c nope", 1, "Make sure the specified clusterName exists"),
        ("brokerStatus -b 127.0.0.1:1", 3, "Cannot connect to 127.0.0.1:1"),
        ("updateSubGroup -b 127.0.0.1:1 -g G", 3, "Cannot connect to 127.0.0.1:1"),
        ("cleanExpiredCQ -b 127.0.0.1:1", 3, "Cannot connect to 127.0.0.1:1"),
        ("queryMsgByOffset -t TBW102 -b nope -i 0 -o 0", 1, "no queues on a broker nope"),
        ("queryMsgByOffset -t TBW102 -b broker-a -i 0 -o 9", 1, "No message at offset 9"),
        ("queryMsgByOffset -t TBW102 -b broker-a -i 2147483647 -o 0", 1, "queueId[2147483647]"),
        ("queryMsgByUniqueKey -t TBW102 -i nope", 1, "No message of TBW102 has the id nope."),
        ("queryMsgTraceById -t TBW102 -i nope", 1, "TBW102 has no trace of nope"),
        ("queryMsgById -i 7F000001000000010000000000000000", 3, "Cannot connect to 127.0.0.1:1"),
        ("printMsgByQueue -t TBW102 -a nope -i 0", 1, "no queues on a broker nope"),
        ("updateTopicPerm -t TBW102 -p 6 -b 127.0.0.1:1", 1, "broker not exit"),
        ("updateOrderConf -t nope -m get", 1, "The topic nope has no order conf."),
        ("exportConfigs -c DefaultCluster -f /dev/null", 1, "/dev/null/configs.json"),
        ("updateNamesrvConfig -k kvConfigPath -v x", 1, "Can not update config"),
    ],
)
def test_a_refused_command_prints_one_sentence(
    mqadmin: Mqadmin, arguments: str, code: int, said: str
) -> None:
    result = mqadmin(*arguments.split(), code=code)
    assert said in result.stderr
    assert result.stderr.startswith("mqadmin: ")


def test_a_message_id_into_the_middle_of_a_record(
    mqadmin: Mqadmin, topic: str, broker: str
) -> None:
    host, port = broker.split(":")
    for offset in (1, 2**63 - 1):
        msg_id = bytes(map(int, host.split("."))).hex() + f"{int(port):08x}{offset:016x}"
        assert mqadmin("queryMsgById", "-i", msg_id, code=1).stderr


def test_one_of_two_name_servers_is_unreachable(quick_cluster: ClusterAddrs) -> None:
    mqadmin = Mqadmin(f"{quick_cluster.namesrv_addr};127.0.0.1:1")
    assert "TBW102" in mqadmin.lines("topicList")
    refused = mqadmin("wipeWritePerm", "-b", "no-such-broker", code=3)
    ok, failed = refused.stdout.splitlines()
    assert ok.endswith("OK, 0")
    assert failed.endswith("in name server[127.0.0.1:1] Failed")


# ---- a scripted peer ----------------------------------------------------------------------------


@pytest.fixture
def peer() -> Iterator[Callable[..., ScriptedPeer]]:
    """Starts a scripted peer on a separate event loop, beside the command's loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    peers: list[ScriptedPeer] = []

    def start() -> ScriptedPeer:
        peers.append(ScriptedPeer())
        return asyncio.run_coroutine_threadsafe(peers[0].__aenter__(), loop).result(10)

    yield start
    for each in peers:
        asyncio.run_coroutine_threadsafe(each.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_access_control(peer: Callable[[], ScriptedPeer]) -> None:
    broker = peer()
    mqadmin = Mqadmin(broker.addr)
    account = ("-a", "the-access", "-s", "the-secret", "-t", "T=PUB,U=SUB", "-m", "true")
    printed = mqadmin("updateAclConfig", "-b", broker.addr, *account).stdout
    assert f"create or update plain access config to {broker.addr} success." in printed
    assert "the-secret" not in printed
    (request,) = broker.received(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG)
    assert request.ext_fields == {
        "accessKey": "the-access",
        "secretKey": "the-secret",
        "admin": "true",
        "topicPerms": "T=PUB,U=SUB",
    }
    deleted = mqadmin("deleteAccessConfig", "-b", broker.addr, "-a", "the-access").stdout
    assert deleted.endswith("account's accesskey is:the-access\n")
    (request,) = broker.received(RequestCode.DELETE_ACL_CONFIG)
    assert request.ext_fields == {"accessKey": "the-access"}
    mqadmin("updateGlobalWhiteAddr", "-b", broker.addr, "-g", "10.0.0.*", "-p", "a.yml")
    (request,) = broker.received(RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)
    assert request.ext_fields == {"globalWhiteAddrs": "10.0.0.*", "aclFileFullPath": "a.yml"}


@pytest.mark.parametrize(
    ("all_files", "files"),
    [('{"a.yml":{"counter":2,"timestamp":5}}', {"a.yml": 2}), (None, {"": 1})],
)
def test_versions_of_access_files(
    peer: Callable[[], ScriptedPeer], all_files: str | None, files: dict[str, int]
) -> None:
    broker = peer()
    fields = {
        "version": '{"counter":1,"timestamp":5}',
        "brokerName": "b",
        "brokerAddr": broker.addr,
        "clusterName": "c",
        **({"allAclFileVersion": all_files} if all_files else {}),
    }
    answer = RemotingCommand.response
    broker.on(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, lambda _: answer(header=fields))
    mqadmin = Mqadmin(broker.addr)
    lines = mqadmin.lines("clusterAclConfigVersion", "-b", broker.addr)
    assert lines[0].startswith("c                 b                       127.0.0.1:")
    assert lines[-1] == "get broker's plain access config version success."
    records = mqadmin.document("clusterAclConfigVersion", "-b", broker.addr)["aclFiles"]
    assert {record["aclFile"]: record["counter"] for record in records} == files


def test_a_silent_peer_and_a_malformed_body(peer: Callable[[], ScriptedPeer]) -> None:
    nobody = peer()
    nobody.on(RequestCode.GET_BROKER_CLUSTER_INFO, lambda _: None)
    mqadmin = Mqadmin(nobody.addr)
    silent = mqadmin("clusterList", "--requestTimeoutMillis", "500", code=3)
    assert "did not answer GET_BROKER_CLUSTER_INFO" in silent.stderr
    answer = RemotingCommand.response
    nobody.on(RequestCode.GET_BROKER_CLUSTER_INFO, lambda _: answer(body=b"\xff{nonsense"))
    assert "a body is not JSON" in mqadmin("clusterList", code=1).stderr
