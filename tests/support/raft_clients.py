"""Clients of a simulated Raft cluster: writes, conditional writes and linearizable reads.

A client has one operation at a time and gives up after a deadline; an operation without an answer
may still take effect. The history is checked at the end of a run.
"""

import msgspec

from core_broker.raft.model import Entry, EntryKind
from core_broker.raft.refusals import RaftRefused
from tests.support.linearizability import Operation
from tests.support.raft_cluster import Cluster, Reads
from tests.support.raft_hosts import Command, Host

CLIENTS = 3
KEYS = ("x", "y")
DEADLINE_MS = 300


class Clients:
    """All clients of one cluster, and their history."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._is_ended = False
        self._moment = 0
        self._operations: dict[int, Operation] = {}
        self._failed: set[int] = set()
        self._receipts: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._applied: set[int] = set()
        self._waiting_reads: dict[int, list[tuple[int, int]]] = {}
        self._writes = 0
        cluster.on_crash = self._node_crashed
        cluster.on_applied = self._entry_applied
        cluster.on_reads = self._reads_answered

    def begin(self) -> None:
        """Begin all clients."""
        for _ in range(CLIENTS):
            self._next_operation()

    def end(self) -> None:
        """Begin no further operations."""
        self._is_ended = True

    def history(self) -> list[Operation]:
        """Return the operations that were answered or took effect."""
        return [
            each
            for number, each in self._operations.items()
            if number not in self._failed and (each.answer is not None or number in self._applied)
        ]

    def propose(self, host: Host, operation: Operation) -> int:
        """Propose a write or swap at a node; return its number, or raise RaftRefused."""
        assert host.node is not None
        number = len(self._operations)
        expected = operation.expected if operation.kind == "swap" else None
        command = Command(number, operation.key, operation.value, expected)
        receipt = host.node.propose(msgspec.json.encode(command))
        self._operations[number] = operation
        places = self._receipts.setdefault((host.id, receipt.index), [])
        places.append((receipt.term, number))
        self._cluster.event(host, lambda: None)
        return number

    def is_answered(self, number: int) -> bool:
        """Whether an operation took effect."""
        return number in self._applied

    # -- a client --

    def _next_operation(self) -> None:
        self._cluster.after(self._random.uniform(1, 60), self._begin_operation)

    def _begin_operation(self) -> None:
        if self._is_ended:
            return
        alive = [each for each in self._cluster.hosts.values() if each.node is not None]
        leader = self._cluster.leader()
        if not alive:
            self._next_operation()
            return
        is_read = self._random.random() < 0.4
        host = self._random.choice(alive)
        if leader is not None and self._random.random() < (0.5 if is_read else 0.8):
            host = leader
        key = self._random.choice(KEYS)
        try:
            number = self._read(host, key) if is_read else self._write(host, key)
        except RaftRefused:
            self._next_operation()
            return
        self._wait(number)

    def _write(self, host: Host, key: str) -> int:
        self._writes += 1
        value = str(self._writes)
        if self._random.random() < 0.3:
            expected = str(self._random.randint(max(0, self._writes - 5), self._writes - 1))
            return self.propose(host, Operation(key, "swap", self._now(), value, expected))
        return self.propose(host, Operation(key, "write", self._now(), value))

    def _read(self, host: Host, key: str) -> int:
        assert host.node is not None
        number = len(self._operations)
        host.node.read(number)
        self._operations[number] = Operation(key, "read", self._now())
        self._cluster.event(host, lambda: None)
        return number

    def _wait(self, number: int) -> None:
        """Go on after the answer, or after the deadline."""
        deadline_ms = self._cluster.now_ms + DEADLINE_MS

        def look() -> None:
            is_over = self._operations[number].answer is not None or number in self._failed
            if is_over or self._cluster.now_ms >= deadline_ms:
                self._next_operation()
            else:
                self._cluster.after(10, look)

        look()

    # -- answers --

    def _now(self) -> int:
        self._moment += 1
        return self._moment

    def _answered(self, number: int, answer: str) -> None:
        operation = self._operations[number]
        if operation.answer is None:
            operation.answer = answer
            operation.returned = self._now()

    def _node_crashed(self, node_id: int) -> None:
        self._waiting_reads.pop(node_id, None)
        for place in [each for each in self._receipts if each[0] == node_id]:
            del self._receipts[place]

    def _entry_applied(self, host: Host, entry: Entry, answer: bool) -> None:
        number = -1
        if entry.kind is EntryKind.NORMAL:
            number = msgspec.json.decode(entry.data, type=Command).id
            self._applied.add(number)
        for term, proposed in self._receipts.pop((host.id, entry.index), ()):
            if term == entry.term:
                assert proposed == number, f"the receipt of {proposed} led to {number}"
                is_swap = self._operations[number].kind == "swap"
                self._answered(number, str(answer) if is_swap else "")
            else:
                self._failed.add(proposed)

    def _reads_answered(self, host: Host, reads: Reads, refused: tuple[int, ...]) -> None:
        self._failed.update(refused)
        waiting = self._waiting_reads.setdefault(host.id, [])
        waiting += reads
        served = [each for each in waiting if each[1] <= host.machine.applied]
        waiting[:] = [each for each in waiting if each[1] > host.machine.applied]
        for number, _ in served:
            self._answered(number, host.machine.values.get(self._operations[number].key, ""))
