"""All request codes of mqadmin 4.9.8, rocketmq-dashboard and clients have a handler."""

import pytest

from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.cluster import Cluster
from tests.wire.stage import exchange

#: Commands of mqadmin 4.9.8 and their request codes; most commands also send 105 and 106.
MQADMIN = {
    "addWritePerm": {327},
    "allocateMQ": {105},
    "brokerConsumeStats": {317},
    "brokerStatus": {28, 106},
    "checkMsgSendRT": {105, 310},
    "cleanExpiredCQ": {106, 306},
    "cleanUnusedTopic": {106, 316},
    "cloneGroupOffset": {15, 105, 203, 208},
    "clusterAclConfigVersion": {52, 106},
    "clusterList": {28, 106},
    "clusterRT": {106, 310},
    "consumeMessage": {11, 29, 30, 31, 105},
    "consumerConnection": {105, 203},
    "consumerProgress": {105, 203, 206, 208, 307},
    "consumerStatus": {105, 203, 307},
    "deleteAclConfig": {51, 106},
    "deleteExpiredCommitLog": {106, 329},
    "deleteKvConfig": {102},
    "deleteSubGroup": {106, 207, 215, 216},
    "deleteTopic": {106, 215, 216},
    "exportConfigs": {26, 106},
    "exportMetadata": {21, 106, 201, 305},
    "exportMetrics": {21, 26, 28, 105, 106, 201, 203, 305, 315},
    "getBrokerConfig": {26, 106},
    "getConsumerConfig": {106, 201},
    "getConsumerStatus": {105, 223},
    "getNamesrvConfig": {319},
    "printMsg": {11, 29, 30, 31, 105},
    "printMsgByQueue": {11, 29, 30, 31, 105},
    "producer": {328},
    "producerConnection": {105, 204},
    "queryCq": {105, 321},
    "queryMsgById": {33, 203, 307, 309, 310},
    "queryMsgByKey": {12, 105},
    "queryMsgByOffset": {11, 105},
    "queryMsgByUniqueKey": {12, 105, 203, 208, 300, 309},
    "queryMsgTraceById": {12},
    "resetOffsetByTime": {15, 29, 105, 222},
    "resetOffsetByTimeOld": {15, 29, 30, 105, 202, 208},
    "sendMessage": {105, 310},
    "sendMsgStatus": {105, 310},
    "skipAccumulatedMessage": {15, 29, 30, 105, 202, 208, 222},
    "startMonitoring": {202, 203, 206, 208, 307},
    "statsAll": {105, 203, 206, 208, 300, 315},
    "topicClusterList": {105, 106},
    "topicList": {105, 106, 206, 300},
    "topicRoute": {105},
    "topicStatus": {105, 202},
    "updateAclConfig": {50, 106},
    "updateBrokerConfig": {25, 106},
    "updateGlobalWhiteAddr": {53, 106},
    "updateKvConfig": {100},
    "updateNamesrvConfig": {318},
    "updateOrderConf": {100, 101, 102},
    "updateSubGroup": {106, 200},
    "updateTopic": {17, 100, 101, 105, 106},
    "updateTopicPerm": {17, 105, 106},
    "wipeWritePerm": {205},
}
#: Further codes of rocketmq-dashboard, and of the admin client of 4.9.8 as a library.
DASHBOARD = {14, 32, 38, 43, 45, 54, 219, 224, 303, 304, 308, 311, 312, 313, 314, 323}
#: Further codes of producers and consumers.
CLIENTS = {10, 34, 35, 36, 37, 41, 42, 46, 320, 324, 325}
#: Codes for name servers; all other codes are for brokers.
OF_NAMESRV = {100, 101, 102, 105, 106, 205, 206, 216, 219, 224, 304, 311, 312, 313, 318, 319, 327}
ALL = sorted(set().union(*MQADMIN.values()) | DASHBOARD | CLIENTS)


async def ask(cluster: Cluster, code: int) -> RemotingCommand:
    addr = cluster.namesrv_addr if code in OF_NAMESRV else cluster.broker_addr
    return await exchange(addr, RemotingCommand.request(code).encode())


@pytest.mark.parametrize("code", ALL)
async def test_the_code_is_answered(shared_cluster: Cluster, code: int) -> None:
    # A request without header and body may be refused, but not as an unknown code.
    answer = await ask(shared_cluster, code)
    assert answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.code == ResponseCode.SUCCESS or answer.remark


@pytest.mark.parametrize("code", [0, 16, 22, 99, 353, 909, 9_999, 32_767, 200_050, 2**31 - 1])
async def test_unknown_codes_are_answered_without_a_close(
    shared_cluster: Cluster, code: int
) -> None:
    for addr in (shared_cluster.broker_addr, shared_cluster.namesrv_addr):
        client = RemotingClient(name="unknown")
        for _ in range(2):
            answer = await client.invoke(addr, RemotingCommand.request(code), 10_000)
            assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
        assert len(client.connections) == 1
        await client.close()


def test_all_codes_of_commands_are_listed() -> None:
    assert all(codes <= {*ALL} for codes in MQADMIN.values())
    assert len(MQADMIN) >= 57
