"""Rules about the console itself: the disks of its database and of its history."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.services.findings.finding import Finding, Severity, Target
from console.services.findings.rules.rule import Evidence, Results, rule

_ADVICE = _(
    "Free space on the disk, or lower CONSOLE_HISTORY_MB. Without space the console saves no "
    "changes, audit rows, history and alarms."
)


@rule("console-disk-full", _("Disks of the console's database and history have free space"))
def console_disk_full(evidence: Evidence) -> Results:
    """A refused write of the last minute, a full disk, or usage over the critical threshold. The
    disk of a PostgreSQL server shows by refused writes only."""
    own = evidence.own_disks
    if own.refused_ms is not None:
        yield Finding(
            "console-disk-full",
            Severity.CRITICAL,
            Target("console", "writes"),
            format_lazy(_("A full disk refused a write: {reason}"), reason=own.refused),
            _ADVICE,
            {"reason": own.refused, "refused_ms": own.refused_ms},
        )
    limit = evidence.thresholds.disk_critical_percent
    for disk in own.disks:
        if not disk.is_full and disk.ratio * 100 < limit:
            continue
        text = _("{percent} of the disk is used, {free} are free; warning at {limit} %.")
        yield Finding(
            "console-disk-full",
            Severity.CRITICAL if disk.is_full else Severity.WARNING,
            Target("console", disk.name),
            format_lazy(
                text,
                percent=formats.percent(disk.ratio),
                free=formats.size(disk.free_bytes),
                limit=limit,
            ),
            _ADVICE,
            {
                "path": disk.path,
                "disk_ratio": disk.ratio,
                "disk_total_bytes": disk.total_bytes,
                "disk_free_bytes": disk.free_bytes,
            },
        )
