"""Snapshots of the state machine, and the compaction of the log behind them.

A snapshot is taken on the event loop, between two effects, when `snapshot_entries` or
`snapshot_bytes` were applied behind the last one. A thread writes the file while the member goes
on; the short steps that make it the newest run in the disk thread, in turn with the effects.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable

from core_broker.raft.machine import StateMachine
from core_broker.raft.model import Entry, SnapshotMeta
from core_broker.raft.node import RaftNode
from core_broker.raft.storage import RaftStorage
from core_broker.raft_member.settings import MemberSettings

#: Runs a call in the disk thread.
OnDisk = Callable[[Callable[[], None]], Awaitable[None]]


class Snapshots:
    """Takes the snapshots of one member. Event loop only."""

    def __init__(
        self,
        settings: MemberSettings,
        node: RaftNode,
        storage: RaftStorage,
        machine: StateMachine,
        on_disk: OnDisk,
        wake: Callable[[], None],
    ) -> None:
        #: Snapshots taken by this member.
        self.taken = 0
        self._settings = settings
        self._node = node
        self._storage = storage
        self._machine = machine
        self._on_disk = on_disk
        self._wake = wake
        self._entries = self._bytes = 0
        self._writing: asyncio.Task[SnapshotMeta] | None = None

    def applied(self, entry: Entry) -> None:
        """Count an applied entry."""
        self._entries += 1
        self._bytes += entry.size

    def restored(self) -> None:
        """The state was replaced by a snapshot of the leader."""
        self._entries = self._bytes = 0

    async def advance(self, applied_index: int) -> None:
        """Take the next step; called while nothing else uses the disk thread.

        Raises what the machine or the disk raise: the member must stop.
        """
        settings = self._settings
        if self._writing is not None:
            if self._writing.done():
                snapshot = self._writing.result()
                self._writing = None
                await self._publish(snapshot)
            return
        if self._entries >= settings.snapshot_entries or self._bytes >= settings.snapshot_bytes:
            self._begin(applied_index)

    async def close(self) -> None:
        """Wait for the write under way, if any; the file is not used."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    def _begin(self, index: int) -> None:
        term = self._node.term_at(index)
        assert term is not None
        membership = self._node.membership_at(index)
        data = self._machine.snapshot()
        self._entries = self._bytes = 0

        def write() -> SnapshotMeta:
            snapshot = SnapshotMeta(index, term, membership, len(data), zlib.crc32(data))
            self._storage.write_snapshot(snapshot, data)
            return snapshot

        loop = asyncio.get_running_loop()
        self._writing = loop.create_task(asyncio.to_thread(write))
        self._writing.add_done_callback(lambda _: self._wake())

    async def _publish(self, snapshot: SnapshotMeta) -> None:
        storage, settings = self._storage, self._settings
        if snapshot.index <= storage.snapshot.index:
            return  # the leader's snapshot was faster
        await self._on_disk(lambda: storage.publish_snapshot(snapshot))
        storage.compact(settings.kept_entries, settings.kept_bytes_max)
        self._node.compacted()
        self.taken += 1
        await self._on_disk(storage.remove_obsolete)
