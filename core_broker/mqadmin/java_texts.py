"""Values in the format of Java's toString, for output lines that scripts may parse. Pure."""

from collections.abc import Mapping
from typing import Any

from core_broker.client.admin import AccessAccount
from core_broker.client.results import SendResult
from core_broker.message.model import Host, MessageExt
from core_broker.mqadmin.times import compact_ms
from core_broker.remoting.bodies import (
    PERM_INHERIT,
    PERM_READ,
    PERM_WRITE,
    ConsumeMessageDirectlyResult,
    ConsumeQueueData,
    MessageQueue,
    ProcessQueueInfo,
    ProducerInfo,
    SubscriptionGroupConfig,
    TopicConfig,
)


def java(value: object) -> str:
    """Return the text of a value, with Java's null, true and false."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def members(*pairs: tuple[str, object]) -> str:
    return ", ".join(f"{name}={java(value)}" for name, value in pairs)


def map_text(values: Mapping[Any, str]) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in values.items()) + "}"


def perm_text(perm: int) -> str:
    bits = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))
    return "".join(letter if perm & bit else "-" for bit, letter in bits)


def host_text(host: Host) -> str:
    ip, port = host
    return f"{ip}:{port}"


def queue_text(queue: MessageQueue) -> str:
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )


def topic_config_text(config: TopicConfig) -> str:
    return "TopicConfig [{}]".format(
        members(
            ("topicName", config.topic_name),
            ("readQueueNums", config.read_queue_nums),
            ("writeQueueNums", config.write_queue_nums),
            ("perm", perm_text(config.perm)),
            ("topicFilterType", config.topic_filter_type),
            ("topicSysFlag", config.topic_sys_flag),
            ("order", config.order),
        )
    )


def group_config_members(config: SubscriptionGroupConfig) -> list[tuple[str, object]]:
    """Return the fields in Java's order; fields of 5.x only when the broker has sent them."""
    fields: list[tuple[str, object]] = [
        ("groupName", config.group_name),
        ("consumeEnable", config.consume_enable),
        ("consumeFromMinEnable", config.consume_from_min_enable),
        ("consumeBroadcastEnable", config.consume_broadcast_enable),
        ("retryQueueNums", config.retry_queue_nums),
        ("retryMaxTimes", config.retry_max_times),
        ("brokerId", config.broker_id),
        ("whichBrokerWhenConsumeSlowly", config.which_broker_when_consume_slowly),
        ("notifyConsumerIdsChangedEnable", config.notify_consumer_ids_changed_enable),
    ]
    newer_fields: list[tuple[str, object]] = [
        ("consumeMessageOrderly", config.consume_message_orderly),
        ("groupSysFlag", config.group_sys_flag),
        ("consumeTimeoutMinute", config.consume_timeout_minute),
    ]
    return fields + [(name, value) for name, value in newer_fields if value is not None]


def group_config_text(config: SubscriptionGroupConfig) -> str:
    return f"SubscriptionGroupConfig [{members(*group_config_members(config))}]"


def account_text(account: AccessAccount) -> str:
    """Return the account without the secret key: terminals and logs keep their output."""
    return "PlainAccessConfig{{{}}}".format(
        members(
            ("accessKey", f"'{account.access_key}'"),
            ("whiteRemoteAddress", account.white_remote_address),
            ("admin", account.admin),
            ("defaultTopicPerm", account.default_topic_perm),
            ("defaultGroupPerm", account.default_group_perm),
            ("topicPerms", _list_text(account.topic_perms)),
            ("groupPerms", _list_text(account.group_perms)),
        )
    )


def _list_text(values: object) -> str:
    return "null" if values is None else f"[{', '.join(map(str, values))}]"  # type: ignore[call-overload]


def send_result_text(result: SendResult) -> str:
    return "SendResult [{}]".format(
        members(
            ("sendStatus", result.status.value),
            ("msgId", result.msg_id),
            ("offsetMsgId", result.offset_msg_id),
            ("messageQueue", queue_text(result.queue)),
            ("queueOffset", result.queue_offset),
        )
    )


def directly_text(result: ConsumeMessageDirectlyResult) -> str:
    return "ConsumeMessageDirectlyResult [{}]".format(
        members(
            ("order", result.order),
            ("autoCommit", result.auto_commit),
            ("consumeResult", result.consume_result),
            ("remark", result.remark),
            ("spentTimeMills", result.spent_time_mills),
        )
    )


def producer_text(producer: ProducerInfo) -> str:
    # Java prints no blank after the first comma.
    return (
        f"clientId={producer.client_id},remoteIP={producer.remote_ip}, "
        f"language={producer.language}, version={producer.version}, "
        f"lastUpdateTimestamp={producer.last_update_timestamp}"
    )


def process_queue_text(info: ProcessQueueInfo) -> str:
    return "ProcessQueueInfo [{}]".format(
        members(
            ("commitOffset", info.commit_offset),
            ("cachedMsgMinOffset", info.cached_msg_min_offset),
            ("cachedMsgMaxOffset", info.cached_msg_max_offset),
            ("cachedMsgCount", info.cached_msg_count),
            ("cachedMsgSizeInMiB", info.cached_msg_size_in_mib),
            ("transactionMsgMinOffset", info.transaction_msg_min_offset),
            ("transactionMsgMaxOffset", info.transaction_msg_max_offset),
            ("transactionMsgCount", info.transaction_msg_count),
            ("locked", info.locked),
            ("tryUnlockTimes", info.try_unlock_times),
            ("lastLockTimestamp", compact_ms(info.last_lock_timestamp)),
            ("droped", info.droped),
            ("lastPullTimestamp", compact_ms(info.last_pull_timestamp)),
            ("lastConsumeTimestamp", compact_ms(info.last_consume_timestamp)),
        )
    )


def unit_text(unit: ConsumeQueueData) -> str:
    return "ConsumeQueueData{{{}}}".format(
        members(
            ("physicOffset", unit.physic_offset),
            ("physicSize", unit.physic_size),
            ("tagsCode", unit.tags_code),
            ("extendDataJson", f"'{java(unit.extend_data_json)}'"),
            ("bitMap", f"'{java(unit.bit_map)}'"),
            ("eval", unit.matches),
            ("msg", f"'{java(unit.msg)}'"),
        )
    )


def message_text(message: MessageExt, body: bytes) -> str:
    """Return all fields in one line, the body as Java's signed bytes (-128 to 127)."""
    numbers = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in body)
    inner = (
        f"Message{{topic='{message.topic}', flag={message.flag}, "
        f"properties={map_text(message.properties)}, body=[{numbers}], transactionId='null'}}"
    )
    return "MessageExt [{}]".format(
        members(
            ("brokerName", message.broker_name),
            ("queueId", message.queue_id),
            ("storeSize", message.store_size),
            ("queueOffset", message.queue_offset),
            ("sysFlag", message.sys_flag),
            ("bornTimestamp", message.born_timestamp),
            ("bornHost", f"/{host_text(message.born_host)}"),
            ("storeTimestamp", message.store_timestamp),
            ("storeHost", f"/{host_text(message.store_host)}"),
            ("msgId", message.offset_msg_id),
            ("commitLogOffset", message.offset_physical),
            ("bodyCRC", message.body_crc),
            ("reconsumeTimes", message.reconsume_times),
            ("preparedTransactionOffset", message.prepared_transaction_offset),
            ("toString()", inner),
        )
    )
