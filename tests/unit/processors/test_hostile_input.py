"""Every request code with hostile input: the only effect is an answer with an error.

The tests take the codes from the table of handlers, so new codes are tested as well.
"""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.processors.table import RequestTable
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import BrokerHarness

#: Codes without required header fields and body.
NEED_NOTHING = {
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
    RequestCode.GET_ALL_PRODUCER_INFO,
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.UPDATE_BROKER_CONFIG,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_BROKER_HA_STATUS,
    RequestCode.EXCHANGE_BROKER_HA_INFO,
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
    RequestCode.GET_BROKER_CONSUME_STATS,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.GET_TOPIC_INVENTORY,
    RequestCode.GET_GROUP_INVENTORY,
    RequestCode.GET_ALL_CLIENTS,
}
#: Codes of access control, with aclEnable=false.
SWITCHED_OFF = {50: 209, 51: 210, 53: 211, 60005: 209}
CODES = [
    *(10, 11, 12, 14, 15, 17, 21, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36, 38, 41, 42, 43, 45),
    *(46, 200, 201, 202, 203, 204, 207, 208, 215, 222, 223, 300, 303, 305, 306, 307, 309, 310),
    *(37, 50, 51, 52, 53, 54, 308, 314, 323, 324, 325),
    *(18, 225, 343, 345, 351, 352, 400, 402, 906, 907, 908, 1007, 1008),
    *(315, 316, 317, 320, 321, 328, 329, 361, 60000, 60001, 60002, 60003, 60004, 60005, 60006),
    *range(3001, 3011),
]
NAMES = [
    *("username", "subject", "filter", "subjectFilter", "resourceFilter", "resource", "policyType"),
    *("producerGroup", "consumerGroup", "group", "groupName", "topic", "defaultTopic", "queueId"),
    *("queueOffset", "offset", "maxMsgNums", "sysFlag", "commitOffset", "subVersion", "key"),
    *("suspendTimeoutMillis", "subscription", "expressionType", "bornTimestamp", "flag", "maxNum"),
    *("properties", "reconsumeTimes", "maxReconsumeTimes", "batch", "unitMode", "delayLevel"),
    *("timestamp", "beginTimestamp", "endTimestamp", "clientID", "clientId", "msgId", "statsName"),
    *("statsKey", "readQueueNums", "writeQueueNums", "perm", "topicFilterType", "index", "count"),
    *("commitLogOffset", "tranStateTableOffset", "commitOrRollback", "fromTransactionCheck"),
    *(
        "masterFlushOffset",
        "defaultTopicQueueNums",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
        "h",
        "i",
        "j",
        "k",
        "l",
        "m",
    ),
]
VALUES = st.sampled_from(
    [
        *("", "0", "-1", "1", "2147483647", "-2147483648", "9223372036854775807", "1e9", "0x10"),
        *("99999999999999999999", "true", "false", "null", "NaN", "T", "%RETRY%CG", "%DLQ%CG"),
        *(
            "TBW102",
            "SCHEDULE_TOPIC_XXXX",
            "../../etc/passwd",
            "a b",
            "x" * 300,
            "\x00",
            "\x01\x02",
        ),
        *("ü", "*", "A || B", "||", "CG", "DELAY\x01-1", "DELAY\x01999\x02TRAN_MSG\x01true"),
        *("SQL92", "a > 1", "T = 'x' OR (", "(" * 5000, "NOT " * 5000),
        "REAL_TOPIC\x01../x\x02REAL_QID\x01-5\x02DELAY\x011",
    ]
)
FIELDS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=20)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            *(b"{}", b"[]", b"null", b"{" * 200, b"[" * 5000, b'{"a":' * 100, b"\xff\xfe\x00"),
            b'{"clientID":null,"consumerDataSet":[{}]}',
            b'{"clientID":"c","consumerDataSet":[{"groupName":"CG","consumeType":9}]}',
            b'{"clientID":"c","consumerDataSet":[{"groupName":"%RETRY%","subscriptionDataSet":[{}]}]}',
            b'{"consumerGroup":"CG","clientId":"c","mqSet":[{"topic":"T","queueId":-1,"brokerName":""}]}',
            b'{"groupName":"G","retryQueueNums":-5,"retryMaxTimes":-9}',
            b'{"topicConfigList":[{"topicName":"A"},{"topicName":"../x","perm":99}]}',
            b'{"topicConfigList":[{"topicName":"A","readQueueNums":-1}]}',
            b'{"groupConfigList":[{"groupName":"G"},{"groupName":"a b"}]}',
            b'{"groupConfigList":null}',
            b'{"topic":"T","consumerGroup":"CG","clientId":"c","strategyName":"AVG"}',
            b'{"topic":"","consumerGroup":"","clientId":"","strategyName":"","messageModel":7}',
        ]
    ),
)


def is_answer(response: RemotingCommand | None) -> bool:
    return response is not None and isinstance(response.code, int)


def test_the_list_of_codes_is_complete(broker: BrokerHarness) -> None:
    table: RequestTable = broker.requests
    assert sorted(table._handlers) == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
async def test_without_header_and_body(broker: BrokerHarness, code: int) -> None:
    response = await broker.ask(code)
    refusal = SWITCHED_OFF.get(code, 1)
    assert response.code == (0 if code in NEED_NOTHING else refusal), response.remark
    response.encode_head()


@pytest.mark.parametrize("code", [*range(10), 13, 39, 47, 353, 401, 9999, 200050])
async def test_unknown_codes(broker: BrokerHarness, code: int) -> None:
    response = await broker.ask(code)
    assert (response.code, response.remark) == (3, f" request type {code} not supported")


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(requests=st.lists(st.tuples(st.sampled_from(CODES), FIELDS, BODIES), max_size=8))
def test_any_fields_and_any_body_are_answered_and_the_broker_goes_on(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[int, dict[str, str], bytes]]
) -> None:
    async def ask_all() -> None:
        broker = BrokerHarness(
            tmp_path_factory.mktemp("hostile"),
            enable_property_filter=True,
            filter_support_retry=True,
        )
        broker.topic("T")
        try:
            for code, fields, body in requests:
                # Pulls without holding, with the subscription of heartbeats or of the request.
                pulls = {11: {"sysFlag": "0"}, 361: {"sysFlag": "4"}}.get(code, {})
                response = await broker.ask(code, {**fields, **pulls}, body)
                assert is_answer(response)
                response.encode_head()
            broker.delays.deliver_due()
            assert (await broker.send(broker.topic("Fine"), b"still here")).code == 0
            assert len(await broker.messages("Fine")) == 1
            broker.ctx.offsets.encode()
            broker.ctx.topics.encode()
            broker.ctx.groups.encode()
        finally:
            broker.close()

    asyncio.run(ask_all())


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 100_000])
@pytest.mark.parametrize("code", [34, 41, 42, 46, 200])
async def test_json_bombs(broker: BrokerHarness, code: int, body: bytes) -> None:
    assert (await broker.ask(code, body=body)).code == 1
