"""Every command of mqadmin against a real cluster: exit code, Java's header line, JSON keys.

The header lines are those of the Java 4.9.8 tool.
"""

import itertools
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from core_broker.mqadmin.catalog import CATALOG
from tests.client.mqadmin_runs import Mqadmin, OnlineConsumer, wait_until
from tests.client.receiving import ClusterAddrs

_numbers = itertools.count(1)
_run = secrets.token_hex(3)


class Targets(NamedTuple):
    """The cluster objects that the commands of this file name."""

    mqadmin: Mqadmin
    broker: str
    topic: str
    group: str
    offline_group: str
    client_id: str
    msg_id: str
    offset_id: str


@pytest.fixture(scope="module")
def targets(quick_cluster: ClusterAddrs) -> Iterator[Targets]:
    """A topic with one message in each of two queues, an online group and an offline group."""
    mqadmin = Mqadmin(quick_cluster.namesrv_addr)
    broker = quick_cluster.broker_addr
    topic, group, offline = f"mq-{_run}", f"cg-{_run}", f"off-{_run}"
    mqadmin("updateTopic", "-b", broker, "-t", topic, "-r", "2", "-w", "2")
    mqadmin("updateSubGroup", "-b", broker, "-g", offline)
    first = ("-t", topic, "-p", "hello", "-k", "K1", "-c", "TagA", "-b", "broker-a", "-i", "0")
    sent = mqadmin.document("sendMessage", *first, "-m", "true")
    mqadmin("sendMessage", "-t", topic, "-p", "second", "-b", "broker-a", "-i", "1")
    with OnlineConsumer(quick_cluster.namesrv_addr, group, topic) as consumer:
        wait_until(lambda: len(consumer.bodies) == 2)
        wait_until(lambda: has_committed(mqadmin, broker, group, topic))
        mqadmin("cloneGroupOffset", "-s", group, "-d", offline, "-t", topic)
        ids = (consumer.client_id, sent["msgId"], sent["offsetMsgId"])
        yield Targets(mqadmin, broker, topic, group, offline, *ids)


def has_committed(mqadmin: Mqadmin, broker: str, group: str, topic: str) -> bool:
    """Return True when the group has committed the offsets of both messages."""
    queues = mqadmin.document("brokerConsumeStats", "-b", broker)["queues"]
    committed = [row for row in queues if (row["consumerGroup"], row["topic"]) == (group, topic)]
    return len(committed) == 2 and not any(row["diff"] for row in committed)


@pytest.fixture(autouse=True)
def files_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write their files below tmp_path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


class Case(NamedTuple):
    """Arguments of a command, start of the first output line, keys of the JSON document."""

    arguments: str
    line: str
    keys: str


PROGRESS = (
    "#Topic                                                            #Broker Name               "
    "       #QID  #Broker Offset        #Consumer Offset      #Diff                 #LastTime"
)
SENT = "#Broker Name                      #QID  #Send Result            #MsgId"

CASES = {
    "clusterList": Case(
        "",
        "#Cluster Name     #Broker Name            #BID  #Addr                  #Version          "
        "      #InTPS(LOAD)       #OutTPS(LOAD) #PCWait(ms) #Hour #SPACE",
        "brokers",
    ),
    "clusterList -m": Case(
        "-m",
        "#Cluster Name     #Broker Name                       #InTotalYest  #OutTotalYest  "
        "#InTotalToday #OutTotalToday",
        "brokers",
    ),
    "clusterList -i": Case("-i 0 --rounds 1", "#Cluster Name ", "brokers"),
    "clusterRT": Case(
        "-a 2 --rounds 1",
        "#Cluster Name             #Broker Name              #RT   #successCount  #failCount",
        "clusterName brokerName rt successCount failCount",
    ),
    "topicList": Case("", "", "topics"),
    "topicList -c": Case(
        "-c",
        "#Cluster Name         #Topic                                            #Consumer Group  "
        "                               ",
        "topics",
    ),
    "topicRoute": Case("-t {topic}", "{{", "brokerDatas queueDatas filterServerTable"),
    "topicRoute -l": Case(
        "-t {topic} -l",
        "#ClusterName                                  #BrokerName                      "
        "#BrokerAddrs                                       #ReadQueue #WriteQueue #Perm",
        "brokerDatas queueDatas",
    ),
    "topicStatus": Case(
        "-t {topic}",
        "#Broker Name                      #QID  #Min Offset           #Max Offset             "
        "#Last Updated",
        "topic queues",
    ),
    "topicClusterList": Case("-t {topic}", "DefaultCluster", "topic clusters"),
    "allocateMQ": Case("-t {topic} -i 10.0.0.1,10.0.0.2", '{{"result":{{"10.0.0.1":', "result"),
    "updateTopic": Case(
        "-b {broker} -t {fresh} -r 3 -w 3", "create topic to ", "created orderConf topicConfig"
    ),
    "updateTopic -o": Case("-c DefaultCluster -t {fresh} -o true", "create topic to ", "orderConf"),
    "updateTopicPerm": Case(
        "-b {broker} -t {topic} -p 6", "new perm equals to the old one!", "topic changed"
    ),
    "deleteTopic": Case(
        "-c DefaultCluster -t {fresh}",
        "delete topic [{fresh}] from cluster [DefaultCluster] success.",
        "topic clusterName dryRun",
    ),
    "updateOrderConf": Case(
        "-t {fresh} -m put -v broker-a:2",
        "update orderConf success. topic=[{fresh}], orderConf=[broker-a:2]",
        "topic orderConf",
    ),
    "brokerStatus": Case("-b {broker}", "EndTransactionQueueSize         : ", "brokers"),
    "brokerStatus -c": Case("-c DefaultCluster", "127.0.0.1:", "brokers"),
    "getBrokerConfig": Case("-b {broker}", "============{broker}============", "brokers"),
    "getBrokerConfig -c": Case(
        "-c DefaultCluster", "============Master: {broker}============", "brokers"
    ),
    "updateBrokerConfig": Case(
        "-b {broker} -k flushIntervalCommitLog -v 500",
        "update broker config success, {broker}",
        "updated key value dryRun",
    ),
    "brokerConsumeStats": Case(
        "-b {broker}",
        "#Topic                                                            #Group             "
        "                                               #Broker Name                      #QID  ",
        "queues diffTotal",
    ),
    "cleanExpiredCQ": Case("-b {broker}", "success", "cleaned dryRun"),
    "cleanUnusedTopic": Case("-b {broker}", "success", "cleaned dryRun"),
    "deleteExpiredCommitLog": Case("-c DefaultCluster", "success", "cleaned dryRun"),
    "updateSubGroup": Case(
        "-b {broker} -g {fresh} -r 3",
        "create subscription group to {broker} success.",
        "created subscriptionGroupConfig",
    ),
    "deleteSubGroup": Case(
        "-b {broker} -g {fresh} -r true",
        "delete subscription group [{fresh}] from broker [{broker}] success.",
        "groupName brokers dryRun",
    ),
    "deleteSubGroup -c": Case(
        "-c DefaultCluster -g {fresh}", "delete subscription group [", "groupName"
    ),
    "getConsumerConfig": Case(
        "-g {offline_group}",
        "=============================DefaultCluster:broker-a=============================",
        "groupName brokers",
    ),
    "consumerConnection": Case(
        "-g {group}",
        "#ClientId                            #ClientAddr            #Language  #Version",
        "clients subscriptions consumeType messageModel consumeFromWhere",
    ),
    "consumerProgress": Case(
        "",
        "#Group                                                            #Count  #Version       "
        "          #Type  #Model          #TPS     #Diff Total",
        "groups",
    ),
    "consumerProgress -g": Case("-g {group}", PROGRESS, "queues consumeTps diffTotal"),
    "consumerProgress -s": Case(
        "-g {group} -s true",
        PROGRESS.replace("#Diff                 ", "#Client IP           #Diff                 "),
        "queues consumeTps diffTotal",
    ),
    "consumerStatus": Case(
        "-g {group}",
        "#Index     #ClientId                                #Version             "
        "#ConsumerRunningInfoFile",
        "clients sameSubscription complaints",
    ),
    "consumerStatus -i": Case(
        "-g {group} -i {client_id} -s", "#Consumer Properties#", "properties subscriptions queues"
    ),
    "consumer": Case("-g {group}", "001  ", "clients sameSubscription complaints"),
    "startMonitoring": Case(
        "--rounds 1", "[MONITOR] =========================================beginRound", "undone"
    ),
    "cloneGroupOffset": Case(
        "-s {group} -d {offline_group} -t {topic}",
        "clone group offset success. srcGroup[{group}], destGroup=[{offline_group}], "
        "topic[{topic}]",
        "queues dryRun",
    ),
    "resetOffsetByTime": Case(
        "-g {offline_group} -t {topic} -s -1",
        "rollback consumer offset by specified consumerGroup[{offline_group}], topic[{topic}], "
        "force[true], timestamp(string)[-1], timestamp(long)[-1]",
        "group topic online queues dryRun",
    ),
    "resetOffsetByTimeOld": Case(
        "-g {offline_group} -t {topic} -s 1970-01-02#00:00:00:000 -f false",
        "rollback consumer offset by specified consumerGroup[{offline_group}], topic[{topic}], "
        "force[false], timestamp(string)[1970-01-02#00:00:00:000]",
        "queues",
    ),
    "skipAccumulatedMessage": Case(
        "-g {offline_group} -t {topic}",
        "#brokerName           #queueId              #brokerOffset         #consumerOffset       "
        "#timestampOffset      #rollbackOffset     ",
        "queues online",
    ),
    "getConsumerStatus": Case(
        "-g {group} -t {topic}", "get consumer status from client. group={group}", "queues"
    ),
    "queryMsgById": Case(
        "-i {offset_id}", "OffsetID:            {offset_id}", "msgId tracks bodyBase64"
    ),
    "queryMsgById -d": Case(
        "-i {offset_id} -g {group} -d {client_id}",
        "ConsumeMessageDirectlyResult [order=false, autoCommit=true, consumeResult=CR_SUCCESS",
        "consumeResult",
    ),
    "queryMsgById -s": Case(
        "-i {offset_id} -s true", "prepare resend msg. originalMsgId={offset_id}", "sendStatus"
    ),
    "queryMsgByKey": Case(
        "-t {topic} -k K1",
        "#Message ID                                        #QID                             "
        "     #Offset",
        "messages",
    ),
    "queryMsgByUniqueKey": Case("-t {topic} -i {msg_id}", "Topic:               ", "msgId tracks"),
    "queryMsgByUniqueKey -d": Case(
        "-t {topic} -i {msg_id} -g {group} -d {client_id}",
        "ConsumeMessageDirectlyResult [",
        "consumeResult",
    ),
    "queryMsgByOffset": Case(
        "-t {topic} -b broker-a -i 0 -o 0", "OffsetID:            {offset_id}", "msgId tracks"
    ),
    "queryMsgTraceById": Case(
        "-i {msg_id}",
        "#Type      #ProducerGroup       #ClientHost          #SendTime            #CostTimes "
        "#Status   ",
        "msgId produced consumed",
    ),
    "queryCq": Case("-t {topic} -q 0 -i 0 -c 2 -b {broker}", "Queue data: ", "queueData"),
    "DecodeMessageId": Case("-i {msg_id}", "ip=", "ip pid createdTimestamp"),
    "printMsg": Case("-t {topic}", "minOffset=0, maxOffset=", "msgId bodyBase64"),
    "printMsgByQueue": Case(
        "-t {topic} -a broker-a -i 1 -p true -d true", "MSGID: ", "msgId bodyBase64"
    ),
    "consumeMessage": Case(
        "-t {topic} -b broker-a -i 1 -o 0 -c 1", "Consume ok", "msgId bodyBase64"
    ),
    "sendMessage": Case("-t {topic} -p again", SENT, "brokerName queueId sendStatus msgId"),
    "sendMsgStatus": Case("-b broker-a -c 1", "rt=", "rt sendStatus msgId"),
    "checkMsgSendRT": Case(
        "-t {topic} -a 2",
        "#Broker Name                      #QID  #Send Result            #RT",
        "sends averageRt",
    ),
    "statsAll": Case(
        "-t {topic}",
        "#Topic                                                            #Consumer Group    "
        "                                              #Accumulation      #InTPS     #OutTPS   "
        "#InMsg24Hour  #OutMsg24Hour",
        "topics",
    ),
    "producer": Case("-b {broker}", "", "groups"),
    "updateKvConfig": Case(
        "-s {fresh} -k k -v v",
        "create or update kv config to namespace success.",
        "namespace key value",
    ),
    "deleteKvConfig": Case(
        "-s {fresh} -k k", "delete kv config from namespace success.", "namespace key dryRun"
    ),
    "wipeWritePerm": Case(
        "-b no-such-broker", "wipe write perm of broker[no-such-broker] in name server[", "changed"
    ),
    "drainBroker": Case(
        "-b broker-a -f --dry-run",
        "[dry run] wipe write perm of broker[broker-a] in ",
        "brokerName drained dryRun groups offlineGroups",
    ),
    "addWritePerm": Case(
        "-b no-such-broker", "add write perm of broker[no-such-broker] in name server[", "changed"
    ),
    "getNamesrvConfig": Case("", "============127.0.0.1:", "nameServers"),
    "updateNamesrvConfig": Case(
        "-k productEnvName -v center", "update name server config success!", "updated key value"
    ),
    "exportMetadata": Case("-c DefaultCluster -f {fresh}", "export {fresh}/metadata.json", "path"),
    "exportMetadata -b": Case("-b {broker} -t -f {fresh}", "export {fresh}/topic.json", "path"),
    "exportConfigs": Case("-c DefaultCluster", "export ", "path"),
    "exportMetrics": Case("-c DefaultCluster", "export ", "path"),
}

#: Commands tested in test_mqadmin_effects.py with a broker state of their own.
ELSEWHERE = {
    *("producerConnection", "kickClient", "updateAclConfig", "deleteAclConfig"),
    *("clusterAclConfigVersion", "updateGlobalWhiteAddr"),
}
#: Commands tested in test_mqadmin_users.py, against scripted brokers and a broker with ACL 2.0.
ELSEWHERE |= {
    *("createUser", "updateUser", "deleteUser", "getUser", "listUser", "copyUser"),
    *("createAcl", "updateAcl", "deleteAcl", "getAcl", "listAcl", "copyAcl"),
}
#: Commands tested in test_mqadmin_lists.py, with files and a scripted broker.
ELSEWHERE |= {"updateTopicList", "updateSubGroupList", "haStatus"}
#: Tested in test_mqadmin_controllers.py, with controllers and scripted brokers.
ELSEWHERE |= {
    *("getControllerMetaData", "getControllerConfig", "updateControllerConfig"),
    *("getSyncStateSet", "getBrokerEpoch", "electMaster", "cleanBrokerMetadata"),
    "resetMasterFlushOffset",
}
#: Tested in test_access_checks.py, with brokers that have access control.
ELSEWHERE |= {"checkAccess"}
#: Tested in test_mqadmin_definitions.py, with a broker of their own.
ELSEWHERE |= {"exportDefinitions", "apply"}


def test_every_command_is_tried() -> None:
    assert {name.partition(" ")[0] for name in CASES} | ELSEWHERE == set(CATALOG)


@pytest.mark.parametrize("name", CASES)
def test_the_command(name: str, targets: Targets) -> None:
    case, values = CASES[name], targets._asdict() | {"fresh": f"fresh-{_run}-{next(_numbers)}"}
    arguments = [name.partition(" ")[0], *case.arguments.format(**values).split()]
    lines = targets.mqadmin.lines(*arguments)
    if case.line:
        assert lines[0].startswith(case.line.format(**values)), lines[:3]
    documents = targets.mqadmin.documents(*arguments)
    assert documents
    assert set(case.keys.split()) <= set(documents[0]), documents[0]
