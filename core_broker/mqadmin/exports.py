"""exportMetadata and exportConfigs: topics, groups and settings of a cluster as JSON files."""

from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from core_broker.client.admin import AdminClient
from core_broker.client.identity import now_ms
from core_broker.definitions.cluster import TOOL_GROUPS
from core_broker.errors import ClientError
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX, is_system_group
from core_broker.mqadmin.command import command, switch, text
from core_broker.mqadmin.files import default_folder, write_file
from core_broker.mqadmin.lookup import brokers_of_cluster, masters
from core_broker.mqadmin.output import pretty
from core_broker.mqadmin.session import Session
from core_broker.remoting.bodies import SubscriptionGroupConfig, TopicConfig

FILE_HELP: Final = "export {} path | default /tmp/rocketmq/export"

#: The broker settings that exportConfigs writes, for comparing clusters.
CONFIG_KEYS: Final = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime"),
    *("filterServerNums", "flushDiskType", "maxMessageSize", "messageDelayLevel"),
    *("msgTraceTopicName", "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS"),
    *("autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)


async def user_topics(
    admin: AdminClient, addr: str, *, special: bool = False
) -> dict[str, TopicConfig]:
    """Return the topics except the broker's system topics, sorted by name.

    Retry and dead-letter topics are included only with ``special``.
    """
    system = set(await admin.system_topics(addr))
    return {
        topic: config
        for topic, config in sorted((await admin.topic_configs(addr)).items())
        if topic not in system and (special or not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)))
    }


async def user_groups(admin: AdminClient, addr: str) -> dict[str, SubscriptionGroupConfig]:
    """Return the groups except those of the broker and of RocketMQ's tools, sorted by name."""
    return {
        group: config
        for group, config in sorted((await admin.group_configs(addr)).items())
        if not is_system_group(group) and group not in TOOL_GROUPS
    }


def export_path(folder: str | None, name: str) -> Path:
    return (Path(folder) if folder else default_folder("export")) / name


async def export(session: Session, path: Path, content: Any) -> None:
    """Write a document as indented JSON and print the path."""
    await write_file(path, (pretty(content) + "\n").encode())
    session.out.show({"path": str(path)}, [f"export {path} success"])


@command("exportMetadata")
@text("-c", "--clusterName", help="choose a cluster to export")
@text("-b", "--brokerAddr", help="choose a broker to export")
@text("-f", "--filePath", help=FILE_HELP.format("metadata.json"))
@switch("-t", "--topic", help="only export topic metadata")
@switch("-g", "--subscriptionGroup", help="only export subscriptionGroup metadata")
@switch("-s", "--specialTopic", help="need retryTopic and dlqTopic")
async def export_metadata(
    session: Session,
    cluster_name: str | None,
    broker_addr: str | None,
    file_path: str | None,
    topic: bool,
    subscription_group: bool,
    special_topic: bool,
) -> None:
    """Exports topics and groups. For a cluster, the queue counts are summed over all masters."""
    if not cluster_name and not broker_addr:
        raise ClientError("Give one of -b/--brokerAddr and -c/--clusterName.")
    addrs = await masters(session.admin, broker_addr, cluster_name)
    result: dict[str, Any] = {}
    if topic or not subscription_group:
        result["topicConfigTable"] = await _all_topics(session.admin, addrs, special=special_topic)
    if not topic:
        result["subscriptionGroupTable"] = await _all_groups(session.admin, addrs)
    result["exportTime"] = now_ms()
    name = "topic" if topic else "subscriptionGroup" if subscription_group else "metadata"
    await export(session, export_path(file_path, f"{name}.json"), result)


async def _all_topics(
    admin: AdminClient, addrs: list[str], *, special: bool
) -> dict[str, TopicConfig]:
    merged: dict[str, TopicConfig] = {}
    for addr in addrs:
        for name, config in (await user_topics(admin, addr, special=special)).items():
            before = merged.get(name)
            merged[name] = (
                config
                if before is None
                else replace(
                    config,
                    read_queue_nums=config.read_queue_nums + before.read_queue_nums,
                    write_queue_nums=config.write_queue_nums + before.write_queue_nums,
                )
            )
    return merged


async def _all_groups(admin: AdminClient, addrs: list[str]) -> dict[str, SubscriptionGroupConfig]:
    merged: dict[str, SubscriptionGroupConfig] = {}
    for addr in addrs:
        for name, config in (await user_groups(admin, addr)).items():
            before = merged.get(name)
            merged[name] = (
                config
                if before is None
                else replace(
                    config, retry_queue_nums=config.retry_queue_nums + before.retry_queue_nums
                )
            )
    return merged


@command("exportConfigs")
@text("-c", "--clusterName", required=True, help="choose a cluster to export")
@text("-f", "--filePath", help=FILE_HELP.format("configs.json"))
async def export_configs(session: Session, cluster_name: str, file_path: str | None) -> None:
    """Exports the masters' settings relevant to clients, and the size of the cluster."""
    brokers = brokers_of_cluster(await session.admin.cluster_info(), cluster_name)
    configs = {}
    for broker in brokers:
        if broker.master_addr:
            settings = await session.admin.broker_config(broker.master_addr)
            chosen = {key: settings[key] for key in CONFIG_KEYS if key in settings}
            configs[broker.broker_name] = chosen
    scale = {
        "namesrvSize": len(session.admin.namesrv_addrs),
        "masterBrokerSize": len(configs),
        "slaveBrokerSize": sum(len(broker.broker_addrs) for broker in brokers) - len(configs),
    }
    content = {"brokerConfigs": configs, "clusterScale": scale}
    await export(session, export_path(file_path, "configs.json"), content)
