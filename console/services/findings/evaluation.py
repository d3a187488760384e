"""Evaluation of the rules: at most one at a time per cluster, at most every EVALUATE_EVERY_MS.

The worker evaluates (`background.py`); a request evaluates only while no worker does
(`reports.py`). All callers in a process share the latest report. A caller waits for the evaluation
only without a recent report; during an evaluation, the others get the report before.
"""

import logging
from threading import Lock
from time import perf_counter

from console.frame.own_disks import own_disks
from console.gateway import Cluster, now_ms
from console.gateway.engine.errors import GatewayError
from console.gateway.health.members import GroupDiagnosis, group_diagnoses
from console.gateway.health.snapshot import Snapshot, health_snapshot
from console.services.findings.finding import Report, in_order
from console.services.findings.rules import RULES, Evidence, evaluate
from console.services.findings.rules.brokers import disks
from console.services.findings.rules.consumption import owners_digest
from console.services.findings.rules.groups import measured_groups
from console.services.findings.rules.members import offsets_with_lag
from console.services.findings.samples import Sample, Samples
from console.services.findings.thresholds import thresholds

log = logging.getLogger(__name__)

#: Minimum time between two evaluations of a cluster by requests, milliseconds.
EVALUATE_EVERY_MS = 12_000
#: Maximum age of a report that pages show, milliseconds.
REPORT_AGE_MAX_MS = 60_000
#: Maximum number of groups whose members are asked in one evaluation, and how many of the groups
#: are those with the highest lag.
DIAGNOSED_MAX = 48
DIAGNOSED_BEHIND_MAX = 16
#: Maximum age of a diagnosis, milliseconds.
DIAGNOSIS_AGE_MAX_MS = 600_000


class Evaluator:
    """The reports of one cluster. Thread-safe; the samples belong to the evaluating thread."""

    def __init__(self) -> None:
        self._evaluating = Lock()
        self._report: Report | None = None
        self._samples = Samples()
        self._diagnoses: dict[str, GroupDiagnosis] = {}

    @property
    def latest(self) -> Report | None:
        """The latest report if younger than REPORT_AGE_MAX_MS, without an evaluation."""
        report = self._report
        if report is None or now_ms() - report.taken_ms > REPORT_AGE_MAX_MS:
            return None
        return report

    def report(self, cluster: Cluster, *, age_max_ms: int | None = None) -> Report:
        """Return a report that is at most `age_max_ms` old, EVALUATE_EVERY_MS by default, or the
        one before during an evaluation. Blocks until the first report. Raises GatewayError as
        `Cluster.ask`."""
        since_ms = now_ms() - (EVALUATE_EVERY_MS if age_max_ms is None else age_max_ms)
        report = self.latest
        if report is not None and report.taken_ms > since_ms:
            return report
        if not self._evaluating.acquire(blocking=report is None):
            assert report is not None
            return report
        try:
            report = self._report
            if report is None or report.taken_ms <= since_ms:
                report = self._report = self._evaluate(cluster)
            return report
        finally:
            self._evaluating.release()

    def _evaluate(self, cluster: Cluster) -> Report:
        started_s = perf_counter()
        snapshot = cluster.ask(health_snapshot).value
        candidates = candidates_of(snapshot)
        self._diagnose(cluster, snapshot, candidates)
        evidence = Evidence(
            snapshot,
            self._samples,
            thresholds(),
            dict(self._diagnoses),
            len(candidates.keys() - self._diagnoses.keys()),
            own_disks(),
        )
        findings, checks, counts = evaluate(RULES, evidence)
        self._samples.add(sample_of(evidence))
        took_ms = round((perf_counter() - started_s) * 1000)
        return Report(snapshot.taken_ms, took_ms, in_order(findings), checks, counts)

    def _diagnose(
        self, cluster: Cluster, snapshot: Snapshot, candidates: dict[str, tuple[bool, int]]
    ) -> None:
        """Ask the members of DIAGNOSED_MAX groups; drop old diagnoses and those of other groups."""
        oldest_ms = snapshot.taken_ms - DIAGNOSIS_AGE_MAX_MS
        self._diagnoses = {
            name: each
            for name, each in self._diagnoses.items()
            if name in candidates and each.taken_ms >= oldest_ms
        }
        chosen = groups_in_turn(candidates, self._diagnoses, self._with_findings())
        if not chosen:
            return
        try:
            self._diagnoses.update(cluster.ask(group_diagnoses, chosen).value)
        except GatewayError as trouble:
            # The groups stay "not diagnosed" in the report.
            log.warning("the groups of %s cannot be diagnosed: %s", cluster, trouble)

    def _with_findings(self) -> frozenset[str]:
        """Return the groups with findings, whose state must not grow old in the report."""
        findings = self._report.findings if self._report is not None else ()
        return frozenset(each.target.name for each in findings if each.kind == "group")


def candidates_of(snapshot: Snapshot) -> dict[str, tuple[bool, int]]:
    """Return the groups whose members may disagree or hang: those with several clients, and those
    behind with a client. The values are whether the group is behind, and the lag."""
    found = {}
    for row, metrics, at_ms in measured_groups(snapshot):
        clients = metrics.clients or 0
        is_behind = clients > 0 and not metrics.broadcasting and metrics.is_behind(at_ms)
        if is_behind or clients > 1:
            found[row.name] = is_behind, metrics.lag or 0
    return found


def groups_in_turn(
    candidates: dict[str, tuple[bool, int]],
    diagnoses: dict[str, GroupDiagnosis],
    with_findings: frozenset[str],
) -> tuple[str, ...]:
    """Return the next groups: the highest lags, groups with findings, then the longest waiting."""
    behind = [name for name, (is_behind, _lag) in candidates.items() if is_behind]
    behind.sort(key=lambda name: (-candidates[name][1], name))
    first = behind[:DIAGNOSED_BEHIND_MAX]
    rest = [name for name in candidates if name not in set(first)]

    def waited(name: str) -> tuple[bool, int, str]:
        known = diagnoses.get(name)
        return name not in with_findings, 0 if known is None else known.taken_ms, name

    rest.sort(key=waited)
    return (*first, *rest[: DIAGNOSED_MAX - len(first)])


def sample_of(evidence: Evidence) -> Sample:
    """Return the values that later evaluations compare."""
    snapshot = evidence.snapshot
    measured = snapshot.group_metrics.value
    letters = {row.name: metrics.dead_letters for row, metrics, _at_ms in measured_groups(snapshot)}
    is_complete = (
        measured is not None
        and not measured.left_out
        and not snapshot.group_metrics.failures
        and None not in letters.values()
    )
    return Sample(
        snapshot.taken_ms,
        {name: count for name, count in letters.items() if count},
        is_complete,
        disks(snapshot.brokers.value or ()),
        {name: offsets_with_lag(each) for name, each in evidence.diagnoses.items()},
        {row.name: each.lag for row, each, _at_ms in measured_groups(snapshot) if each.lag},
        {
            name: digest
            for name, each in evidence.diagnoses.items()
            if each.taken_ms >= snapshot.taken_ms and (digest := owners_digest(each)) is not None
        },
    )


#: By name and address of the cluster, as configured: a changed address begins anew.
_evaluators: dict[tuple[str, str], Evaluator] = {}


def evaluator_of(cluster: Cluster) -> Evaluator:
    """Return the evaluator of a cluster in this process."""
    return _evaluators.setdefault((cluster.name, cluster.namesrv_addr), Evaluator())
