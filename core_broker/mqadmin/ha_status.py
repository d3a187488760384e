"""haStatus: the slaves of a master and their progress (code 907); resetMasterFlushOffset.

Compatible with HAStatusSubCommand and ResetMasterFlushOffsetSubCommand of RocketMQ 5.3.3.
"""

from collections.abc import Iterator
from typing import Final

from core_broker.errors import ClientError, GantryError
from core_broker.mqadmin.command import LONG_MAX, command, number, rounds, text
from core_broker.mqadmin.lookup import masters
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.polling import poll
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.times import date_time
from core_broker.remoting.bodies import HARuntimeInfo

KIB: Final = 1024

_SLAVES: Final = Table(
    "%-32s  %-16d %16d %16.2f %16s %16d",
    [
        Column("addr", "#SlaveAddr"),
        Column("slaveAckOffset", "#SlaveAckOffset", int),
        Column("diff", "#Diff", int),
        Column("transferredByteInSecond", "#TransferSpeed(KB/s)", lambda value: value / KIB),
        Column("inSync", "#Status", lambda value: "OK" if value else "Fall Behind"),
        Column("transferFromWhere", "#TransferFromWhere", int),
    ],
    "%-32s  %-16s %16s %16s %16s %16s",
)


@command("haStatus")
@text("-c", "--clusterName", help="which cluster")
@text("-b", "--brokerAddr", help="which broker to fetch")
@number("-i", "--interval", high=86_400, help="the interval(second) of get info")
@rounds()
async def ha_status(
    session: Session,
    cluster_name: str | None,
    broker_addr: str | None,
    interval: int | None,
    rounds: int,
) -> None:
    """Prints the state of one broker, or of all masters of a cluster, once or every --interval."""
    if not broker_addr and not cluster_name:
        raise ClientError("Give one of -b/--brokerAddr and -c/--clusterName.")
    async for _ in poll(interval, rounds):
        brokers, lines = {}, []
        for addr in await masters(session.admin, broker_addr, cluster_name):
            try:
                brokers[addr] = await session.admin.ha_status(addr)
            except GantryError as error:
                session.failed(error)
                continue
            lines += list(_lines(addr, brokers[addr]))
        session.out.show({"brokers": brokers}, lines)


@command("resetMasterFlushOffset")
@text("-b", "--brokerAddr", required=True, help="which broker to reset")
@number("-o", "--offset", high=LONG_MAX, required=True, help="the offset to reset at")
async def reset_master_flush_offset(session: Session, broker_addr: str, offset: int) -> None:
    """Sets the number that haStatus shows for a slave's master; a master ignores it."""
    await session.admin.reset_master_flush_offset(broker_addr, offset)
    document = {"brokerAddr": broker_addr, "offset": offset}
    session.out.show(document, [f"reset master flush offset to {offset} success"])


def _lines(addr: str, info: HARuntimeInfo) -> Iterator[str]:
    yield ""
    if not info.master:
        yield from _slave_lines(info)
        return
    yield f"#MasterAddr\t{addr}"
    yield f"#MasterCommitLogMaxOffset\t{info.master_commit_log_max_offset}"
    yield f"#SlaveNum\t{len(info.ha_connection_info)}"
    yield f"#InSyncSlaveNum\t{info.in_sync_slave_nums}"
    yield from _SLAVES.lines(
        {
            "addr": slave.addr,
            "slaveAckOffset": slave.slave_ack_offset,
            "diff": slave.diff,
            "transferredByteInSecond": slave.transferred_byte_in_second,
            "inSync": slave.in_sync,
            "transferFromWhere": slave.transfer_from_where,
        }
        for slave in info.ha_connection_info
    )


def _slave_lines(info: HARuntimeInfo) -> Iterator[str]:
    client = info.ha_client_runtime_info
    yield f"#MasterAddr\t{client.master_addr}"
    yield f"#CommitLogMaxOffset\t{client.max_offset}"
    yield f"#TransferSpeed(KB/s)\t{client.transferred_byte_in_second / KIB:.2f}"
    yield f"#LastReadTime\t{date_time(client.last_read_timestamp)}"
    yield f"#LastWriteTime\t{date_time(client.last_write_timestamp)}"
    yield f"#MasterFlushOffset\t{client.master_flush_offset}"
