"""Rules about brokers and name servers: answers, disk, clock, certificates."""

from collections.abc import Mapping

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.brokers import runtime
from console.gateway.brokers.listing import BrokerRow
from console.gateway.brokers.settings import label
from console.gateway.health.snapshot import Runtime
from console.services.findings.finding import Finding, NotChecked, ObjectKind, Severity, Target
from console.services.findings.rules.rule import Duration, Evidence, Results, gaps, rule
from console.services.findings.samples import Disk, Samples
from core_broker.remoting.bodies.inventory import GANTRY_CODES_KEY, GANTRY_TLS_EXPIRY_KEY

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
#: Minimum distance and maximum age of the sample for a forecast of the disk, ms.
FORECAST_MIN_MS = 300_000
FORECAST_MAX_MS = HOUR_MS
#: Certificates that end within the time are critical, ms.
CERTIFICATE_CRITICAL_MS = 3 * DAY_MS


@rule("broker-down", _("All known brokers answer and are registered"))
def broker_down(evidence: Evidence) -> Results:
    """A broker that the console has seen and that does not answer now, also after the name server
    has dropped it; and a broker that answers without a registration."""
    brokers = evidence.snapshot.brokers
    if brokers.value is None:
        yield from gaps(brokers)
    for row in brokers.value or ():
        if row.state == "up":
            continue
        if row.down:
            severity = Severity.CRITICAL if row.ref.is_master else Severity.WARNING
            text = format_lazy(
                _("The {role} at {addr} does not answer: {reason}"),
                role=_("master") if row.ref.is_master else _("slave"),
                addr=row.ref.addr,
                reason=row.reason or "—",
            )
            advice = _(
                "Start the broker, or forget it on the page of the broker if it is gone for good."
            )
        else:
            severity = Severity.WARNING
            text = format_lazy(
                _("The broker at {addr} answers, and no name server lists it."), addr=row.ref.addr
            )
            advice = _(
                "Clients do not find the broker. Check the setting namesrvAddr of the broker."
            )
        yield Finding(
            "broker-down",
            severity,
            Target("broker", label(row.ref)),
            text,
            advice,
            {"state": row.state, "role": row.role, "addr": row.ref.addr, "reason": row.reason},
            since_ms=row.contact_ms if row.down else None,
            related=() if row.ref.is_master else (Target("broker", row.ref.name),),
        )


@rule("name-server-down", _("All configured name servers answer"))
def name_server_down(evidence: Evidence) -> Results:
    servers = evidence.snapshot.name_servers
    yield from gaps(servers)
    found = servers.value or ()
    lost = [server for server in found if server.failure is not None]
    for server in lost:
        yield Finding(
            "name-server-down",
            Severity.CRITICAL if len(lost) == len(found) else Severity.WARNING,
            Target("name-server", server.addr),
            format_lazy(_("The name server does not answer: {reason}"), reason=server.failure),
            _(
                "Start the name server, or remove its address from the settings of console, "
                "brokers and clients."
            ),
            {"reason": server.failure},
        )


@rule("disk-full", _("Disks of brokers have free space"))
def disk_full(evidence: Evidence) -> Results:
    """Usage over a threshold, or full soon at the growth between two samples. Without a second
    sample, or without growth, there is no forecast."""
    yield from gaps(evidence.snapshot.brokers)
    limits = evidence.thresholds
    for row in evidence.snapshot.brokers.value or ():
        if row.down:
            continue
        if row.disk_ratio is None:
            yield NotChecked(_("The broker does not report the usage of its disk."), row.ref.name)
            continue
        percent = row.disk_ratio * 100
        full_in_h = _full_in_h(row, evidence.samples, evidence.now_ms)
        is_soon = full_in_h is not None and full_in_h <= limits.disk_hours
        if percent < limits.disk_percent and not is_soon:
            continue
        text = format_lazy(
            _("{percent} of the disk is used; warning at {limit} %, critical at {critical} %."),
            percent=formats.percent(row.disk_ratio),
            limit=limits.disk_percent,
            critical=limits.disk_critical_percent,
        )
        if full_in_h is not None:
            forecast = _("At the present growth the disk is full in {time}.")
            text = format_lazy(
                "{usage} {forecast}",
                usage=text,
                forecast=format_lazy(forecast, time=Duration(full_in_h * HOUR_MS)),
            )
        yield Finding(
            "disk-full",
            Severity.CRITICAL if percent >= limits.disk_critical_percent else Severity.WARNING,
            Target("broker", label(row.ref)),
            text,
            _(
                "Add disk space, or lower fileReservedTime. A RocketMQ broker deletes messages "
                "early above diskMaxUsedSpaceRatio, and refuses sends on a full disk."
            ),
            {
                "disk_ratio": row.disk_ratio,
                "disk_total_bytes": row.disk_total,
                "disk_free_bytes": row.disk_free,
                "full_in_h": full_in_h,
            },
            related=() if row.ref.is_master else (Target("broker", row.ref.name),),
        )


def disks(rows: tuple[BrokerRow, ...]) -> Mapping[str, Disk]:
    """Return the usage of the disks by address of the broker, for the samples."""
    return {row.ref.addr: disk for row in rows if not row.down and (disk := disk_of(row))}


def disk_of(row: BrokerRow) -> Disk | None:
    """Return the usage of a broker's disk: RocketMQ reports the ratio and the size."""
    if row.disk_ratio is None or not row.disk_total:
        return None
    return Disk(row.disk_ratio * row.disk_total, row.disk_total)


def _full_in_h(row: BrokerRow, samples: Samples, now_ms: int) -> float | None:
    """Return the hours until the disk is full; None without growth or without a sample."""
    before = samples.before(now_ms - FORECAST_MIN_MS)
    now = disk_of(row)
    if before is None or now is None or now_ms - before.at_ms > FORECAST_MAX_MS:
        return None
    then = before.disks.get(row.ref.addr)
    if then is None or then.total_bytes != now.total_bytes or now.used_bytes <= then.used_bytes:
        return None
    per_ms = (now.used_bytes - then.used_bytes) / (now_ms - before.at_ms)
    return (now.total_bytes - now.used_bytes) / per_ms / HOUR_MS


@rule("clock-offset", _("Clocks of brokers agree with the console"))
def clock_offset(evidence: Evidence) -> Results:
    """The broker's clock is its start plus its time since the start, in whole seconds. The offset
    is a range, because of these seconds and of the time of the request; the whole range must be
    beyond the threshold."""
    runtimes = evidence.snapshot.runtimes
    yield from gaps(runtimes)
    limit_ms = evidence.thresholds.clock_s * 1000
    for each in runtimes.value or ():
        offsets = clock_range_ms(each)
        if offsets is None:
            yield NotChecked(_("The broker does not report its clock."), each.ref.name)
            continue
        low, high = offsets
        least_ms = low if low > 0 else high if high < 0 else 0
        if abs(least_ms) <= limit_ms:
            continue
        pattern = (
            _("The clock of the broker at {addr} is at least {offset} ahead of the console.")
            if least_ms > 0
            else _("The clock of the broker at {addr} is at least {offset} behind the console.")
        )
        yield Finding(
            "clock-offset",
            Severity.WARNING,
            Target("broker", label(each.ref)),
            format_lazy(pattern, addr=each.ref.addr, offset=Duration(abs(least_ms))),
            _(
                "Run NTP or chrony on all machines. Delays, retention and lag in time depend on "
                "the clocks."
            ),
            {"offset_least_ms": low, "offset_most_ms": high, "addr": each.ref.addr},
        )


def clock_range_ms(answer: Runtime) -> tuple[int, int] | None:
    """Return the least and the greatest offset of the broker's clock, ms; None without a clock."""
    started_ms = runtime.whole(answer.table, "bootTimestamp")
    running_ms = runtime.running_ms(answer.table)
    if started_ms is None or running_ms is None:
        return None
    clock_ms = started_ms + running_ms
    return clock_ms - answer.answered_ms, clock_ms + 1000 - answer.asked_ms


@rule("certificate-expiry", _("TLS certificates stay valid"))
def certificate_expiry(evidence: Evidence) -> Results:
    """Certificates of Gantry brokers, and of name servers that the console reaches with TLS.

    Gantry brokers without TLS have no certificate; Apache's brokers do not report theirs.
    """
    snapshot, limits = evidence.snapshot, evidence.thresholds
    yield from gaps(snapshot.runtimes, snapshot.name_servers)
    for each in snapshot.runtimes.value or ():
        if GANTRY_CODES_KEY not in each.table:
            yield NotChecked(_("The broker does not report its certificate."), label(each.ref))
    ends: list[tuple[ObjectKind, str, int]] = [
        ("broker", label(each.ref), end_ms)
        for each in snapshot.runtimes.value or ()
        if (end_ms := runtime.whole(each.table, GANTRY_TLS_EXPIRY_KEY)) is not None
    ]
    ends += [
        ("name-server", server.addr, server.certificate_expiry_ms)
        for server in snapshot.name_servers.value or ()
        if server.certificate_expiry_ms is not None
    ]
    for kind, name, end_ms in ends:
        left_ms = end_ms - evidence.now_ms
        if left_ms > limits.certificate_days * DAY_MS:
            continue
        is_over = left_ms <= 0
        pattern = (
            _("The certificate has expired {time} ago.")
            if is_over
            else _("The certificate expires in {time}.")
        )
        yield Finding(
            "certificate-expiry",
            Severity.CRITICAL if left_ms <= CERTIFICATE_CRITICAL_MS else Severity.WARNING,
            Target(kind, name),
            format_lazy(pattern, time=Duration(abs(left_ms))),
            _(
                "Replace the files of certificate and key. Clients that verify certificates cannot "
                "connect afterwards."
            ),
            {"certificate_expiry_ms": end_ms},
            since_ms=end_ms if is_over else None,
        )
