"""Checkpoints: up to where the store is known to be whole on the disk.

`checkpoint`, 4096 bytes, compatible with RocketMQ's StoreCheckpoint:

    8 store time of the newest message flushed in the commit log   8 … in the consume queues
    8 store time of the newest message flushed in the index        rest zeros

RocketMQ restarts from a time; the segment before it is read again. `dispatchCheckpoint.json` is
Gantry's own and may be missing: it names the very offset up to which commit log, consume queues
and index are all on the disk, and how far each reached there. So a restart reads little, and a lost
or shortened queue or index is noticed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core_broker.message.layout import Layout
from core_broker.store.files import Files, read_file, replace_file

CHECKPOINT_BYTES = 4096
#: RocketMQ's margin between the newest flushed message and where recovery may begin.
MARGIN_MS = 3000
CHECKPOINT = Layout(
    ("physic_msg_timestamp", "q"), ("logics_msg_timestamp", "q"), ("index_msg_timestamp", "q")
)
_TIMES = CHECKPOINT.struct


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """RocketMQ's checkpoint: store times in ms."""

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0

    def recover_from_timestamp(self, *, with_index: bool = False) -> int:
        """Return the time before which everything is on the disk."""
        least = min(self.physic_msg_timestamp, self.logics_msg_timestamp)
        if with_index:
            least = min(least, self.index_msg_timestamp)
        return max(0, least - MARGIN_MS)


#: Topic → queue id → its first logical offset and the one behind its last.
QueueRanges = dict[str, dict[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class DispatchCheckpoint:
    """Everything before `offset_physical` is on the disk; so much was in queues and index then."""

    offset_physical: int
    #: Where the commit log began, and where its last record does; -1 without one.
    min_physical: int = 0
    last_record: int = -1
    queues: QueueRanges = field(default_factory=dict)
    #: Index file → physical offset of the last message in it.
    index_ends: dict[str, int] = field(default_factory=dict)
    #: mappedFileSizeCommitLog then; 0 when not known.
    segment_size: int = 0


def load_checkpoint(files: Files, path: Path) -> Checkpoint:
    """Read the checkpoint; a missing or short one counts as zeros, so that all is read again."""
    return parse_checkpoint(read_file(files, path)) if files.exists(path) else Checkpoint()


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Read the bytes of a checkpoint; too few of them count as zeros."""
    if len(data) < _TIMES.size:
        return Checkpoint()
    return Checkpoint(*_TIMES.unpack_from(data))


def save_checkpoint(files: Files, path: Path, checkpoint: Checkpoint) -> None:
    """Write and sync the checkpoint."""
    file = files.open(path, create=True)
    try:
        file.truncate(CHECKPOINT_BYTES)
        file.pwrite(
            _TIMES.pack(
                checkpoint.physic_msg_timestamp,
                checkpoint.logics_msg_timestamp,
                checkpoint.index_msg_timestamp,
            ),
            0,
        )
        file.sync()
    finally:
        file.close()


def load_dispatch_checkpoint(files: Files, path: Path) -> DispatchCheckpoint | None:
    """Read Gantry's own checkpoint; None when it is missing or makes no sense."""
    return parse_dispatch_checkpoint(read_file(files, path)) if files.exists(path) else None


def parse_dispatch_checkpoint(data: bytes) -> DispatchCheckpoint | None:
    """Read the bytes of Gantry's own checkpoint; None when they make no sense."""
    try:
        found = json.loads(data)
        return DispatchCheckpoint(
            int(found["physicalOffset"]),
            int(found["minPhysicalOffset"]),
            int(found["lastRecordOffset"]),
            {
                str(topic): {int(each): (int(low), int(high)) for each, (low, high) in ids.items()}
                for topic, ids in found["queueOffsets"].items()
            },
            {str(name): int(end) for name, end in found["indexEndOffsets"].items()},
            int(found.get("segmentSize", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def save_dispatch_checkpoint(files: Files, path: Path, checkpoint: DispatchCheckpoint) -> None:
    """Replace Gantry's own checkpoint; everything that it states must have been synced before."""
    replace_file(files, path, b"".join(_pieces(checkpoint)))


def _pieces(checkpoint: DispatchCheckpoint) -> Iterator[bytes]:
    """Encode topic by topic: encoding all of it at once would keep every other thread waiting."""
    rest = {
        "physicalOffset": checkpoint.offset_physical,
        "minPhysicalOffset": checkpoint.min_physical,
        "lastRecordOffset": checkpoint.last_record,
        "indexEndOffsets": checkpoint.index_ends,
        "segmentSize": checkpoint.segment_size,
    }
    yield json.dumps(rest).encode().removesuffix(b"}") + b', "queueOffsets": {'
    for number, (topic, queues) in enumerate(checkpoint.queues.items()):
        yield f"{', ' if number else ''}{json.dumps(topic)}: {json.dumps(queues)}".encode()
    yield b"}}"
