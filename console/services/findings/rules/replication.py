"""Rules about master and slaves: missing slaves, slaves behind their master."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.services.findings.finding import Finding, Severity, Target
from console.services.findings.rules.rule import Evidence, Results, gaps, rule

MIB = 2**20
ROLE_KEY = "brokerRole"
SYNC_MASTER = "SYNC_MASTER"


@rule("replica-missing", _("Masters have all their slaves"))
def replica_missing(evidence: Evidence) -> Results:
    """A master with fewer replicating connections than known slaves, or a SYNC_MASTER without a
    slave: it answers sends with an error."""
    snapshot = evidence.snapshot
    yield from gaps(snapshot.replication, snapshot.settings)
    slaves: dict[str, int] = {}
    for row in snapshot.brokers.value or ():
        if not row.ref.is_master:
            slaves[row.ref.name] = slaves.get(row.ref.name, 0) + 1
    for name, status in sorted((snapshot.replication.value or {}).items()):
        connected = len(status.ha_connection_info)
        if connected < slaves.get(name, 0):
            yield _missing(
                name,
                format_lazy(
                    _("Connected slaves: {connected} of {count}"),
                    connected=connected,
                    count=slaves[name],
                ),
                connected,
                slaves[name],
            )
    settings = snapshot.settings.value.settings if snapshot.settings.value is not None else ()
    roles = next((each.values for each in settings if each.name == ROLE_KEY), {})
    for name, role in sorted(roles.items()):
        if role == SYNC_MASTER and not slaves.get(name) and ":" not in name:
            yield _missing(name, _("The broker is a SYNC_MASTER and has no slave."), 0, 0)


def _missing(name: str, text: object, connected: int, known: int) -> Finding:
    return Finding(
        "replica-missing",
        Severity.CRITICAL if not connected else Severity.WARNING,
        Target("broker", name),
        text,
        _(
            "Start the slave, or check its haMasterAddress and the listener of the master. Without "
            "a slave, a lost disk loses messages."
        ),
        {"connected": connected, "known_slaves": known},
    )


@rule("replica-behind", _("Slaves keep up with their master"))
def replica_behind(evidence: Evidence) -> Results:
    """A slave that lacks more bytes of the master's log than the threshold."""
    replication = evidence.snapshot.replication
    yield from gaps(replication)
    limit_bytes = evidence.thresholds.replica_mb * MIB
    for name, status in sorted((replication.value or {}).items()):
        behind = max((each.diff for each in status.ha_connection_info), default=0)
        if behind > limit_bytes:
            yield Finding(
                "replica-behind",
                Severity.WARNING,
                Target("broker", name),
                format_lazy(
                    _("A slave lacks {size} of the master's log; threshold {limit}."),
                    size=formats.size(behind),
                    limit=formats.size(limit_bytes),
                ),
                _("Check network and disk of the slave."),
                {"behind_bytes": behind, "threshold_bytes": limit_bytes},
            )
