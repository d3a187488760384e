"""A simulated cluster of Raft nodes: virtual time, a bad network, bad disks, clients; one seed.

Everything that happens is an event at a virtual millisecond, and every choice comes from the seed.
The clients (raft_clients.py) and the faults (raft_faults.py) act on the cluster from outside.
"""

import heapq
import random
from collections.abc import Callable, Iterable
from functools import partial

from core_broker.errors import StoreReadOnly
from core_broker.raft.config import RaftConfig
from core_broker.raft.messages import Message
from core_broker.raft.model import Entry, Membership
from core_broker.raft.state import Role
from core_broker.store.simulated_files import UNLIMITED, SimulatedFiles
from tests.support.raft_hosts import Host, travelled
from tests.support.raft_invariants import Invariants

TICK_MS = 10
NODES_MAX = 6
Reads = tuple[tuple[int, int], ...]


class Died(BaseException):
    """The process or machine of a node died in a disk call."""


class Cluster:
    """The nodes, links and clients of one run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0.0
        self.invariants = Invariants()
        self.voters = self.random.choice((3, 3, 5))
        pre_vote, check_quorum = self.random.choice(
            ((True, True), (True, True), (True, False), (False, False))
        )
        shared = {
            "heartbeat_ticks": 3,
            "pre_vote": pre_vote,
            "check_quorum": check_quorum,
            "message_bytes_max": self.random.choice((1, 200, 5_000)),
            "in_flight_messages_max": self.random.choice((1, 2, 8)),
            "apply_bytes_max": self.random.choice((1, 300, 10_000)),
            "snapshot_chunk_bytes_max": self.random.choice((7, 60, 1_000)),
        }
        segment_bytes = self.random.choice((200, 600, 3_000))
        self.hosts = {
            node_id: Host(RaftConfig(node_id, **shared), SimulatedFiles(seed), segment_bytes)
            for node_id in range(1, NODES_MAX + 1)
        }
        self.lives = dict.fromkeys(self.hosts, 0)
        self.tick_ms: dict[int, float] = dict.fromkeys(self.hosts, TICK_MS)
        self.cuts: set[tuple[int, int]] = set()
        self.loss = self.duplication = 0.0
        self.delay_max_ms = 8
        self.disk_max_ms = self.random.choice((0, 3, 30))
        #: Hooks of the clients: a node died; an entry was applied; reads were answered, refused.
        self.on_crash: Callable[[int], None]
        self.on_applied: Callable[[Host, Entry, bool], None]
        self.on_reads: Callable[[Host, Reads, tuple[int, ...]], None]
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        for host in self.hosts.values():
            host.on_applied = self._applied(host)

    # -- time --

    def after(self, delay_ms: float, event: Callable[[], None]) -> None:
        """Schedule an event."""
        self._number += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._number, event))

    def run_until(self, end_ms: float, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass; return whether `is_done` became true."""
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
            if is_done():
                return True
        return False

    # -- nodes --

    def start(self, host: Host, membership: Membership) -> None:
        """Start a node for the first time or again; a disk fault ends the start."""
        self.lives[host.id] += 1
        life = self.lives[host.id]
        try:
            host.initialise(membership)
            host.start(random.Random(self.random.random()))
        except (Died, OSError):
            self.crash(host)
            return
        self.invariants.state_reached(host)
        self.after(self.random.uniform(0, TICK_MS), lambda: self._tick(host, life))

    def crash(self, host: Host, *, is_power_cut: bool | None = None) -> None:
        """End a node's life; the node starts again later."""
        if is_power_cut is None:
            is_power_cut = self.random.random() < 0.7
        self.lives[host.id] += 1
        host.files.fault = None
        host.files.capacity = UNLIMITED
        host.crash(is_power_cut=is_power_cut)
        self.on_crash(host.id)
        self.after(self.random.choice((1, 50, 400)), lambda: self.restart(host))

    def restart(self, host: Host) -> None:
        """Start a node unless it runs."""
        if host.node is None:
            self.start(host, Membership())

    def leader(self) -> Host | None:
        """Return a node that believes to be the leader, the highest term first."""
        leaders = [each for each in self.hosts.values() if is_leader(each)]
        return max(leaders, key=term_of, default=None)

    def _tick(self, host: Host, life: int) -> None:
        if self.lives[host.id] != life:
            return
        assert host.node is not None
        self.event(host, host.node.tick)
        self.after(self.tick_ms[host.id], lambda: self._tick(host, life))

    def event(self, host: Host, action: Callable[[], object]) -> None:
        """Give a node an event and execute the effects; a failed disk read stops the node."""
        try:
            action()
            self._begin_ready(host)
        except (Died, OSError):
            self.crash(host)

    def _begin_ready(self, host: Host) -> None:
        """Begin the next Ready of a node; the disk takes a while."""
        if host.ready is not None:
            return
        self._send(host.take())
        if host.ready is not None:
            if host.ready.status is not None:
                self.invariants.status_seen(host)
            life = self.lives[host.id]
            delay_ms = self.random.uniform(0, self.disk_max_ms) if host.ready.must_persist else 0
            self.after(delay_ms, lambda: self._finish(host, life))

    def _finish(self, host: Host, life: int) -> None:
        if self.lives[host.id] != life:
            return
        ready = host.ready
        assert ready is not None
        try:
            after = host.finish()
        except (Died, OSError, StoreReadOnly):
            self.crash(host)
            return
        self.invariants.entries_persisted(host, ready.entries)
        if ready.committed or ready.snapshot is not None:
            self.invariants.state_reached(host)
        self._send(after)
        self.on_reads(host, ready.reads, ready.refused_reads)
        self.event(host, lambda: None)

    def _applied(self, host: Host) -> Callable[[Entry, bool], None]:
        def applied(entry: Entry, answer: bool) -> None:
            self.invariants.entry_applied(host, entry)
            self.on_applied(host, entry, answer)

        return applied

    # -- network --

    def _send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if (message.source, message.target) in self.cuts:
                continue
            copies = 2 if self.random.random() < self.duplication else 1
            for _ in range(copies):
                if self.random.random() >= self.loss:
                    delay_ms = self.random.uniform(0.1, self.delay_max_ms)
                    self.after(delay_ms, partial(self._deliver, message))

    def _deliver(self, message: Message) -> None:
        host = self.hosts[message.target]
        node = host.node
        if node is not None and (message.source, message.target) not in self.cuts:
            if self._number % 16 == 0:
                message = travelled(message)
            self.event(host, lambda: node.receive(message))


def is_leader(host: Host) -> bool:
    """Whether a node is alive and believes to be the leader."""
    return host.node is not None and host.node.status.role is Role.LEADER


def term_of(host: Host) -> int:
    """Return the term of a live node."""
    assert host.node is not None
    return host.node.status.term
