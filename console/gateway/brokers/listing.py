"""Questions about brokers and name servers: registration, rates, disk use and configuration.

The list of brokers contains the remembered brokers too. Questions request the values of a broker
after the name server has dropped the broker, and every answer names the failure until an operator
forgets the broker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers import runtime
from console.gateway.brokers.consumption import without_own_reads
from console.gateway.brokers.secrets import shown
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures, now_ms
from console.gateway.engine.errors import ClusterUnreachable, NotAllowedNow, NotFound
from console.gateway.engine.known_brokers import KnownBroker
from console.gateway.engine.last_answers import Key
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import REQUEST_TIMEOUT_MS, BrokerRef, ClusterSession
from core_broker.errors import TransportError
from core_broker.remoting.bodies import BrokerData, ClusterInfo
from core_broker.remoting.tls_client import server_certificate_expiry_s

T = TypeVar("T")

RATES_FRESH_MS = 900
SETTINGS_FRESH_MS = 5_000
#: Name of a failed name server among the failures of an answer.
NAME_SERVER = "name server"

#: `unregistered`: the broker answers, and the name server does not list the broker.
State = Literal["up", "down", "unregistered"]


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker process with the metrics of a list. None: the broker did not report the value.

    The values of a broker that is `down` are the last known ones, of `as_of_ms`. `contact_ms` is
    the time of the last answer, also from earlier runs of the console; None: never.

    `in_today` and `out_today` count from midnight in the broker's time zone, or from the start of a
    broker that started later: `today_begins` says which, `today_from_ms` when, where known.
    """

    ref: BrokerRef
    state: State
    reason: str | None
    contact_ms: int | None
    as_of_ms: int | None
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
    send_p99_ms: float | None

    @property
    def down(self) -> bool:
        return self.state == "down"

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

    @property
    def expiring_certificate_ms(self) -> int | None:
        """End of validity of the broker's certificate, if less than 30 days away or past."""
        return runtime.expiring_certificate_ms(self.table, now_ms())


@dataclass(frozen=True, slots=True)
class NameServer:
    """A name server of the cluster; `failure` is the reason of a missing answer."""

    addr: str
    settings: Mapping[str, str]
    failure: str | None
    #: End of validity of the certificate; None: unknown, or the console connects without TLS.
    certificate_expiry_ms: int | None = None

    @property
    def certificate(self) -> runtime.CertificateState | None:
        """The state of the certificate now; None: the end of validity is unknown."""
        if self.certificate_expiry_ms is None:
            return None
        return runtime.certificate_state(self.certificate_expiry_ms, now_ms())


@question(fresh_for_ms=2_000)
async def cluster_map(session: ClusterSession) -> Partial[ClusterInfo]:
    """The brokers that the name server lists; without a name server, the remembered brokers."""
    try:
        info = await session.admin.cluster_info()
    except TransportError as failure:
        known = session.known.all()
        if not known:
            raise
        session.liveness.failed(session.namesrv_addr, failure, now_ms(), now_ms())
        lost = BrokerFailure(NAME_SERVER, session.namesrv_addr, str(failure))
        return Partial(_remembered(known), (lost,))
    session.liveness.answered(session.namesrv_addr, now_ms())
    listed = [
        (BrokerRef(name, broker_id, addr), data.cluster)
        for name, data in info.broker_addr_table.items()
        for broker_id, addr in data.broker_addrs.items()
    ]
    if session.known.listed(listed, now_ms()):
        session.answers.invalidate()
    return Partial(info)


async def known_map(session: ClusterSession) -> ClusterInfo:
    """Return all known brokers, with the brokers dropped by the name server."""
    await session.ask(cluster_map)
    return _remembered(session.known.all())


def _remembered(known: tuple[KnownBroker, ...]) -> ClusterInfo:
    info = ClusterInfo(broker_addr_table={}, cluster_addr_table={})
    for broker in known:
        data = info.broker_addr_table.setdefault(
            broker.ref.name,
            BrokerData(cluster=broker.cluster_name, broker_name=broker.ref.name, broker_addrs={}),
        )
        data.broker_addrs[broker.ref.id] = broker.ref.addr
        names = info.cluster_addr_table.setdefault(broker.cluster_name, [])
        if broker.ref.name not in names:
            names.append(broker.ref.name)
    return info


async def broker_refs(session: ClusterSession) -> tuple[BrokerRef, ...]:
    """Return all known broker processes, registered or not, in order of name and id."""
    await session.ask(cluster_map)
    return tuple(broker.ref for broker in session.known.all())


async def masters(session: ClusterSession) -> tuple[BrokerRef, ...]:
    """Return one process per broker name: the master, or the first slave where no master is up.

    Registered processes come before processes that left the name server.
    """
    await session.ask(cluster_map)
    first: dict[str, BrokerRef] = {}
    for broker in sorted(session.known.all(), key=lambda one: (not one.registered, one.ref)):
        first.setdefault(broker.ref.name, broker.ref)
    return tuple(first[name] for name in sorted(first))


async def ask_masters(
    session: ClusterSession,
    ask: Callable[[BrokerRef], Awaitable[T]],
    *,
    one_must_answer: bool = True,
    keep: Key | None = None,
) -> tuple[dict[BrokerRef, T], tuple[BrokerFailure, ...]]:
    """Ask one process of each broker name, like `fan_out`.

    The failures name an unreachable name server too. Raises ClusterUnreachable when no broker is
    known, unless `one_must_answer` is False.
    """
    listed = await session.ask(cluster_map)
    refs = await masters(session)
    if not refs and one_must_answer:
        raise no_broker(session)
    found, failures = await session.fan_out(refs, ask, one_must_answer=one_must_answer, keep=keep)
    return found, merge_failures(listed.failures, failures)


def no_broker(session: ClusterSession) -> ClusterUnreachable:
    addr = session.namesrv_addr
    return ClusterUnreachable(
        _("No broker is registered."),
        hint=format_lazy(
            _(
                "The name server {addr} answers but knows no broker. Start one with “python -m "
                "core_broker -n {addr}”."
            ),
            addr=addr,
        ),
    )


@question(fresh_for_ms=2_000)
async def broker_names(session: ClusterSession) -> Partial[tuple[str, ...]]:
    """The names of the brokers on which topics and groups can be created."""
    return Partial(tuple(ref.name for ref in await masters(session)))


def no_such_broker(name: str) -> NotFound:
    return NotFound(
        format_lazy(_("The name server lists no broker named “{name}”."), name=name),
        hint=_("No name server has listed the broker, or “Forget broker” removed it."),
    )


@question(fresh_for_ms=RATES_FRESH_MS)
async def broker_rows(session: ClusterSession) -> Partial[tuple[BrokerRow, ...]]:
    """All known brokers, up or down, with rates, disk use and message counts."""
    listed = await session.ask(cluster_map)
    refs = await broker_refs(session)
    tables, failures = await _runtime_tables(session, refs)
    rows = tuple(_row(session, ref, tables.get(ref, {}), failures) for ref in refs)
    return Partial(rows, merge_failures(listed.failures, failures))


@question(fresh_for_ms=RATES_FRESH_MS)
async def broker_details(session: ClusterSession, name: str) -> Partial[tuple[BrokerDetail, ...]]:
    """The processes of one broker name, master first."""
    listed = await session.ask(cluster_map)
    refs = [ref for ref in await broker_refs(session) if ref.name == name]
    if not refs:
        raise no_such_broker(name)

    tables, failures = await _runtime_tables(session, refs)
    configs, config_failures = await session.fan_out(
        refs,
        lambda ref: session.admin.broker_config(ref.addr),
        one_must_answer=False,
        keep=("broker_config",),
    )
    details = []
    for ref in refs:
        table = tables.get(ref, {})
        row = _row(session, ref, table, failures)
        consumed = without_own_reads(table, session.own_reads, ref.addr, now_ms())
        settings = shown(configs.get(ref, {}))
        details.append(BrokerDetail(row, runtime.details(consumed), table, settings))
    merged = merge_failures(listed.failures, failures, config_failures)
    return Partial(tuple(details), merged)


async def _runtime_tables(
    session: ClusterSession, refs: Sequence[BrokerRef]
) -> tuple[dict[BrokerRef, dict[str, str]], tuple[BrokerFailure, ...]]:
    return await session.fan_out(
        refs,
        lambda ref: session.admin.runtime_info(ref.addr),
        one_must_answer=False,
        keep=("runtime_info",),
    )


@command(changes_cluster=False)
async def forget_broker(session: ClusterSession, name: str, broker_id: int) -> BrokerRef:
    """Remove a broker that was decommissioned from the console; returns the forgotten broker."""
    await session.ask(cluster_map)
    known = session.known.get(name, broker_id)
    if known is None:
        raise no_such_broker(name)
    if known.registered:
        raise NotAllowedNow(
            format_lazy(_("The name server still lists “{name}”."), name=name),
            hint=_("Stop the broker first. A name server drops a silent broker after two minutes."),
        )
    session.forget(known.ref)
    return known.ref


@question(fresh_for_ms=SETTINGS_FRESH_MS)
async def name_servers(session: ClusterSession) -> Partial[tuple[NameServer, ...]]:
    """All configured name servers, including the unreachable ones."""
    refs = [BrokerRef(NAME_SERVER, 0, addr) for addr in session.admin.namesrv_addrs]
    found, failures = await session.fan_out(
        refs, lambda ref: session.admin.namesrv_config(ref.addr), one_must_answer=False
    )
    reasons = {failure.addr: failure.reason for failure in failures}
    ends = await asyncio.gather(*(_certificate_expiry_ms(session, ref.addr) for ref in refs))
    return Partial(
        tuple(
            NameServer(ref.addr, shown(found.get(ref, {})), reasons.get(ref.addr), end_ms)
            for ref, end_ms in zip(refs, ends, strict=True)
        )
    )


async def _certificate_expiry_ms(session: ClusterSession, addr: str) -> int | None:
    """Read the end of validity in a handshake; a refused expired certificate is known, too."""
    if session.tls is None:
        return None
    timeout_s = REQUEST_TIMEOUT_MS / 1000
    end_s = await server_certificate_expiry_s(addr, session.tls, timeout_s)
    return None if end_s is None else int(end_s * 1000)


def _row(
    session: ClusterSession,
    ref: BrokerRef,
    table: Mapping[str, str],
    failures: tuple[BrokerFailure, ...],
) -> BrokerRow:
    """Return the row of a known broker; `table` holds the last values of a broker that is down.

    A broker that refuses the request answers: the broker is up, without values.
    """
    known = session.known.get(ref.name, ref.id)
    failure = next((one for one in failures if one.addr == ref.addr), None)
    is_down = failure is not None and session.liveness.failure(ref.addr) is not None
    state: State = "down" if is_down else "up"
    if not is_down and known is not None and not known.registered:
        state = "unregistered"
    return broker_row(
        ref,
        known.cluster_name if known is not None else "",
        without_own_reads(table, session.own_reads, ref.addr, now_ms()),
        state=state,
        reason=failure.reason if failure is not None else None,
        contact_ms=known.contact_ms if known is not None else None,
        as_of_ms=now_ms() if failure is None else failure.as_of_ms,
    )


def broker_row(
    ref: BrokerRef,
    cluster: str,
    table: Mapping[str, str],
    *,
    state: State = "up",
    reason: str | None = None,
    contact_ms: int | None = None,
    as_of_ms: int | None = None,
) -> BrokerRow:
    """Read a runtime table. Totals count from the broker's start."""
    begins, from_ms = runtime.today_begins(table)
    in_total = runtime.whole(table, "msgPutTotalTodayNow")
    out_total = runtime.whole(table, "msgGetTotalTodayNow")
    disk_total, disk_free = runtime.capacity(table)
    low = runtime.whole(table, "commitLogMinOffset")
    high = runtime.whole(table, "commitLogMaxOffset")
    return BrokerRow(
        ref=ref,
        state=state,
        reason=reason,
        contact_ms=contact_ms,
        as_of_ms=as_of_ms,
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
        # 0.00 after a minute without messages.
        send_p99_ms=runtime.measured(table, "putLatency99") or None,
    )


def _since(total: int | None, morning: int | None) -> int | None:
    """Return the messages since midnight; None when either count is unknown."""
    return None if total is None or morning is None else max(0, total - morning)
