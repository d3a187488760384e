"""Executes the effects of the core in the order that `Ready` prescribes.

One task, one Ready at a time. Step 2, the disk, runs in the disk thread while the loop goes on:
messages, ticks and proposals that come meanwhile go into the next Ready, so that one sync serves
all of them. A disk that hangs holds back every promise, and the other members elect another leader.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from core_broker.raft.machine import StateMachine
from core_broker.raft.messages import Message
from core_broker.raft.model import Entry, EntryKind
from core_broker.raft.node import RaftNode
from core_broker.raft.ready import Ready, Status
from core_broker.raft.storage import RaftStorage
from core_broker.raft_member.settings import MemberSettings
from core_broker.raft_member.snapshots import Snapshots

#: Events of the core while one Ready waits for the disk; further ones are dropped, as if lost.
EVENTS_WAITING_MAX = 8_192


class Observer(Protocol):
    """Receives what was executed. Event loop only."""

    def entry_applied(self, entry: Entry, result: Any) -> None:
        """An entry was applied."""

    def applied_to(self, index: int) -> None:
        """The state machine has all entries up to `index`."""

    def state_restored(self, index: int) -> None:
        """The state machine is that of a leader's snapshot."""

    def reads_answered(self, reads: Iterable[tuple[int, int]], refused: Iterable[int]) -> None:
        """Contexts and indexes of confirmed reads, and contexts of refused ones."""

    def status_changed(self, status: Status) -> None:
        """Role, term or leader changed."""


class Execution:
    """The node, the disk and the state machine of a member. Event loop only."""

    def __init__(
        self,
        settings: MemberSettings,
        node: RaftNode,
        storage: RaftStorage,
        machine: StateMachine,
        send: Callable[[Iterable[Message]], None],
        observer: Observer,
    ) -> None:
        #: Index of the last applied entry.
        self.applied_index = storage.snapshot.index
        self._node = node
        self._storage = storage
        self._machine = machine
        self._send = send
        self._observer = observer
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._events = 0
        self._disk = ThreadPoolExecutor(1, thread_name_prefix=f"raft-{settings.node_id}")
        self.snapshots = Snapshots(settings, node, storage, machine, self._on_disk, self.wake)

    # -- events --

    @property
    def is_full(self) -> bool:
        """Whether the disk holds back so many events that further ones must be dropped."""
        return self._events >= EVENTS_WAITING_MAX

    def wake(self) -> None:
        """The node had an event."""
        self._events += 1
        self._wake.set()

    # -- life --

    async def run(self) -> None:
        """Execute effects until `stop`; raises what a disk or the machine raise."""
        while not self._is_stopping:
            await self._wake.wait()
            self._wake.clear()
            while not self._is_stopping:
                await self.snapshots.advance(self.applied_index)
                ready = self._node.take_ready()
                if ready is None:
                    self._events = 0
                    break
                await self._execute(ready)
                await asyncio.sleep(0)  # the connections have their turn

    def stop(self) -> None:
        """Let `run` return behind the present Ready."""
        self._is_stopping = True
        self._wake.set()

    async def close(self) -> None:
        """Release the folder; `run` has returned."""
        await self.snapshots.close()
        await asyncio.get_running_loop().run_in_executor(self._disk, self._storage.close)
        self._disk.shutdown(wait=False)

    # -- effects --

    async def _execute(self, ready: Ready) -> None:
        node = self._node
        self._send(ready.messages)
        self._events = 0
        if ready.must_persist:
            await self._on_disk(lambda: self._storage.persist(ready))
            if ready.snapshot is not None:
                await self._restore(ready.snapshot.index)
            if self._is_stopping:
                return  # of a member that failed meanwhile no promise may leave
        node.persisted()
        self._send(ready.messages_after)
        for entry in ready.committed:
            is_command = entry.kind is EntryKind.NORMAL
            result = self._machine.apply(entry.data) if is_command else None
            self.applied_index = entry.index
            self.snapshots.applied(entry)
            self._observer.entry_applied(entry, result)
        if ready.committed:
            node.applied(ready.committed[-1].index)
            self._observer.applied_to(self.applied_index)
        if ready.reads or ready.refused_reads:
            self._observer.reads_answered(ready.reads, ready.refused_reads)
        if ready.status is not None:
            self._observer.status_changed(ready.status)

    async def _restore(self, index: int) -> None:
        state: list[bytes] = []
        await self._on_disk(lambda: state.append(self._storage.read_snapshot()))
        self._machine.restore(state[0])
        self.applied_index = index
        self.snapshots.restored()
        self._observer.state_restored(index)

    async def _on_disk(self, call: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._disk, call)
