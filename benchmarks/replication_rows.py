"""Rows of `make bench-peers` with one slave beside each master, on the same machine.

    replica-sync-64x1     SYNC_MASTER: a send is answered when the slave has the message
    replica-async-64x1    ASYNC_MASTER: the slave follows
    replica-none-64x1     Gantry alone, in turn with the asynchronous masters: the cost of a slave

Slaves are stopped with their masters while others are measured, after they have the whole log.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.alternating import Bench, Figures
from benchmarks.load import SCENARIOS
from benchmarks.measuring import follow
from benchmarks.peer_brokers import OURS, Peer
from benchmarks.processes import Cluster

SCENARIO: Final = SCENARIOS["send-64x1"]
#: 5.x needs the number of copies; for 4.9, SYNC_MASTER alone means one slave.
SYNC: Final[dict[str, Any]] = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2}
ASYNC: Final[dict[str, Any]] = {"broker_role": "ASYNC_MASTER"}
#: Name of Gantry without a slave among the clusters of a row.
ALONE: Final = "alone"


def replicated(folder: Path, peers: Mapping[str, Peer], bench: Bench) -> Figures:
    """Measure all rows; the masters of a row are started together."""
    own = folder / "replicas"
    figures: Figures = {}
    with _masters(own / "sync", peers, SYNC) as clusters:
        figures["replica-sync-64x1"] = _measured("replica-sync-64x1", clusters, peers, bench)
    with _masters(own / "async", peers, ASYNC) as clusters:
        with ExitStack() as stack:
            if OURS in peers:
                place = _new(own / "async" / ALONE)
                clusters[ALONE] = stack.enter_context(peers[OURS].start(place))
            found = _measured("replica-async-64x1", clusters, peers, bench)
        if ALONE in found:
            figures["replica-none-64x1"] = {OURS: found.pop(ALONE)}
        figures["replica-async-64x1"] = found
    shutil.rmtree(own)
    return figures


def _measured(
    row: str, clusters: dict[str, Cluster], peers: Mapping[str, Peer], bench: Bench
) -> Figures:
    everybody = list(clusters.values())
    for name, cluster in clusters.items():
        if name in peers and peers[name].is_jvm:
            bench.warm_up(f"{name} with a slave", cluster, everybody)
    return bench.alternate(row, SCENARIO, clusters, everybody)


@contextmanager
def _masters(
    folder: Path, peers: Mapping[str, Peer], settings: Mapping[str, Any]
) -> Iterator[dict[str, Cluster]]:
    """Start a master with a slave of each peer; every slave has begun to copy."""
    with ExitStack() as stack:
        clusters = {}
        for name, peer in peers.items():
            assert peer.start_slave is not None
            started = peer.start(_new(folder / name), **settings)
            cluster = clusters[name] = stack.enter_context(started)
            stack.enter_context(peer.start_slave(_new(folder / name / "slave"), cluster))
            follow(cluster)
        yield clusters


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
