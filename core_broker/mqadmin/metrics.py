"""exportMetrics: rates, counts, disk usage and clients of a cluster as a JSON file."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.topics import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.exports import FILE_HELP, export, export_path, user_groups, user_topics
from core_broker.mqadmin.lookup import brokers_of_cluster, group_connection
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.statistics import TOPIC_PUT_NUMS, day_count
from core_broker.remoting.codes import PROTOCOL_VERSION
from core_broker.remoting.versions import version_name


@command("exportMetrics")
@text("-c", "--clusterName", required=True, help="choose a cluster to export")
@text("-f", "--filePath", help=FILE_HELP.format("metrics.json"))
async def export_metrics(session: Session, cluster_name: str, file_path: str | None) -> None:
    """Exports the metrics of each master. Unreachable brokers are reported and left out."""
    reports: dict[str, Any] = {}
    total_tps: Counter[str] = Counter()
    total_day: Counter[str] = Counter()
    for broker in brokers_of_cluster(await session.admin.cluster_info(), cluster_name):
        if broker.master_addr is None:
            continue
        try:
            report = await _report(session.admin, broker.master_addr)
        except GantryError as error:
            session.failed(error)
            continue
        reports[broker.broker_name] = report
        quota = report["runtimeQuota"]
        for name, value in quota["tps"].items():
            total_tps[f"total{name[0].upper()}{name[1:]}"] += value
        total_day.update(quota["oneDayNum"])
    totals = {"totalTps": dict(total_tps), "totalOneDayNum": dict(total_day)}
    content = {"evaluateReport": reports, "totalData": totals}
    await export(session, export_path(file_path, "metrics.json"), content)


async def _report(admin: AdminClient, addr: str) -> dict[str, Any]:
    table = await admin.runtime_info(addr)
    settings = await admin.broker_config(addr)
    groups = await user_groups(admin, addr)
    topics = await user_topics(admin, addr)
    return {
        "runtimeEnv": {
            "cpuNum": settings.get("clientCallbackExecutorThreads"),
            "totalMemKBytes": table.get("totalMemKBytes"),
        },
        "runtimeQuota": {
            "diskRatio": {
                "commitLogDiskRatio": table.get("commitLogDiskRatio"),
                "consumeQueueDiskRatio": table.get("consumeQueueDiskRatio"),
            },
            **await _rates(admin, addr, table),
            "messageAverageSize": table.get("putMessageAverageSize"),
            "topicSize": len(topics),
            "groupSize": len(groups),
        },
        "runtimeVersion": {
            "rocketmqVersion": version_name(PROTOCOL_VERSION),
            "clientInfo": await _clients(admin, groups),
        },
    }


async def _rates(admin: AdminClient, addr: str, table: Mapping[str, str]) -> dict[str, Any]:
    trans_tps, trans_day = await _topic(admin, addr, TRANS_HALF_TOPIC)
    delay_tps, delay_day = await _topic(admin, addr, SCHEDULE_TOPIC)
    return {
        "tps": {
            "normalInTps": _first(table.get("putTps")),
            "normalOutTps": _first(table.get("getTransferedTps") or table.get("getTransferredTps")),
            "transInTps": trans_tps,
            "scheduleInTps": delay_tps,
        },
        "oneDayNum": {
            "normalOneDayInNum": _yesterday(table, "msgPutTotal"),
            "normalOneDayOutNum": _yesterday(table, "msgGetTotal"),
            "transOneDayInNum": trans_day,
            "scheduleOneDayInNum": delay_day,
        },
    }


async def _topic(admin: AdminClient, addr: str, topic: str) -> tuple[float, int]:
    """Return rate and count of a topic; zeroes for a broker without statistics of the topic."""
    try:
        data = await admin.broker_stats(addr, TOPIC_PUT_NUMS, topic)
    except RequestRefused:
        return 0.0, 0
    return data.stats_minute.tps, day_count(data)


async def _clients(admin: AdminClient, groups: Mapping[str, object]) -> list[str]:
    """Return the distinct languages and versions of all consumers, sorted."""
    clients: set[str] = set()
    for group in groups:
        try:
            connection = await group_connection(admin, group)
        except GantryError:
            continue  # the group is offline
        clients |= {
            f"{client.language}%{version_name(client.version)}"
            for client in connection.connection_set
        }
    return sorted(clients)


def _first(rates: str | None) -> float:
    """Return the first of the three rates: the rate of the last ten seconds."""
    try:
        return float((rates or "0").split()[0])
    except (ValueError, IndexError):
        return 0.0


def _yesterday(table: Mapping[str, str], counter: str) -> int:
    try:
        return int(table[f"{counter}TodayMorning"]) - int(table[f"{counter}YesterdayMorning"])
    except (KeyError, ValueError):
        return 0
