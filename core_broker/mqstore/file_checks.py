"""Checks of checkpoints and config tables."""

from collections.abc import Callable
from pathlib import Path

from core_broker.errors import ProtocolError
from core_broker.mqstore.folder import StoreFolder, read_range
from core_broker.mqstore.report import Report
from core_broker.remoting import fastjson
from core_broker.state.config_files import backup_of
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.delay_progress import DelayProgress
from core_broker.state.groups import GroupTable
from core_broker.state.topics import TopicTable
from core_broker.store.checkpoint import (
    CHECKPOINT_BYTES,
    Checkpoint,
    DispatchCheckpoint,
    parse_checkpoint,
    parse_dispatch_checkpoint,
)

#: Bytes read of a config table; a larger table is reported as unreadable.
TABLE_BYTES_MAX = 256 * 1024 * 1024
#: Tolerated lead of a checkpoint over the newest message, ms: a crash may have lost messages.
CHECKPOINT_AHEAD_MS_MAX = 24 * 3600 * 1000


def _any_json(content: bytes) -> None:
    if not isinstance(fastjson.loads(content), dict):
        raise ProtocolError("not a JSON object")


#: Parsers of the broker's tables; other files of config/ are not checked.
TABLES: dict[str, Callable[[bytes], object]] = {
    "topics.json": lambda content: TopicTable().restore(content),
    "subscriptionGroup.json": lambda content: GroupTable().restore(content),
    "consumerOffset.json": lambda content: ConsumerOffsets().restore(content),
    "delayOffset.json": lambda content: DelayProgress().restore(content),
    "consumerFilter.json": _any_json,
}


def check_tables(folder: StoreFolder, report: Report) -> None:
    """Parse the config tables and their .bak files with the broker's parsers."""
    config = folder.root / "config"
    for name, restore in TABLES.items():
        for path in (config / name, backup_of(config / name)):
            if path.exists() or path.is_symlink():
                report.counts["tables"] += 1
                reason = _table_flaw(path, restore)
                if reason is not None:
                    report.problem(path, 0, reason)


def _table_flaw(path: Path, restore: Callable[[bytes], object]) -> str | None:
    try:
        content = read_range(path, 0, TABLE_BYTES_MAX)
    except OSError as error:
        return f"the file cannot be read: {error.strerror}"
    if not content.strip(b" \t\r\n\0"):
        return "the table is empty"
    try:
        restore(content)
    except ProtocolError as error:
        return f"the table cannot be read: {error}"
    return None


def known_topics(folder: StoreFolder) -> frozenset[str] | None:
    """Return the topics of topics.json; None for a missing or unreadable table."""
    table = TopicTable()
    try:
        table.restore(read_range(folder.root / "config" / "topics.json", 0, TABLE_BYTES_MAX))
    except (OSError, ProtocolError):
        return None
    return frozenset(config.topic_name for config in table.configs)


# -- checkpoints --


def read_checkpoint(folder: StoreFolder, report: Report) -> Checkpoint | None:
    """Return RocketMQ's checkpoint; None for a missing file, None and a problem if unreadable."""
    path = folder.paths.checkpoint
    if not path.exists():
        return None
    try:
        data = read_range(path, 0, CHECKPOINT_BYTES)
        size = path.stat().st_size
    except OSError as error:
        report.problem(path, 0, f"the file cannot be read: {error.strerror}")
        return None
    if size != CHECKPOINT_BYTES:
        report.problem(path, 0, f"the file has {size} bytes, not {CHECKPOINT_BYTES}")
    return parse_checkpoint(data)


def checkpoint_times(checkpoint: Checkpoint) -> dict[str, int]:
    """Return the times by RocketMQ's names, in the order of the file."""
    return {
        "physicMsgTimestamp": checkpoint.physic_msg_timestamp,
        "logicsMsgTimestamp": checkpoint.logics_msg_timestamp,
        "indexMsgTimestamp": checkpoint.index_msg_timestamp,
    }


def check_checkpoint(
    folder: StoreFolder, report: Report, checkpoint: Checkpoint | None, newest_ms: int
) -> None:
    """Compare the times of a checkpoint with the store time of the newest message."""
    if checkpoint is None:
        return
    for number, (name, value) in enumerate(checkpoint_times(checkpoint).items()):
        at = 8 * number
        if value < 0:
            report.problem(folder.paths.checkpoint, at, f"{name} is {value}")
        elif newest_ms and value > newest_ms + CHECKPOINT_AHEAD_MS_MAX:
            reason = f"{name} is {value}, the newest message was stored at {newest_ms}"
            report.problem(folder.paths.checkpoint, at, reason)


def read_dispatch_checkpoint(folder: StoreFolder, report: Report) -> DispatchCheckpoint | None:
    """Return Gantry's checkpoint; None for a missing file, None and a problem if damaged."""
    path = folder.paths.dispatch_checkpoint
    if not path.exists():
        return None
    try:
        checkpoint = parse_dispatch_checkpoint(read_range(path, 0, TABLE_BYTES_MAX))
    except OSError as error:
        report.problem(path, 0, f"the file cannot be read: {error.strerror}")
        return None
    if checkpoint is None:
        report.problem(path, 0, "not a checkpoint; the next start reads more of the log")
    return checkpoint


def check_dispatch_checkpoint(
    folder: StoreFolder, report: Report, checkpoint: DispatchCheckpoint, log_end: int
) -> None:
    """Check that the log end and the index files named by the dispatch checkpoint exist."""
    path = folder.paths.dispatch_checkpoint
    if checkpoint.offset_physical > log_end:
        reason = f"the checkpoint ends at offset {checkpoint.offset_physical}, the log at {log_end}"
        report.problem(path, 0, reason)
    existing = {file.path.name for file in folder.index_files()[0]}
    for name, end in checkpoint.index_ends.items():
        if name not in existing and end >= checkpoint.min_physical:
            report.problem(folder.paths.index / name, 0, "the index file is missing")
