"""Questions about brokers and name servers: registration, rates, disk use and configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers import runtime
from console.gateway.brokers.secrets import shown
from console.gateway.engine.answers import Partial, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.remoting.bodies import ClusterInfo

RATES_FRESH_MS = 900
SETTINGS_FRESH_MS = 5_000


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker process with the metrics of a list. None: the broker did not report the value.

    `in_today` and `out_today` count from midnight in the broker's time zone, or from the start of a
    broker that started later: `today_begins` says which, `today_from_ms` when, where known.
    """

    ref: BrokerRef
    cluster_name: str
    version: str | None
    started_ms: int | None
    in_rate: float | None
    out_rate: float | None
    in_total: int | None
    out_total: int | None
    in_today: int | None
    out_today: int | None
    today_begins: runtime.TodayBegins | None
    today_from_ms: int | None
    disk_ratio: float | None
    disk_total: int | None
    disk_free: int | None
    stored_bytes: int | None
    oldest_message_ms: int | None
    counted_ms: int

    @property
    def role(self) -> str:
        return "master" if self.ref.is_master else "slave"


@dataclass(frozen=True, slots=True)
class BrokerDetail:
    """A broker process with runtime table and settings."""

    row: BrokerRow
    groups: tuple[runtime.DetailGroup, ...]
    table: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NameServer:
    """A name server of the cluster; `failure` is the reason of a missing answer."""

    addr: str
    settings: Mapping[str, str]
    failure: str | None


@question(fresh_for_ms=2_000)
async def cluster_map(session: ClusterSession) -> Partial[ClusterInfo]:
    """The brokers that the name server lists."""
    return Partial(await session.admin.cluster_info())


async def broker_refs(session: ClusterSession) -> tuple[BrokerRef, ...]:
    """Return all broker processes in order of name and id."""
    info = (await session.ask(cluster_map)).value
    return tuple(
        sorted(
            BrokerRef(name, broker_id, addr)
            for name, data in info.broker_addr_table.items()
            for broker_id, addr in data.broker_addrs.items()
        )
    )


async def masters(session: ClusterSession) -> tuple[BrokerRef, ...]:
    """Return one process per broker name: the master, or the first slave where no master is up."""
    first: dict[str, BrokerRef] = {}
    for ref in await broker_refs(session):
        first.setdefault(ref.name, ref)
    return tuple(first.values())


@question(fresh_for_ms=2_000)
async def broker_names(session: ClusterSession) -> Partial[tuple[str, ...]]:
    """The names of the brokers on which topics and groups can be created."""
    return Partial(tuple(ref.name for ref in await masters(session)))


def no_such_broker(name: str) -> NotFound:
    return NotFound(
        format_lazy(_("The name server lists no broker named “{name}”."), name=name),
        hint=_("A broker that stopped is forgotten after two minutes."),
    )


@question(fresh_for_ms=RATES_FRESH_MS)
async def broker_rows(session: ClusterSession) -> Partial[tuple[BrokerRow, ...]]:
    """All brokers with rates, disk use and message counts."""
    info = (await session.ask(cluster_map)).value
    refs = await broker_refs(session)
    tables, failures = await session.fan_out(refs, lambda ref: session.admin.runtime_info(ref.addr))
    return Partial(
        tuple(broker_row(ref, cluster_name(info, ref.name), tables[ref]) for ref in tables),
        failures,
    )


@question(fresh_for_ms=RATES_FRESH_MS)
async def broker_details(session: ClusterSession, name: str) -> Partial[tuple[BrokerDetail, ...]]:
    """The processes of one broker name, master first."""
    info = (await session.ask(cluster_map)).value
    refs = [ref for ref in await broker_refs(session) if ref.name == name]
    if not refs:
        raise no_such_broker(name)

    async def both(ref: BrokerRef) -> tuple[dict[str, str], dict[str, str]]:
        return await session.admin.runtime_info(ref.addr), await session.admin.broker_config(
            ref.addr
        )

    found, failures = await session.fan_out(refs, both)
    return Partial(
        tuple(
            BrokerDetail(
                broker_row(ref, cluster_name(info, name), table),
                runtime.details(table),
                table,
                shown(settings),
            )
            for ref, (table, settings) in found.items()
        ),
        failures,
    )


@question(fresh_for_ms=SETTINGS_FRESH_MS)
async def name_servers(session: ClusterSession) -> Partial[tuple[NameServer, ...]]:
    """All configured name servers, including the unreachable ones."""
    refs = [BrokerRef("name server", 0, addr) for addr in session.admin.namesrv_addrs]
    found, failures = await session.fan_out(
        refs, lambda ref: session.admin.namesrv_config(ref.addr), one_must_answer=False
    )
    reasons = {failure.addr: failure.reason for failure in failures}
    return Partial(
        tuple(
            NameServer(ref.addr, shown(found.get(ref, {})), reasons.get(ref.addr)) for ref in refs
        )
    )


def cluster_name(info: ClusterInfo, broker: str) -> str:
    """Return `brokerClusterName`, which may differ from the cluster's name in this console."""
    data = info.broker_addr_table.get(broker)
    return data.cluster if data else ""


def broker_row(ref: BrokerRef, cluster: str, table: Mapping[str, str]) -> BrokerRow:
    """Read a runtime table. Totals count from the broker's start."""
    begins, from_ms = runtime.today_begins(table)
    in_total = runtime.whole(table, "msgPutTotalTodayNow")
    out_total = runtime.whole(table, "msgGetTotalTodayNow")
    disk_total, disk_free = runtime.capacity(table)
    low = runtime.whole(table, "commitLogMinOffset")
    high = runtime.whole(table, "commitLogMaxOffset")
    return BrokerRow(
        ref=ref,
        cluster_name=cluster,
        version=runtime.version(table),
        started_ms=runtime.whole(table, "bootTimestamp"),
        in_rate=runtime.newest_rate(table, "putTps"),
        # 5.x corrected the spelling of the key.
        out_rate=runtime.newest_rate(table, "getTransferedTps", "getTransferredTps"),
        in_total=in_total,
        out_total=out_total,
        in_today=_since(in_total, runtime.whole(table, "msgPutTotalTodayMorning")),
        out_today=_since(out_total, runtime.whole(table, "msgGetTotalTodayMorning")),
        today_begins=begins,
        today_from_ms=from_ms,
        disk_ratio=runtime.real(table, "commitLogDiskRatio"),
        disk_total=disk_total,
        disk_free=disk_free,
        stored_bytes=None if low is None or high is None else high - low,
        oldest_message_ms=runtime.whole(table, "earliestMessageTimeStamp") or None,
        counted_ms=now_ms(),
    )


def _since(total: int | None, morning: int | None) -> int | None:
    """Return the messages since midnight; None when either count is unknown."""
    return None if total is None or morning is None else max(0, total - morning)
