"""The rows of `make bench-peers`, measured on groups of brokers that run side by side."""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import java_clients
from benchmarks.access import (
    ACL_1,
    ACL_2,
    PLAIN_ACL,
    check_access_control,
    create_account,
    sign_as_admin,
)
from benchmarks.alternating import (
    PULLS,
    SMALL_BYTES,
    Bench,
    Figures,
    note_failure,
    say,
    store_backlog,
)
from benchmarks.kills import kill_repeatedly
from benchmarks.load import MESSAGES_MAX, SCENARIOS, SIGNED, TLS, TLS_SIGNED, Scenario, run
from benchmarks.measuring import measure
from benchmarks.mixed import beside_consumers
from benchmarks.peer_brokers import JAVA_4, REFERENCES, Peer
from benchmarks.processes import Cluster, alone
from benchmarks.replication_rows import replicated
from benchmarks.requests import batch_template, send_template

#: Closed loops with ASYNC_FLUSH.
LOADS: Final = {
    "send-64x1": SCENARIOS["send-64x1"],
    "send-1x64": SCENARIOS["send-1x64"],
    "batch-32": SCENARIOS["batch-32"],
    "pull-32": PULLS,
}
#: Rows that share the brokers of the closed loops.
SHARED: Final = (*LOADS, "offered", "mixed", "java-client", "memory")
#: All rows, in order.
ROWS: Final = (
    *("starts", *SHARED, "sync-64x1", "replication", "signed", "tls", "kills", "bounds"),
)
#: Rows that compare with half of the reference's send rate.
OFFERED: Final = {"offered", "mixed"}
STARTS: Final = 3
#: Maximum messages of a batch run: more would exceed the page cache and fill the disk.
MESSAGES_OF_A_RUN: Final = 700_000
FILLING: Final = Scenario(16, 1, lambda number: batch_template(number, 32, SMALL_BYTES))
FILLING_SECONDS_MAX: Final = 900
CREATION_SECONDS: Final = 10
SYNC: Final[dict[str, Any]] = {"flush_disk_type": "SYNC_FLUSH"}


def measure_rows(
    folder: Path, wanted: set[str], peers: Mapping[str, Peer], bench: Bench
) -> Figures:
    """The results of the wanted rows, except bounds."""
    figures: Figures = {}
    if "starts" in wanted:
        figures["start_seconds"] = starts(folder, _taking_part(peers, {"starts"}))
    if shared := wanted.intersection(SHARED):
        figures |= side_by_side(folder, shared, _taking_part(peers, shared), bench)
    if "sync-64x1" in wanted:
        figures["sync-64x1"] = synchronous(folder, _taking_part(peers, {"sync-64x1"}), bench)
    if "replication" in wanted:
        figures["replication"] = replicated(folder, _taking_part(peers, {"replication"}), bench)
    if "signed" in wanted:
        figures["signed"] = signed(folder, _taking_part(peers, {"signed"}), bench)
    if "tls" in wanted:
        with _running(folder, _taking_part(peers, {"tls"})) as clusters:
            figures["tls"] = _all_of("TLS", TLS, clusters, peers, bench)
    if "kills" in wanted:
        figures["kills"] = killed(folder, _taking_part(peers, {"kills"}), bench.options.kills)
    return figures


def _taking_part(peers: Mapping[str, Peer], rows: set[str]) -> dict[str, Peer]:
    return {name: peer for name, peer in peers.items() if any(map(peer.takes_part, rows))}


@contextmanager
def _running(
    folder: Path, peers: Mapping[str, Peer], **settings: Any
) -> Iterator[dict[str, Cluster]]:
    """Start the brokers of all peers in a new folder, which is removed at the end."""
    own = folder / "brokers"
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(peer.start(_new(own, name), **settings))
            for name, peer in peers.items()
        }
    shutil.rmtree(own)


def starts(folder: Path, peers: Mapping[str, Peer]) -> dict[str, float]:
    """Seconds from the start of name server and broker to ready, for each broker; medians."""
    say(f"starting each {STARTS} times")
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(STARTS):
        for name, peer in peers.items():
            with _running(folder, {name: peer}) as clusters:
                seconds[name].append(clusters[name].start_seconds)
    return {name: round(median(each), 2) for name, each in seconds.items()}


def side_by_side(
    folder: Path, wanted: set[str], peers: Mapping[str, Peer], bench: Bench
) -> Figures:
    """All rows with ASYNC_FLUSH."""
    figures: Figures = {"scenarios": {}}

    def part(row: str) -> dict[str, Cluster]:
        return {name: each for name, each in clusters.items() if peers[name].takes_part(row)}

    with _running(folder, peers) as clusters:
        everybody = list(clusters.values())
        for name, cluster in clusters.items():
            if peers[name].is_jvm:
                bench.warm_up(name, cluster, everybody)
        for row in [row for row in LOADS if row in wanted]:
            if row == "pull-32":
                for name, cluster in part(row).items():
                    with alone(cluster, everybody):
                        store_backlog(name, cluster)
            limit = MESSAGES_OF_A_RUN if row == "batch-32" else MESSAGES_MAX
            figures["scenarios"][row] = bench.alternate(
                row, LOADS[row], part(row), everybody, messages_max=limit
            )
        if OFFERED & wanted:
            rate = figures["offered_rate"] = _half_rate(figures, clusters, bench)
            if "offered" in wanted:
                figures["offered"] = bench.alternate(
                    "offered", SCENARIOS["send-64x1"], part("offered"), everybody, rate=rate
                )
        for row in [row for row in ("mixed", "java-client", "memory") if row in wanted]:
            figures[row] = {}
            for name, cluster in part(row).items():
                with alone(cluster, everybody):
                    figures[row][name] = _alone(row, name, cluster, bench, figures)
    return figures


def _half_rate(figures: Figures, clusters: dict[str, Cluster], bench: Bench) -> int:
    """Half of the reference's rate of single sends; measured when its row is not wanted."""
    name = next(name for name in (*REFERENCES, *clusters) if name in clusters)
    sends = figures["scenarios"].get("send-64x1") or bench.alternate(
        "send-64x1", LOADS["send-64x1"], {name: clusters[name]}, list(clusters.values())
    )
    return int(sends[name]["rate"] / 2)


def _alone(row: str, name: str, cluster: Cluster, bench: Bench, figures: Figures) -> Figures:
    """One of the rows without alternation."""
    options = bench.options
    say(f"{row}: {name}")
    try:
        if row == "mixed":
            rate = figures["offered_rate"]
            return beside_consumers(cluster, rate, options.mixed_seconds)
        if row == "memory":
            filled = measure(
                cluster, FILLING, seconds=FILLING_SECONDS_MAX, messages_max=options.messages
            )
            return {**cluster.memory_mb(), "messages": filled["messages"]}
        topic = f"Load{int(time.time())}"
        addr = cluster.namesrv_addr
        creation = Scenario(1, 1, lambda number: send_template(number, topic))
        run(creation, cluster.broker_addr, seconds=CREATION_SECONDS, messages_max=1)
        return {
            "sent_per_second": java_clients.produce(addr, topic, options.client_seconds),
            "received_per_second": java_clients.consume(addr, topic, options.client_seconds // 2),
        }
    except SystemExit as reason:
        return {"failed": note_failure(name, row, reason)}


def synchronous(folder: Path, peers: Mapping[str, Peer], bench: Bench) -> Figures:
    """Single sends with SYNC_FLUSH, on separate brokers."""
    with _running(folder, peers, **SYNC) as clusters:
        everybody = list(clusters.values())
        for name, cluster in clusters.items():
            if peers[name].is_jvm:
                bench.warm_up(f"{name} with SYNC_FLUSH", cluster, everybody)
        return bench.alternate("sync-64x1", SCENARIOS["send-64x1"], clusters, everybody)


def signed(folder: Path, peers: Mapping[str, Peer], bench: Bench) -> Figures:
    """Signed sends to brokers with access control, by an account that may send to one topic."""
    own = folder / "signed"
    with ExitStack() as stack:
        clusters = {}
        for name, peer in peers.items():
            settings, conf = (
                (ACL_2, {}) if name != JAVA_4 else (ACL_1, {"plain_acl.yml": PLAIN_ACL})
            )
            started = peer.start(_new(own, name), conf, **settings)
            cluster = clusters[name] = stack.enter_context(started)
            if name == JAVA_4:
                sign_as_admin(cluster)
            else:
                asyncio.run(create_account(cluster))
            check_access_control(cluster)
        figures = _all_of("access control", SIGNED | TLS_SIGNED, clusters, peers, bench)
    shutil.rmtree(own)
    return figures


def _all_of(
    what: str,
    scenarios: Mapping[str, Scenario],
    clusters: dict[str, Cluster],
    peers: Mapping[str, Peer],
    bench: Bench,
) -> Figures:
    """Warm up the JVMs with the scenarios, then measure the scenarios on all clusters."""
    everybody = list(clusters.values())
    seconds = bench.options.warm_up_seconds / 2
    for name in [name for name in clusters if peers[name].is_jvm and seconds]:
        with alone(clusters[name], everybody):
            say(f"warming up {name} with {what}")
            for scenario in scenarios.values():
                measure(clusters[name], scenario, seconds=seconds)
    return {
        name: bench.alternate(name, scenario, clusters, everybody)
        for name, scenario in scenarios.items()
    }


def killed(folder: Path, peers: Mapping[str, Peer], kills: int) -> Figures:
    """Acknowledged messages that each broker loses when it is killed under load."""
    figures = {}
    for name, peer in peers.items():
        say(f"killing {name} {kills} times")
        with _running(folder, {name: peer}) as clusters:
            try:
                figures[name] = kill_repeatedly(clusters[name], kills)
            except (SystemExit, AssertionError, TimeoutError) as reason:
                # The broker does not start again, or not all of its messages can be read.
                figures[name] = {"failed": note_failure(name, "a kill", reason)}
    return figures


def _new(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    return path
