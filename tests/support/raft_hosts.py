"""A Raft node with storage on a simulated disk and a small key-value state machine.

`Host` executes the effects of its node in the order that `Ready` prescribes, in two halves: `take`
sends what may leave at once, and `finish` persists, sends the rest and applies.
"""

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from core_broker.raft.config import RaftConfig
from core_broker.raft.messages import AnyMessage, Message, decode_messages, encode_messages
from core_broker.raft.model import Entry, EntryKind, Membership, SnapshotMeta
from core_broker.raft.node import RaftNode
from core_broker.raft.ready import Ready
from core_broker.raft.storage import RaftStorage
from core_broker.store.simulated_files import SimulatedFiles

FOLDER = Path("/raft")


class Command(msgspec.Struct, frozen=True):
    """A command of the state machine; an empty `expected` writes without a condition."""

    id: int
    key: str
    value: str
    expected: str | None = None


class Machine:
    """The replicated state machine: a map, with conditional writes."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.applied = 0

    def apply(self, data: bytes) -> bool:
        """Apply a command; return whether the condition held."""
        command = msgspec.json.decode(data, type=Command)
        if command.expected is not None and self.values.get(command.key, "") != command.expected:
            return False
        self.values[command.key] = command.value
        return True

    def save(self) -> bytes:
        """Return a snapshot."""
        return msgspec.json.encode(self.values, order="sorted")

    def load(self, data: bytes, index: int) -> None:
        """Replace the state by a snapshot; the first one of a group is empty."""
        self.values = msgspec.json.decode(data, type=dict[str, str]) if data else {}
        self.applied = index


class Host:
    """One node and its machine; after a crash, `start` begins a new life on the same disk."""

    def __init__(self, config: RaftConfig, files: SimulatedFiles, segment_bytes: int) -> None:
        self.config = config
        self.files = files
        self.segment_bytes = segment_bytes
        self.machine = Machine()
        self.node: RaftNode | None = None
        self.storage: RaftStorage | None = None
        self.ready: Ready | None = None
        #: Called with every applied entry and the answer of the machine.
        self.on_applied: Callable[[Entry, bool], None] = lambda entry, answer: None

    @property
    def id(self) -> int:
        """The node's id."""
        return self.config.node_id

    def initialise(self, membership: Membership) -> None:
        """Prepare the disk of a new node, unless an earlier life did."""
        if not RaftStorage.is_initialised(self.files, FOLDER):
            RaftStorage.initialise(self.files, FOLDER, self.id, membership)

    def start(self, source: random.Random) -> None:
        """Begin a life: read the disk."""
        self.storage = RaftStorage(self.files, FOLDER, self.id, self.segment_bytes)
        self.node = RaftNode(self.config, self.storage, source)
        self.machine = Machine()
        self.machine.load(self.storage.read_snapshot(), self.storage.snapshot.index)
        self.ready = None

    def crash(self, *, is_power_cut: bool) -> None:
        """End a life; a power cut also loses what was not synced."""
        if is_power_cut:
            self.files.power_cut()
        else:
            self.files.kill()
        self.node = self.storage = self.ready = None

    def take(self) -> tuple[Message, ...]:
        """Begin the next Ready, if any; return the messages that leave at once."""
        assert self.node is not None
        if self.ready is None:
            self.ready = self.node.take_ready()
            return self.ready.messages if self.ready is not None else ()
        return ()

    def finish(self) -> tuple[Message, ...]:
        """Persist and apply the Ready; return the messages that had to wait for the disk."""
        ready, node, storage = self.ready, self.node, self.storage
        assert ready is not None
        assert node is not None
        assert storage is not None
        storage.persist(ready)
        if ready.snapshot is not None:
            self.machine.load(storage.read_snapshot(), ready.snapshot.index)
        node.persisted()
        self.ready = None
        for entry in ready.committed:
            assert entry.index == self.machine.applied + 1, "an entry was skipped or repeated"
            answer = entry.kind is EntryKind.NORMAL and self.machine.apply(entry.data)
            self.machine.applied = entry.index
            self.on_applied(entry, answer)
        if ready.committed:
            node.applied(ready.committed[-1].index)
        return ready.messages_after

    def take_snapshot(self, keep_entries: int = 0) -> SnapshotMeta | None:
        """Save the machine's state and compact the log; None without new entries."""
        node, storage = self.node, self.storage
        assert node is not None
        assert storage is not None
        index = self.machine.applied
        term = node.term_at(index)
        if index <= storage.snapshot.index or term is None:
            return None
        data = self.machine.save()
        membership = node.membership_at(index)
        snapshot = SnapshotMeta(index, term, membership, len(data), zlib.crc32(data))
        storage.save_snapshot(snapshot, data, keep_entries)
        node.compacted()
        return snapshot


def travelled(message: Message) -> AnyMessage:
    """Return a message as its receiver decodes it."""
    (received,) = decode_messages(encode_messages([message]))
    return received
