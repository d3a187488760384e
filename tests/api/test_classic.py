"""The API of rocketmq-dashboard Classic, with the field names of existing scripts."""

import csv
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.audit.models import AuditRow
from tests.api.conftest import Api, browser
from tests.api.stored import Dead
from tests.api.test_roles import member
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

DEAD_LETTERS = "dlqMessage/queryDlqMessageByConsumerGroup.query"


class Classic:
    """A script written for Classic."""

    def __init__(self, user: User) -> None:
        self.client = Api(user).client

    def get(self, path: str, **params: str) -> Any:
        return self.data(self.client.get(f"/{path}", params))

    def post(self, path: str, body: Any) -> Any:
        return self.data(self.client.post(f"/{path}", body, "application/json"))

    @staticmethod
    def data(answer: Any) -> Any:
        assert answer.status_code == 200, answer.content
        body = answer.json()
        assert set(body) == {"status", "data", "errMsg"}
        assert (body["status"], body["errMsg"]) == (0, None), body
        return body["data"]


@pytest.fixture
def classic(staff: User, local: Cluster) -> Classic:
    return Classic(staff)


@pytest.fixture
def dead(traffic: Traffic) -> Dead:
    return Dead(traffic)


def test_cluster_and_topics(classic: Classic, api: Api) -> None:
    api("post", "/topics", {"name": "classic", "write_queues": 4, "read_queues": 4})
    found = classic.get("cluster/list.query")
    assert found["clusterInfo"]["brokerAddrTable"]["broker-a"]["brokerAddrs"]["0"]
    assert found["clusterInfo"]["clusterAddrTable"]["DefaultCluster"] == ["broker-a"]
    assert "brokerVersionDesc" in found["brokerServer"]["broker-a"]["0"]
    names = classic.get("topic/list.query", skipSysProcess="true", skipRetryAndDlq="true")
    assert "classic" in names["topicList"]
    assert "TBW102" not in names["topicList"]
    kinds = classic.get("topic/list.queryTopicType")
    by_name = dict(zip(kinds["topicNameList"], kinds["messageTypeList"], strict=True))
    assert by_name["classic"] in {"NORMAL", "UNSPECIFIED"}
    assert by_name["TBW102"] == "SYSTEM"
    table = classic.get("topic/stats.query", topic="classic")["offsetTable"]
    key = "MessageQueue [topic=classic, brokerName=broker-a, queueId=0]"
    assert table[key] == {"minOffset": 0, "maxOffset": 0, "lastUpdateTimestamp": 0}
    route = classic.get("topic/route.query", topic="classic")
    assert route["queueDatas"][0]["writeQueueNums"] == 4
    assert route["brokerDatas"][0]["brokerName"] == "broker-a"
    (config,) = classic.get("topic/examineTopicConfig.query", topic="classic")
    assert (config["topicName"], config["perm"], config["order"]) == ("classic", 6, False)
    assert classic.get("topic/queryConsumerByTopic.query", topic="classic") == {}
    assert classic.get("topic/queryTopicConsumerInfo.query", topic="classic") == {"groupList": []}


def test_groups_and_their_progress(classic: Classic, api: Api, dead: Dead) -> None:
    names = [each["group"] for each in classic.get("consumer/groupList.query", skipSysGroup="true")]
    assert dead.group in names
    one = classic.get("consumer/group.query", consumerGroup=dead.group)
    fields = {"group", "version", "count", "consumeType", "messageModel", "consumeTps"}
    assert fields | {"diffTotal", "subGroupType"} == set(one)
    infos = classic.get("consumer/queryTopicByConsumer.query", consumerGroup=dead.group)
    for info in infos:
        assert set(info) == {"topic", "diffTotal", "lastTimestamp", "queueStatInfoList"}
    found = classic.get("consumer/consumerConnection.query", consumerGroup=dead.group)
    assert found["connectionSet"] == []
    found = classic.get("producer/producerConnection.query", producerGroup="nobody")
    assert found == {"connectionSet": []}


def test_messages_by_id_key_and_page(classic: Classic, traffic: Traffic, dead: Dead) -> None:
    asked = {"consumerGroup": dead.group, "pageNum": 1, "pageSize": 2}
    path = "dlqMessage/queryDlqMessageByConsumerGroup.query"
    page = poll(lambda: (got := classic.post(path, asked)["page"])["totalElements"] == 3 and got)
    assert (page["totalPages"], page["numberOfElements"], page["last"]) == (2, 2, False)
    second = classic.post(path, {**asked, "pageNum": 2})["page"]
    assert [each["messageBody"] for each in second["content"]] == ["message 0"]
    beyond = classic.post(path, {**asked, "pageNum": 9})["page"]
    assert (beyond["content"], beyond["last"]) == ([], True)
    row = page["content"][0]
    same = classic.get("message/viewMessage.query", msgId=row["msgId"], topic=row["topic"])
    assert same["messageView"]["messageBody"] == row["messageBody"]
    assert isinstance(same["messageTrackList"], list)
    asked = {"topic": row["topic"], "begin": 0, "end": 2**50, "pageNum": 1, "pageSize": 20}
    whole = classic.post("message/queryMessagePageByTopic.query", asked)["page"]
    assert whole["totalElements"] == 3
    graph = classic.get("messageTrace/viewMessageTraceGraph.query", msgId=row["msgId"])
    assert set(graph) == {"producerNode", "subscriptionNodeList", "messageTraceViews"}


def test_dead_letters_are_sent_again_with_a_true_result_each(
    classic: Classic, staff: User, dead: Dead
) -> None:
    asked = {"consumerGroup": dead.group, "pageNum": 1, "pageSize": 20}
    page = poll(
        lambda: (got := classic.post(DEAD_LETTERS, asked)["page"])["totalElements"] == 3 and got
    )
    ids = [each["msgId"] for each in page["content"]][:2]
    wanted = [{"consumerGroup": dead.group, "msgId": each} for each in [*ids, "AC11" * 8]]
    results = classic.post("dlqMessage/batchResendDlqMessage.do", wanted)
    by_id = {each["msgId"]: each for each in results}
    assert {by_id[each]["consumeResult"] for each in ids} == {"CR_SUCCESS"}
    assert by_id["AC11" * 8]["consumeResult"] == "CR_THROW_EXCEPTION"
    assert by_id["AC11" * 8]["remark"]
    row = AuditRow.objects.get(action="deadletter.resend")
    assert (row.via, row.result, row.target) == ("classic", "partly", dead.group)
    again = classic.post("dlqMessage/batchResendDlqMessage.do", wanted[:1])
    assert again[0]["consumeResult"] == "CR_LATER", "it was sent before"
    answer = classic.client.get(
        "/dlqMessage/exportDlqMessage.do", {"consumerGroup": dead.group, "msgId": ids[0]}
    )
    (exported,) = csv.DictReader(StringIO(answer.content.decode()))
    assert exported["msgId"] == ids[0]


def test_what_fails_is_status_minus_one_and_who_may_not_is_told(
    classic: Classic, reader: User, local: Cluster
) -> None:
    answer = classic.client.get("/topic/stats.query", {"topic": "no-such-topic"})
    assert (answer.status_code, answer.json()["status"]) == (200, -1)
    assert "no-such-topic" in answer.json()["errMsg"]
    for query in ("", "?topic=", "?topic=%00", f"?topic={'x' * 300}"):
        assert classic.client.get(f"/topic/route.query{query}").json()["status"] == -1
    assert Client().get("/topic/list.query").status_code == 401
    refused = Api(reader).client.post(
        "/dlqMessage/batchResendDlqMessage.do", [], "application/json"
    )
    assert (refused.status_code, refused.json()["status"]) == (403, -1)
    assert AuditRow.objects.get(result="denied").action == "deadletter.resend"
    assert classic.client.get("/topic/list.query?cluster=nowhere").json()["status"] == -1


@pytest.mark.parametrize(
    "body",
    ["[]", "{", "null", "[1]", '[{"consumerGroup": 1, "msgId": "x"}]', '[{"msgId": "x"}]',
     "[" + ",".join(['{"consumerGroup":"g","msgId":"x"}'] * 2_000) + "]"],
)  # fmt: skip
def test_bodies_that_are_none_change_nothing(body: str, classic: Classic) -> None:
    for path in ("batchResendDlqMessage.do", "queryDlqMessageByConsumerGroup.query"):
        answer = classic.client.post(f"/dlqMessage/{path}", body, "application/json")
        assert (answer.status_code, answer.json()["status"]) == (200, -1)
    assert not AuditRow.objects.exists()


@pytest.mark.parametrize("field", ["pageNum", "pageSize", "begin", "end"])
@pytest.mark.parametrize("value", [-1, 10**30, "x", True, 1.5, []])
def test_pages_that_are_none_are_refused(field: str, value: Any, classic: Classic) -> None:
    body = {"topic": "TBW102", "pageNum": 1, "pageSize": 20, field: value}
    answer = classic.client.post("/message/queryMessagePageByTopic.query", body, "application/json")
    assert (answer.status_code, answer.json()["status"]) == (200, -1)


def test_a_call_needs_the_permission_for_what_it_shows(db: None, local: Cluster) -> None:
    page = browser(member("tim", "topics:read", "messages:read"))
    assert page.get("/topic/list.query").json()["status"] == 0
    for path in ("cluster/list.query", "messageTrace/viewMessageTraceGraph.query?msgId=x"):
        assert page.get(f"/{path}").status_code == 403, path
    page = browser(member("dora", "deadletters:read"))
    for topic in ("TBW102", "RMQ_SYS_TRACE_TOPIC", "%RETRY%x"):
        body = {"topic": topic, "pageNum": 1, "pageSize": 20}
        answer = page.post(f"/{DEAD_LETTERS}", body, "application/json").json()
        assert (answer["status"], answer["data"]) == (-1, None), topic
    body = {"topic": "%DLQ%nobody", "pageNum": 1, "pageSize": 20}
    assert page.post(f"/{DEAD_LETTERS}", body, "application/json").json()["status"] == 0


def test_signing_in_as_classic_does(staff: User, local: Cluster) -> None:
    client = Client()
    assert client.get("/login/check.query").json()["data"]["logined"] is False
    wrong = client.post("/login/login.do?username=staff&password=wrong")
    assert wrong.json()["status"] == -1
    foreign = client.post(
        "/login/login.do?username=staff&password=staff-password",
        headers={"Origin": "https://evil.example"},
    )
    assert foreign.json()["status"] == -1
    right = client.post("/login/login.do?username=staff&password=staff-password")
    assert right.json()["data"]["loginUserRole"] == 1
    assert client.get("/login/check.query").json()["data"]["logined"] is True
    assert client.get("/topic/list.query").json()["status"] == 0
    User.objects.create_user("second", password="second-password")
    other = client.post("/login/login.do?username=second&password=second-password")
    assert other.json()["data"]["loginUserName"] == "second", "in the session of another account"
    for _ in range(6):
        Client().post("/login/login.do?username=staff&password=wrong")
    locked = Client().post("/login/login.do?username=staff&password=staff-password")
    assert locked.json()["status"] == -1, "several wrong ones make a rest here too"
