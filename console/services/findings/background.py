"""The evaluation in the worker: one thread, whether or not anybody looks at a page.

Each worker runs the thread, and the lease lets one of them evaluate. Clusters are evaluated in
parallel; a cluster whose evaluation is not done by the next time misses that time. Each report is
stored, then `evaluated` is sent in the thread of the evaluation.
"""

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.dispatch import Signal

from console.frame.own_disks import refusals
from console.gateway import Cluster, GatewayError, gateway, now_ms
from console.services.findings import stored
from console.services.findings.evaluation import evaluator_of
from console.services.leases.lease import Lease, new_holder
from console.services.leases.outages import OutageLog
from console.services.leases.periodic import Periodic

log = logging.getLogger(__name__)

#: Maximum number of clusters that are evaluated at the same time.
CLUSTERS_AT_ONCE: Final = 8
#: Minimum duration of the lease, ms; three intervals when those are longer.
LEASE_MS_MIN: Final = 30_000
#: Time for the running evaluations at the end of the process, seconds.
STOP_S: Final = 15.0

#: Sent after each evaluation with `cluster` (a Cluster) and `report`; the report is None when the
#: cluster could not be evaluated.
evaluated = Signal()


class Evaluations:
    """A thread from `start` to `stop`."""

    def __init__(self) -> None:
        interval_ms = settings.EVALUATION_SECONDS * 1_000
        self.holder = new_holder()
        self._outages = OutageLog("evaluation of the findings")
        self._lease = Lease("findings", max(LEASE_MS_MIN, 3 * interval_ms))
        self._thread = Periodic(
            "findings", interval_ms, lambda _at_ms: self.evaluate(), self._end, stop_s=STOP_S
        )
        self._running: dict[tuple[str, str], Future[None]] = {}
        self._pool = ThreadPoolExecutor(CLUSTERS_AT_ONCE, thread_name_prefix="findings")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the running evaluations; let another process evaluate."""
        self._thread.stop()

    def evaluate(self) -> bool:
        """Start the evaluation of every cluster; return False while another process evaluates."""
        try:
            is_holder = self._lease.hold(self.holder, now_ms())
        except DatabaseError as trouble:
            refusals.note(trouble)
            self._outages.failed(trouble, time.monotonic_ns() // 1_000_000)
            return False
        self._outages.succeeded()
        if not is_holder:
            return False
        for cluster in gateway.clusters():
            key = cluster.name, cluster.namesrv_addr
            if (running := self._running.get(key)) is None or running.done():
                self._running[key] = self._pool.submit(_evaluate, cluster)
        return True

    def wait(self) -> None:
        """Wait for the running evaluations."""
        for running in self._running.values():
            running.result(STOP_S)

    def _end(self) -> None:
        self._pool.shutdown(wait=True)
        self._lease.release(self.holder)


def _evaluate(cluster: Cluster) -> None:
    try:
        try:
            report = evaluator_of(cluster).report(cluster, age_max_ms=0)
        except GatewayError as trouble:
            log.info("the findings of %s cannot be evaluated: %s", cluster, trouble)
            report = None
        if report is not None:
            stored.save(cluster, report)
        evaluated.send(Evaluations, cluster=cluster, report=report)
    except Exception as error:
        refusals.note(error)
        log.exception("the evaluation of %s failed", cluster)
    finally:
        connection.close()  # of this thread
