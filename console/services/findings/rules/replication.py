"""Rules about replicas: missing slaves, slaves behind, sets without master, controllers."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.frame import formats
from console.gateway.replicas.model import CONTROLLER
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


@rule("replica-set-without-master", _("Each replica set has a master"))
def replica_set_without_master(evidence: Evidence) -> Results:
    """A set of several replicas, or with controllers, of which no master answers: the set accepts
    no messages."""
    yield from gaps(evidence.snapshot.replica_sets)
    state = evidence.snapshot.replica_sets.value
    for found in () if state is None else state.sets:
        if found.mode == "single" or found.has_master:
            continue
        up = sum(one.state != "down" for one in found.replicas)
        yield Finding(
            "replica-set-without-master",
            Severity.CRITICAL,
            Target("broker", found.name),
            format_lazy(
                _("No master answers; running replicas: {up} of {count}. Sends are refused."),
                up=up,
                count=len(found.replicas),
            ),
            _("Start the master, or another member of the sync-state set.")
            if found.mode == "controllers"
            else _(
                "Start the master: without controllers, only a DLedger group elects another one."
            ),
            {"running": up, "replicas": len(found.replicas), "master_epoch": found.master_epoch},
        )


@rule("controllers-without-quorum", _("Controllers have a leader"))
def controllers_without_quorum(evidence: Evidence) -> Results:
    """A group of controllers of which none leads: masters go on, and no master is replaced."""
    yield from _unknown_controllers(evidence)
    state = evidence.snapshot.replica_sets.value
    for group in () if state is None else state.groups:
        if group.leader is None:
            yield Finding(
                "controllers-without-quorum",
                Severity.CRITICAL,
                Target("controller", group.name),
                format_lazy(
                    _("The controllers have no leader; answering: {up} of {count}."),
                    up=len(group.controllers) - len(group.down),
                    count=len(group.controllers),
                ),
                _("Start controllers until a majority runs. Until then no failover is possible."),
                {
                    "controllers": list(group.addrs),
                    "down": [one.addr for one in group.down],
                    "broker_names": list(group.broker_names),
                },
                related=tuple(Target("broker", name) for name in group.broker_names),
            )


@rule("controller-down", _("All controllers answer"))
def controller_down(evidence: Evidence) -> Results:
    """A controller that the brokers' settings name does not answer."""
    yield from _unknown_controllers(evidence)
    state = evidence.snapshot.replica_sets.value
    for group in () if state is None else state.groups:
        for one in group.down:
            yield Finding(
                "controller-down",
                Severity.WARNING,
                Target("controller", one.addr),
                format_lazy(_("The controller does not answer: {reason}"), reason=one.failure),
                _("Start the controller, or correct controllerAddr of the brokers."),
                {"reason": one.failure, "broker_names": list(group.broker_names)},
            )


def _unknown_controllers(evidence: Evidence) -> Results:
    """Report missing evidence, except controllers without an answer: these are findings."""
    for gap in gaps(evidence.snapshot.replica_sets):
        if gap.where != CONTROLLER:
            yield gap
