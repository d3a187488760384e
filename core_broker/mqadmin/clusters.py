"""clusterList: load, disk usage and daily message counts of every broker."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, number, rounds, switch
from core_broker.mqadmin.lookup import brokers_of_cluster
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.polling import poll
from core_broker.mqadmin.session import Session


def _or_dash(layout: str) -> Callable[[Any], str]:
    """Format a value missing from the broker's answer as a dash, never as a zero."""
    return lambda value: "-" if value is None else layout % value


_TOTALS = Table(
    "%-16s  %-32s %14s %14s %14s %14s",
    [
        Column("clusterName", "#Cluster Name"),
        Column("brokerName", "#Broker Name"),
        Column("inTotalYesterday", "#InTotalYest", _or_dash("%d")),
        Column("outTotalYesterday", "#OutTotalYest", _or_dash("%d")),
        Column("inTotalToday", "#InTotalToday", _or_dash("%d")),
        Column("outTotalToday", "#OutTotalToday", _or_dash("%d")),
    ],
)


_LOADS = Table(
    "%-16s  %-22s  %-4s  %-22s %-16s %19s %19s %10s %5s %6s",
    [
        Column("clusterName", "#Cluster Name"),
        Column("brokerName", "#Broker Name"),
        Column("brokerId", "#BID"),
        Column("addr", "#Addr"),
        Column("version", "#Version", _or_dash("%s")),
        Column("inLoad", "#InTPS(LOAD)"),
        Column("outLoad", "#OutTPS(LOAD)"),
        Column("pageCacheLockTimeMills", "#PCWait(ms)", _or_dash("%s")),
        Column("earliestMessageHours", "#Hour", _or_dash("%2.2f")),
        Column("commitLogDiskRatio", "#SPACE", _or_dash("%.4f")),
    ],
)


@command("clusterList")
@switch("-m", "--moreStats", help="Print more stats")
@number("-i", "--interval", high=86_400, help="specify intervals numbers, it is in seconds")
@rounds()
async def cluster_list(
    session: Session, more_stats: bool, interval: int | None, rounds: int
) -> None:
    """Prints the list once, or every --interval seconds until Ctrl-C."""
    table, row = (_TOTALS, _totals) if more_stats else (_LOADS, _load)
    async for _ in poll(interval, rounds):
        records = await _rows(session, row)
        document = {"brokers": [_without_texts(record) for record in records]}
        session.out.show(document, table.lines(records))


async def _rows(
    session: Session, row: Callable[[Mapping[str, str]], dict[str, Any]]
) -> list[Record]:
    info = await session.admin.cluster_info()
    records: list[Record] = []
    for cluster in sorted(info.cluster_addr_table):
        for broker in brokers_of_cluster(info, cluster):
            for broker_id, addr in sorted(broker.broker_addrs.items()):
                try:
                    columns = row(await session.admin.runtime_info(addr))
                except GantryError as error:
                    session.failed(error)
                    columns = row({})
                broker_columns = {
                    "clusterName": cluster,
                    "brokerName": broker.broker_name,
                    "brokerId": broker_id,
                    "addr": addr,
                }
                records.append(broker_columns | columns)
    return records


def _totals(table: Mapping[str, str]) -> dict[str, Any]:
    """Return differences between the counters that a broker records at midnight."""

    def between(kind: str, start: str, end: str) -> int | None:
        first, last = (_number(table, f"msg{kind}Total{moment}") for moment in (start, end))
        return None if first is None or last is None else int(last - first)

    return {
        "inTotalYesterday": between("Put", "YesterdayMorning", "TodayMorning"),
        "outTotalYesterday": between("Get", "YesterdayMorning", "TodayMorning"),
        "inTotalToday": between("Put", "TodayMorning", "TodayNow"),
        "outTotalToday": between("Get", "TodayMorning", "TodayNow"),
    }


def _load(table: Mapping[str, str]) -> dict[str, Any]:
    transferred = "getTransferedTps" if "getTransferedTps" in table else "getTransferredTps"
    in_tps, out_tps = _number(table, "putTps"), _number(table, transferred)
    earliest_ms = _number(table, "earliestMessageTimeStamp")
    return {
        "version": table.get("brokerVersionDesc"),
        "inTps": in_tps,
        "outTps": out_tps,
        "inLoad": _load_text(in_tps, table, "sendThreadPoolQueue"),
        "outLoad": _load_text(out_tps, table, "pullThreadPoolQueue"),
        "pageCacheLockTimeMills": table.get("pageCacheLockTimeMills"),
        "earliestMessageHours": _hours_since(earliest_ms),
        "commitLogDiskRatio": _number(table, "commitLogDiskRatio"),
    }


def _load_text(tps: float | None, table: Mapping[str, str], queue: str) -> str:
    if tps is None:
        return "-"
    size, wait = table.get(f"{queue}Size", ""), table.get(f"{queue}HeadWaitTimeMills", "")
    return f"{tps:9.2f}({size},{wait}ms)"


def _hours_since(moment_ms: float | None) -> float | None:
    if moment_ms is None:
        return None
    if moment_ms < 0:  # the store is empty
        return 0.0
    return round((time.time() * 1000 - moment_ms) / 3_600_000, 2)


def _number(table: Mapping[str, str], key: str) -> float | None:
    """Return the first number of a value: a rate has three numbers (10 s, 1 min, 10 min)."""
    try:
        return float(table[key].split()[0])
    except (KeyError, ValueError, IndexError):
        return None


def _without_texts(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in {"inLoad", "outLoad"}}
