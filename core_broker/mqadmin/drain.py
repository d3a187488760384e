"""drainBroker: prepare the stop of a broker without waiting producers and consumers.

1. Every name server removes the write permission of the broker: producers send to other brokers
   after their next route update.
2. Consumers read what is on the broker. Groups without a connected consumer are not waited for.
3. The broker can be stopped. Its next start registers all permissions again.

A drain that does not end gives the write permission back: after the timeout, an error, SIGINT or
SIGTERM.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.mqadmin.command import command, number, switch, text
from core_broker.mqadmin.lookup import total_diff
from core_broker.mqadmin.session import NotFound, Session

DAY_S: Final = 86_400
TIMEOUT_S_DEFAULT: Final = 600
#: Interval at which RocketMQ's clients ask for routes, pollNameServerInterval.
ROUTE_S_DEFAULT: Final = 30
POLL_S: Final = 1.0
#: A broker whose topics change registers its permissions again, so they are removed again.
WIPE_INTERVAL_S: Final = 10.0


class NotDrained(GantryError):
    """The consumers did not read everything in time."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages on the broker that groups have not consumed, by group with and without members."""

    online: dict[str, int]
    offline: dict[str, int]

    def document(self) -> dict[str, Any]:
        return {"groups": self.online, "offlineGroups": self.offline}


@command("drainBroker", destructive=True)
@text("-b", "--brokerName", required=True, help="broker name")
@number(
    "-t",
    "--timeoutSeconds",
    low=1,
    high=DAY_S,
    default=TIMEOUT_S_DEFAULT,
    help=f"maximum wait for consumers | default {TIMEOUT_S_DEFAULT}",
)
@number(
    "-r",
    "--routeSeconds",
    high=DAY_S,
    default=ROUTE_S_DEFAULT,
    help=f"interval at which producers ask for routes | default {ROUTE_S_DEFAULT}",
)
@switch("-f", "--force", help="also drain the only broker of a cluster")
async def drain_broker(
    session: Session, broker_name: str, timeout_seconds: int, route_seconds: int, force: bool
) -> None:
    """Prints the messages that consumers still have to read. Stop the broker afterwards.

    After the timeout, an error or Ctrl-C the broker gets the write permission back.
    """
    addr = await _master(session, broker_name, is_forced=force)
    servers = session.admin.namesrv_addrs
    if session.dry_run:
        backlog = await _backlog(session, addr)
        document = {"brokerName": broker_name, "drained": False, "dryRun": True}
        lines = [f"[dry run] wipe write perm of broker[{broker_name}] in {', '.join(servers)}"]
        session.out.show(document | backlog.document(), [*lines, _line(backlog)])
        return
    _end_on_sigterm()
    try:
        await _wipe(session, servers, broker_name)
        backlog = await _until_consumed(
            session, addr, broker_name, timeout_s=timeout_seconds, route_s=route_seconds
        )
    except BaseException:
        await _give_back(session, servers, broker_name)
        raise
    document = {"brokerName": broker_name, "drained": True, "dryRun": False}
    lines = [
        f"{broker_name} is drained. Stop the broker: its next start registers the write permission "
        "again.",
        f"To let the broker run on: mqadmin addWritePerm -b {broker_name}",
    ]
    session.out.show(document | backlog.document(), lines)


async def _master(session: Session, name: str, *, is_forced: bool) -> str:
    """Return the address of the broker's master; raise NotFound where sends would fail."""
    info = await session.admin.cluster_info()
    broker = info.broker_addr_table.get(name)
    if broker is None or broker.master_addr is None:
        raise NotFound(f"The name server knows no master of the broker {name}.")
    others = [
        other
        for other in info.cluster_addr_table.get(broker.cluster, [])
        if other != name and other in info.broker_addr_table
        if info.broker_addr_table[other].master_addr
    ]
    if not others and not is_forced:
        raise NotFound(
            f"{name} is the only broker of the cluster {broker.cluster}: every send would fail "
            "until its next start. Give --force to drain it all the same."
        )
    return broker.master_addr


async def _wipe(session: Session, servers: Sequence[str], name: str) -> None:
    for server in servers:
        await session.admin.wipe_write_perm(name, server)


async def _give_back(session: Session, servers: Sequence[str], name: str) -> None:
    for server in servers:
        try:
            await session.admin.add_write_perm(name, server)
        except GantryError as error:
            session.failed(error)
        else:
            session.warn(f"{name} has its write permission again in name server[{server}].")


async def _until_consumed(
    session: Session, addr: str, name: str, *, timeout_s: float, route_s: float
) -> Backlog:
    """Wait until producers know the new route and no group with members has a backlog."""
    began = wiped = time.monotonic()
    printed = None
    while True:
        backlog = None
        try:
            backlog = await _backlog(session, addr)
        except TransportError as error:
            session.warn(f"The backlog is unknown: {error}")
        now = time.monotonic()
        if backlog is not None and not backlog.online and now - began >= route_s:
            return backlog
        if backlog is not None and backlog != printed:
            document = {"brokerName": name, "drained": False, "dryRun": False}
            session.out.show(document | backlog.document(), [_line(backlog)])
            printed = backlog
        if now - began >= timeout_s:
            left = "unknown" if backlog is None else _line(backlog)
            raise NotDrained(f"{name} is not drained after {timeout_s} s: {left}")
        if now - wiped >= WIPE_INTERVAL_S:
            await _wipe(session, session.admin.namesrv_addrs, name)
            wiped = now
        await asyncio.sleep(POLL_S)


async def _backlog(session: Session, addr: str) -> Backlog:
    stats = await session.admin.broker_consume_stats(addr)
    online: dict[str, int] = {}
    offline: dict[str, int] = {}
    for group, parts in sorted(stats.items()):
        lag = sum(total_diff(part.offset_table) for part in parts)
        if lag > 0:
            found = online if await _has_members(session, addr, group) else offline
            found[group] = lag
    return Backlog(online, offline)


async def _has_members(session: Session, addr: str, group: str) -> bool:
    try:
        return bool((await session.admin.consumer_connections(addr, group)).connection_set)
    except RequestRefused:
        return False


def _line(backlog: Backlog) -> str:
    waits = ", ".join(f"{group}: {lag}" for group, lag in backlog.online.items())
    line = f"messages to consume: {waits or 0}"
    left = ", ".join(f"{group}: {lag}" for group, lag in backlog.offline.items())
    return f"{line}; not waited for, without consumers: {left}" if left else line


def _end_on_sigterm() -> None:
    """Let SIGTERM cancel the command, so that the write permission comes back."""
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
