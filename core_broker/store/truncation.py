"""truncation.json: a truncation of the store that is under way, Gantry's own file.

    1946230185                       CRC-32 of the second line
    {"physicalOffset": 4096, …}      the truncation

The file is written before the first change of a truncation, and removed after the last one. A start
that finds the file repeats the truncation (truncator.py), so a crash at any step loses nothing but
the records to be dropped.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from core_broker.errors import StoreCorrupt
from core_broker.store.checkpoint import (
    DispatchCheckpoint,
    encode_dispatch_checkpoint,
    parse_dispatch_checkpoint,
)
from core_broker.store.files import Files, read_file, replace_file

#: Topic → queue id → end offset.
QueueEnds = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Rollback:
    """Progress that must go back, because the records of its results are dropped."""

    #: Delay level → next offset to deliver.
    delay_offsets: dict[int, int] = field(default_factory=dict)
    #: First half message that may be pending, and first op message to read; None: unchanged.
    half_offsets: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """All records at or behind `offset_physical` are dropped, with everything derived from them."""

    offset_physical: int
    #: End of the records that no truncation may drop.
    confirm_offset: int
    #: The state of the store in front of the offset.
    checkpoint: DispatchCheckpoint
    #: The queues that lose messages, and their new ends.
    queue_ends: QueueEnds
    rollback: Rollback


def encode_truncation(truncation: Truncation) -> bytes:
    """Return the content of the file."""
    rollback = truncation.rollback
    fields = {
        "physicalOffset": truncation.offset_physical,
        "confirmOffset": truncation.confirm_offset,
        "checkpoint": json.loads(encode_dispatch_checkpoint(truncation.checkpoint)),
        "queueEndOffsets": truncation.queue_ends,
        "delayOffsets": rollback.delay_offsets,
        "halfOffsets": rollback.half_offsets,
    }
    line = json.dumps(fields).encode() + b"\n"
    return b"%d\n" % crc32(line) + line


def parse_truncation(content: bytes) -> Truncation:
    """Parse the content of the file; raises ValueError for any other content."""
    crc, _, line = content.partition(b"\n")
    if crc != b"%d" % crc32(line):
        raise ValueError("it does not match its checksum")
    try:
        found = json.loads(line)
        checkpoint = parse_dispatch_checkpoint(json.dumps(found["checkpoint"]).encode())
        half = found["halfOffsets"]
        truncation = Truncation(
            int(found["physicalOffset"]),
            int(found["confirmOffset"]),
            checkpoint or DispatchCheckpoint(0),
            {
                str(topic): {int(each): int(end) for each, end in ends.items()}
                for topic, ends in found["queueEndOffsets"].items()
            },
            Rollback(
                {int(level): int(offset) for level, offset in found["delayOffsets"].items()},
                None if half is None else (int(half[0]), int(half[1])),
            ),
        )
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"it lacks {error}") from None
    if checkpoint is None or truncation.offset_physical < truncation.confirm_offset:
        raise ValueError("its offsets are not those of a truncation")
    return truncation


def load_truncation(files: Files, path: Path) -> Truncation | None:
    """Read the file; None without one. Raises StoreCorrupt for a damaged file."""
    if not files.exists(path):
        return None
    try:
        return parse_truncation(read_file(files, path))
    except ValueError as error:
        raise StoreCorrupt(
            str(path), 0, f"{error}; a truncation of the log is unfinished"
        ) from None


def save_truncation(files: Files, path: Path, truncation: Truncation) -> None:
    """Write the file; return when it is on the disk."""
    replace_file(files, path, encode_truncation(truncation))


def remove_truncation(files: Files, path: Path) -> None:
    """Remove the file; return when its removal is on the disk."""
    files.remove(path)
    files.sync_dir(path.parent)
