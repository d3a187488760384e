"""Faults of a simulated Raft cluster: partitions, loss, crashes, disks, clocks, memberships."""

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from core_broker.raft.membership import ChangeKind
from core_broker.raft.model import Membership
from core_broker.raft.refusals import RaftRefused
from tests.support.raft_cluster import TICK_MS, Cluster, Died
from tests.support.raft_hosts import Host

#: Disk calls until a planned fault, at most. A batch of entries takes two calls.
CALLS_MAX = 25


class Fault:
    """A fault of `SimulatedFiles` that strikes at the n-th disk call."""

    def __init__(self, number: int, strike: Callable[[str, Path], BaseException]) -> None:
        self._left = number
        self._strike = strike

    def __call__(self, operation: str, path: Path) -> None:
        """Count a call."""
        self._left -= 1
        if self._left == 0:
            raise self._strike(operation, path)


def death(operation: str, path: Path) -> BaseException:
    """Return the end of a process in a disk call."""
    return Died(f"{operation} {path}")


def disk_error(code: int) -> Callable[[str, Path], BaseException]:
    """Return what a disk call raises for an error code."""
    return lambda operation, path: OSError(code, f"commanded fault of {operation}", str(path))


class Faults:
    """Applies one random fault after another."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._is_ended = False
        self._kinds = (
            *(self._partition, self._partition, self._one_way, self._heal, self._heal),
            *(self._lossy, self._crash, self._die_in_call, self._die_in_call, self._fail_disk),
            *(self._fill_disk, self._drift, self._snapshot, self._snapshot, self._transfer),
            *(self._change_membership, self._change_membership),
        )

    def begin(self) -> None:
        """Begin."""
        self._cluster.after(self._random.uniform(20, 150), self._next)

    def end(self) -> None:
        """Take all faults back, except that dead nodes stay dead."""
        self._is_ended = True
        self._heal()
        for host in self._cluster.hosts.values():
            host.files.fault = None
            host.files.capacity = 1 << 60
            self._cluster.tick_ms[host.id] = TICK_MS

    def _next(self) -> None:
        if not self._is_ended:
            self._random.choice(self._kinds)()
            self._cluster.after(self._random.expovariate(1 / 60), self._next)

    def _some_host(self) -> Host | None:
        alive = [each for each in self._cluster.hosts.values() if each.node is not None]
        leader = self._cluster.leader()
        if leader is not None and self._random.random() < 0.4:
            return leader
        return self._random.choice(alive) if alive else None

    # -- network --

    def _partition(self) -> None:
        nodes = list(self._cluster.hosts)
        self._random.shuffle(nodes)
        half = set(nodes[: self._random.randint(1, len(nodes) // 2)])
        bridge = self._random.choice(nodes) if self._random.random() < 0.2 else None
        self._cluster.cuts = {
            (a, b)
            for a in nodes
            for b in nodes
            if (a in half) != (b in half) and bridge not in (a, b)
        }

    def _one_way(self) -> None:
        a, b = self._random.sample(list(self._cluster.hosts), 2)
        targets = list(self._cluster.hosts) if self._random.random() < 0.5 else [b]
        self._cluster.cuts |= {(a, target) for target in targets}

    def _heal(self) -> None:
        self._cluster.cuts = set()
        self._cluster.loss = self._cluster.duplication = 0.0
        self._cluster.delay_max_ms = 8

    def _lossy(self) -> None:
        self._cluster.loss = self._random.choice((0.0, 0.05, 0.3))
        self._cluster.duplication = self._random.choice((0.0, 0.1, 0.5))
        self._cluster.delay_max_ms = self._random.choice((8, 60, 250))

    # -- nodes --

    def _crash(self) -> None:
        host = self._some_host()
        if host is not None:
            self._cluster.crash(host)

    def _die_in_call(self) -> None:
        host = self._some_host()
        if host is not None:
            host.files.fault = Fault(self._random.randint(1, CALLS_MAX), death)

    def _fail_disk(self) -> None:
        host = self._some_host()
        if host is not None:
            code = self._random.choice((errno.EIO, errno.ENOSPC))
            host.files.fault = Fault(self._random.randint(1, CALLS_MAX), disk_error(code))

    def _fill_disk(self) -> None:
        host = self._some_host()
        if host is not None:
            host.files.capacity = host.files.used

    def _drift(self) -> None:
        host = self._some_host()
        if host is not None:
            self._cluster.tick_ms[host.id] = TICK_MS * self._random.choice((0.3, 1, 1, 4))

    def _snapshot(self) -> None:
        host = self._some_host()
        if host is not None and host.ready is None:
            try:
                host.take_snapshot(self._random.choice((0, 0, 3)))
            except (Died, OSError):
                self._cluster.crash(host)

    # -- commands of an operator --

    def _transfer(self) -> None:
        leader = self._cluster.leader()
        if leader is None or leader.node is None:
            return
        target = self._random.choice(list(self._cluster.hosts))
        node = leader.node
        with suppress(RaftRefused):
            self._cluster.event(leader, lambda: node.transfer_leadership(target))

    def _change_membership(self) -> None:
        leader = self._cluster.leader()
        if leader is None or leader.node is None:
            return
        node = leader.node
        node_id = self._random.choice(list(self._cluster.hosts))
        kind = self._random.choice(list(ChangeKind))
        voters = node.membership.voters
        if kind is not ChangeKind.ADD_VOTER and node_id in voters and len(voters) <= 3:
            return
        try:
            self._cluster.event(leader, lambda: node.change_membership(kind, node_id))
        except RaftRefused:
            return
        if kind is not ChangeKind.REMOVE and self._cluster.lives[node_id] == 0:
            self._cluster.start(self._cluster.hosts[node_id], Membership())
