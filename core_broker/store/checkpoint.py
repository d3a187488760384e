"""Checkpoints: the state up to which the store is complete on the disk.

`checkpoint`, 4096 bytes, compatible with RocketMQ's StoreCheckpoint:

    8 store time of the newest message flushed in the commit log   8 … in the consume queues
    8 store time of the newest message flushed in the index        8 flushed offset of the master
    8 end of the messages that replicas confirmed                  rest zeros

RocketMQ restarts from a time and reads the segment before that time again.
`dispatchCheckpoint.json` is Gantry's own and may be missing: it has the physical offset up to which
commit log, consume queues and index are on the disk, and the range of each queue at that offset. So
a restart reads little of the log, and detects missing or shortened queues and index files.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core_broker.message.layout import Layout
from core_broker.store.files import Files, read_file, replace_file

#: Size of the file, bytes.
CHECKPOINT_BYTES = 4096
#: RocketMQ's margin between the newest flushed message and the start of recovery, ms.
MARGIN_MS = 3000
CHECKPOINT = Layout(
    ("physic_msg_timestamp", "q"),
    ("logics_msg_timestamp", "q"),
    ("index_msg_timestamp", "q"),
    ("master_flushed_offset", "q"),
    ("confirm_phy_offset", "q"),
)
_FIELDS = CHECKPOINT.struct


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """RocketMQ's checkpoint: store times in ms, and offsets of the commit log."""

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    #: RocketMQ writes the field, and does not use it under a controller.
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0

    def recover_from_timestamp(self, *, with_index: bool = False) -> int:
        """Return the store time before which all messages are on the disk, ms."""
        least = min(self.physic_msg_timestamp, self.logics_msg_timestamp)
        if with_index:
            least = min(least, self.index_msg_timestamp)
        return max(0, least - MARGIN_MS)


#: Topic → queue id → first and end offset.
QueueRanges = dict[str, dict[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class DispatchCheckpoint:
    """A physical offset before which the disk is complete, with the ranges of queues and index."""

    offset_physical: int
    #: Offsets of the start of the log and of its last record; -1 without a record.
    min_physical: int = 0
    last_record: int = -1
    queues: QueueRanges = field(default_factory=dict)
    #: Index file → physical offset of the last message in it.
    index_ends: dict[str, int] = field(default_factory=dict)
    #: mappedFileSizeCommitLog at that time; 0 when unknown.
    segment_size: int = 0


def load_checkpoint(files: Files, path: Path) -> Checkpoint:
    """Read the checkpoint; a missing or short file counts as zeros, and recovery reads all."""
    return parse_checkpoint(read_file(files, path)) if files.exists(path) else Checkpoint()


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Parse the bytes of a checkpoint; too few bytes count as zeros."""
    if len(data) < _FIELDS.size:
        return Checkpoint()
    return Checkpoint(*_FIELDS.unpack_from(data))


def save_checkpoint(files: Files, path: Path, checkpoint: Checkpoint) -> None:
    """Write and sync the checkpoint."""
    file = files.open(path, create=True)
    try:
        file.truncate(CHECKPOINT_BYTES)
        file.pwrite(
            _FIELDS.pack(
                checkpoint.physic_msg_timestamp,
                checkpoint.logics_msg_timestamp,
                checkpoint.index_msg_timestamp,
                checkpoint.master_flushed_offset,
                checkpoint.confirm_phy_offset,
            ),
            0,
        )
        file.sync()
    finally:
        file.close()


def load_dispatch_checkpoint(files: Files, path: Path) -> DispatchCheckpoint | None:
    """Read Gantry's own checkpoint; None for a missing or invalid file."""
    return parse_dispatch_checkpoint(read_file(files, path)) if files.exists(path) else None


def parse_dispatch_checkpoint(data: bytes) -> DispatchCheckpoint | None:
    """Parse Gantry's own checkpoint; None for invalid bytes."""
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
    """Replace Gantry's own checkpoint; the caller has synced the described state."""
    replace_file(files, path, encode_dispatch_checkpoint(checkpoint))


def encode_dispatch_checkpoint(checkpoint: DispatchCheckpoint) -> bytes:
    """Return the content of Gantry's own checkpoint."""
    return b"".join(_pieces(checkpoint))


def _pieces(checkpoint: DispatchCheckpoint) -> Iterator[bytes]:
    """Encode topic by topic: json.dumps() of the whole checkpoint would hold the GIL for long."""
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
