"""The sampler of a worker: one thread that samples every cluster every INTERVAL_MS.

Each worker runs a sampler, and the lease lets one of them sample. Clusters are sampled in parallel;
a cluster whose sample is not done by the next time misses that time, and has a gap there. After its
sample, a cluster has until UPKEEP_S for the upkeep of its store, and for the import of a file.
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
from console.gateway.snapshot import snapshot
from console.services.history import removed
from console.services.history.importing import FileImport, pending_import
from console.services.history.metrics import INTERVAL_MS
from console.services.history.places import place_of
from console.services.history.samples import paces_of, samples_of
from console.services.history.store import STORE_ERRORS, Store
from console.services.history.upkeep import Upkeep, configured_upkeep
from console.services.history.writing import Writer
from console.services.leases.lease import Lease, new_holder
from console.services.leases.periodic import Periodic

log = logging.getLogger(__name__)

#: The sampler's lease: three intervals. The stores are safe beyond the lease: a second sample of
#: the same time is dropped.
LEASE: Final = Lease("history", 3 * INTERVAL_MS)
#: Maximum number of clusters that are sampled at the same time.
CLUSTERS_AT_ONCE: Final = 16
#: Time for the upkeep of a cluster's store between two samples, seconds.
UPKEEP_S: Final = 2.0
#: Time for the running samples at the end of the process, seconds: the deadline of a snapshot.
STOP_S: Final = 15.0
#: Key of the upkeep of removed clusters; no cluster has an empty name.
_REMOVED: Final = ("", "")

#: Sent after each stored sample with `cluster` (its name), `found` (a Snapshot) and `at_ms`.
sampled = Signal()


class ClusterHistory:
    """Samples one cluster into its store; used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._place = place_of(settings.GANTRY_HOME, cluster.name)
        self._store: Store | None = None
        self._import: FileImport | None = None
        self._writer: Writer | None = None
        self._upkeep: Upkeep | None = None
        self._turn = 0
        self._is_failing = False

    def sample(self, at_ms: int) -> None:
        """Store one sample; a cluster that does not answer has a gap."""
        try:
            self._sample(at_ms)
            if self._is_failing:
                log.info("the history of cluster %s is stored again", self._cluster)
            self._is_failing = False
        except STORE_ERRORS as trouble:
            refusals.note(trouble)
            if not self._is_failing:
                log.error(  # noqa: TRY400 - the cause is outside of this program
                    "the history of cluster %s cannot be stored in %s: %s. Samples are lost until"
                    " the next success",
                    self._cluster,
                    self._place,
                    str(trouble).strip(),
                )
            self._is_failing = True
            self.close()
        finally:
            connection.close()  # of this thread: the gateway reads the known brokers

    def close(self) -> None:
        """Close the store; the next sample opens the store again."""
        opened = self._import, self._store
        self._import = self._store = self._writer = self._upkeep = None
        for each in opened:
            if each is not None:
                each.close()

    def _sample(self, at_ms: int) -> None:
        try:
            found = self._cluster.ask(snapshot, self._turn).value
        except GatewayError as trouble:
            log.debug("no sample of cluster %s: %s", self._cluster, trouble)
            found = None
        self._turn += 1
        writer, upkeep = self._opened()
        if found is not None:
            writer.append(at_ms, samples_of(found), paces_of(found))
            sampled.send(ClusterHistory, cluster=self._cluster.name, found=found, at_ms=at_ms)
        until_s = time.monotonic() + UPKEEP_S
        # The upkeep would delete names whose samples are not yet imported.
        if self._import is None or self._import.run(lambda: time.monotonic() < until_s):
            self._import = None
            upkeep.run(now_ms(), lambda: time.monotonic() < until_s)

    def _opened(self) -> tuple[Writer, Upkeep]:
        if self._store is None or self._writer is None or self._upkeep is None:
            self._store = self._place.writer()
            self._import = pending_import(settings.GANTRY_HOME, self._cluster.name, self._store)
            self._writer = Writer(self._store)
            self._upkeep = configured_upkeep(self._store, self._writer.reload)
        return self._writer, self._upkeep


class Sampler:
    """A thread from `start` to `stop`."""

    def __init__(self) -> None:
        self.holder = new_holder()
        self._has_database = True
        self._thread = Periodic("history", INTERVAL_MS, self.sample, self._end, stop_s=STOP_S)
        self._histories: dict[tuple[str, str], ClusterHistory] = {}
        self._running: dict[tuple[str, str], Future[None]] = {}
        self._removed_due_ms = 0
        self._pool = ThreadPoolExecutor(CLUSTERS_AT_ONCE, thread_name_prefix="history")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the running samples; let another process sample."""
        self._thread.stop()

    def _end(self) -> None:
        self._pool.shutdown(wait=True)
        self._close_stores()
        LEASE.release(self.holder)

    def sample(self, at_ms: int) -> bool:
        """Start the samples of a time; return False while another process samples."""
        try:
            is_holder = LEASE.hold(self.holder, now_ms())
        except DatabaseError as trouble:
            if self._has_database:
                log.warning("no samples of the history until the database answers: %s", trouble)
            self._has_database = False
            return False
        if not self._has_database:
            log.info("the database answers again: the history has a gap")
        self._has_database = True
        if not is_holder:
            self._close_stores()
            return False
        clusters = gateway.clusters()
        for cluster in clusters:
            key = cluster.name, cluster.namesrv_addr
            if (running := self._running.get(key)) is not None and not running.done():
                continue
            history = self._histories.setdefault(key, ClusterHistory(cluster))
            self._running[key] = self._pool.submit(_logged, history, at_ms)
        self._keep_removed({cluster.name for cluster in clusters})
        return True

    def _keep_removed(self, clusters: set[str]) -> None:
        """Start the upkeep of the histories of removed clusters when it is due."""
        running, at_ms = self._running.get(_REMOVED), now_ms()
        if at_ms < self._removed_due_ms or (running is not None and not running.done()):
            return
        self._removed_due_ms = at_ms + removed.INTERVAL_MS
        home = settings.GANTRY_HOME
        self._running[_REMOVED] = self._pool.submit(removed.keep_removed, home, clusters, at_ms)

    def wait(self) -> None:
        """Wait for the running samples."""
        for running in self._running.values():
            running.result(STOP_S)

    def _close_stores(self) -> None:
        """Close the stores of clusters without a running sample."""
        for key, history in self._histories.items():
            if (running := self._running.get(key)) is None or running.done():
                history.close()


def _logged(history: ClusterHistory, at_ms: int) -> None:
    try:
        history.sample(at_ms)
    except Exception:
        log.exception("a sample of the history failed")
