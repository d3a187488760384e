"""Values in Java's text format, compared with lines of the Java 4.9.8 tool."""

from core_broker.client.admin import AccessAccount
from core_broker.client.results import SendResult, SendStatus
from core_broker.message.model import MessageExt
from core_broker.mqadmin.java_texts import (
    account_text,
    directly_text,
    group_config_text,
    message_text,
    perm_text,
    process_queue_text,
    producer_text,
    send_result_text,
    topic_config_text,
    unit_text,
)
from core_broker.remoting.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumeQueueData,
    MessageQueue,
    ProcessQueueInfo,
    ProducerInfo,
    SubscriptionGroupConfig,
    TopicConfig,
)


def test_configurations() -> None:
    assert topic_config_text(TopicConfig(topic_name="TA", read_queue_nums=2, perm=4)) == (
        "TopicConfig [topicName=TA, readQueueNums=2, writeQueueNums=16, perm=R--, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
    )
    assert [perm_text(perm) for perm in (0, 2, 4, 6, 7)] == ["---", "-W-", "R--", "RW-", "RWX"]
    assert group_config_text(SubscriptionGroupConfig(group_name="GX", retry_max_times=3)) == (
        "SubscriptionGroupConfig [groupName=GX, consumeEnable=true, consumeFromMinEnable=true, "
        "consumeBroadcastEnable=true, retryQueueNums=1, retryMaxTimes=3, brokerId=0, "
        "whichBrokerWhenConsumeSlowly=1, notifyConsumerIdsChangedEnable=true]"
    )


def test_results() -> None:
    queue = MessageQueue(topic="T", broker_name="b", queue_id=1)
    assert send_result_text(SendResult(SendStatus.SEND_OK, "ID", "OFF", queue, 7)) == (
        "SendResult [sendStatus=SEND_OK, msgId=ID, offsetMsgId=OFF, messageQueue=MessageQueue "
        "[topic=T, brokerName=b, queueId=1], queueOffset=7]"
    )
    result = ConsumeMessageDirectlyResult(consume_result="CR_SUCCESS", spent_time_mills=45)
    assert directly_text(result) == (
        "ConsumeMessageDirectlyResult [order=false, autoCommit=true, consumeResult=CR_SUCCESS, "
        "remark=null, spentTimeMills=45]"
    )


def test_states() -> None:
    assert unit_text(ConsumeQueueData(physic_offset=1477, physic_size=201, tags_code=2598919)) == (
        "ConsumeQueueData{physicOffset=1477, physicSize=201, tagsCode=2598919, "
        "extendDataJson='null', bitMap='null', eval=false, msg='null'}"
    )
    text = process_queue_text(ProcessQueueInfo(commit_offset=10))
    assert text.startswith(
        "ProcessQueueInfo [commitOffset=10, cachedMsgMinOffset=0, cachedMsgMaxOffset=0, "
        "cachedMsgCount=0, cachedMsgSizeInMiB=0, transactionMsgMinOffset=0, "
    )
    producer = ProducerInfo(
        client_id="c", remote_ip="1.2.3.4:5", language="JAVA", version=409, last_update_timestamp=6
    )
    assert producer_text(producer) == (
        "clientId=c,remoteIP=1.2.3.4:5, language=JAVA, version=409, lastUpdateTimestamp=6"
    )


def test_a_secret_is_never_printed() -> None:
    text = account_text(AccessAccount("the-access", "the-secret", topic_perms=["T=PUB"]))
    assert "the-secret" not in text
    assert "topicPerms=[T=PUB]" in text


def test_a_message() -> None:
    message = MessageExt(
        topic="TA",
        body=b"a\xff",
        properties={"KEYS": "k"},
        queue_id=1,
        queue_offset=2,
        offset_physical=3,
        store_size=193,
        flag=0,
        sys_flag=0,
        born_timestamp=4,
        born_host=("127.0.0.1", 5),
        store_timestamp=6,
        store_host=("127.0.0.1", 20911),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=7,
        broker_name="broker-a",
    )
    assert message_text(message, message.body) == (
        "MessageExt [brokerName=broker-a, queueId=1, storeSize=193, queueOffset=2, sysFlag=0, "
        "bornTimestamp=4, bornHost=/127.0.0.1:5, storeTimestamp=6, storeHost=/127.0.0.1:20911, "
        "msgId=7F000001000051AF0000000000000003, commitLogOffset=3, bodyCRC=7, reconsumeTimes=0, "
        "preparedTransactionOffset=0, toString()=Message{topic='TA', flag=0, "
        "properties={KEYS=k}, body=[97, -1], transactionId='null'}]"
    )
