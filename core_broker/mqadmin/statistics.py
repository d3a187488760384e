"""statsAll: produce rate of each topic, consume rate and lag of each group of the topic."""

from typing import Any

from core_broker.client.admin import AdminClient
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.topics import DLQ_PREFIX, RETRY_PREFIX
from core_broker.mqadmin.command import command, switch, text
from core_broker.mqadmin.lookup import addrs_of_route, group_stats, total_diff
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.session import NotFound, Session
from core_broker.remoting.bodies import BrokerStatsData, TopicRouteData

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
GROUP_GET_NUMS = "GROUP_GET_NUMS"

_STATS = Table(
    "%-64s  %-64s %12s %11s %11s %14s %14s",
    [
        Column("topic", "#Topic"),
        Column("consumerGroup", "#Consumer Group", lambda group: group or ""),
        Column("accumulation", "#Accumulation", lambda count: 0 if count is None else count),
        Column("inTps", "#InTPS", lambda tps: f"{tps:.2f}"),
        Column("outTps", "#OutTPS", lambda tps: "" if tps is None else f"{tps:.2f}"),
        Column("inMsg24Hour", "#InMsg24Hour"),
        Column(
            "outMsg24Hour", "#OutMsg24Hour", lambda count: "NO_CONSUMER" if count is None else count
        ),
    ],
)


@command("statsAll")
@switch("-a", "--activeTopic", help="print active topic only")
@text("-t", "--topic", help="print select topic only")
async def stats_all(session: Session, active_topic: bool, topic: str | None) -> None:
    """Prints rates of the last minute and sums of the last 24 hours.

    The sums of a broker running for less than a day are those of the last hour or minute.
    """
    topics = [
        name
        for name in await session.admin.topic_list()
        if not name.startswith((RETRY_PREFIX, DLQ_PREFIX)) and topic in {None, name}
    ]
    if topic is not None and not topics:
        raise NotFound(f"The name server knows no topic {topic}.")
    records = []
    for name in topics:
        try:
            records += await _topic_records(session.admin, name)
        except GantryError as error:
            session.failed(error)
    if active_topic:
        records = [row for row in records if row["inMsg24Hour"] or row["outMsg24Hour"]]
    session.out.show({"topics": records}, _STATS.lines(records))


async def _topic_records(admin: AdminClient, topic: str) -> list[dict[str, Any]]:
    """Return one record for each group of the topic, or one record without a group."""
    route = await admin.topic_route(topic)
    groups: set[str] = set()
    for addr in addrs_of_route(route).values():
        groups |= set(await admin.groups_of_topic(addr, topic))
    in_tps, in_count = await _sums(admin, route, TOPIC_PUT_NUMS, topic)
    produced = {"topic": topic, "inTps": in_tps, "inMsg24Hour": in_count}
    if not groups:
        no_group = {"consumerGroup": None, "accumulation": 0, "outTps": None, "outMsg24Hour": None}
        return [produced | no_group]
    records = []
    for group in sorted(groups):
        out_tps, out_count = await _sums(admin, route, GROUP_GET_NUMS, f"{topic}@{group}")
        consumed = {"consumerGroup": group, "outTps": out_tps, "outMsg24Hour": out_count}
        lag = {"accumulation": await _accumulation(admin, group, topic)}
        records.append(produced | consumed | lag)
    return records


async def _accumulation(admin: AdminClient, group: str, topic: str) -> int | None:
    """Return the lag of a group in a topic; None for a group without offsets."""
    try:
        return max(total_diff((await group_stats(admin, group, topic)).offset_table), 0)
    except GantryError:
        return None


async def _sums(
    admin: AdminClient, route: TopicRouteData, name: str, key: str
) -> tuple[float, int]:
    """Return rate and count, summed over the masters with the statistics item.

    A broker refuses the request for an item without data.
    """
    tps, count = 0.0, 0
    for broker in route.broker_datas:
        if broker.master_addr is None:
            continue
        try:
            data = await admin.broker_stats(broker.master_addr, name, key)
        except RequestRefused:
            continue
        tps += data.stats_minute.tps
        count += day_count(data)
    return tps, count


def day_count(data: BrokerStatsData) -> int:
    """Return the sum of 24 hours; a young broker has only the sum of the last hour or minute."""
    return data.stats_day.sum or data.stats_hour.sum or data.stats_minute.sum
