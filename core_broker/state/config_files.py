"""The JSON files under storePathRootDir/config: read with a fallback, replaced atomically.

A new version is written to a .tmp file, synced, and renamed over the old version; the old version
stays as .bak. A crash at any point leaves at least one version complete. These functions block, so
a running broker calls them in a thread. Compatible with RocketMQ's ConfigManager and
MixAll.string2File.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from core_broker.errors import ProtocolError, StoreCorrupt

#: Maximum parts of one system call: IOV_MAX of Linux.
PARTS_PER_WRITE_MAX = 1_024

log = logging.getLogger(__name__)

T = TypeVar("T")


def backup_of(path: Path) -> Path:
    """The path of a file's previous version."""
    return path.with_name(path.name + ".bak")


def read_config(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Parse the file, or else its .bak; None when both are missing or empty.

    Raises StoreCorrupt when both versions are unreadable: a broker must not start without its
    topics unnoticed.
    """
    damage = ""
    for candidate in (path, backup_of(path)):
        try:
            content = candidate.read_bytes()
        except FileNotFoundError:
            continue
        if not content.strip():
            continue
        try:
            parsed = parse(content)
        except ProtocolError as error:
            damage = damage or str(error)
            log.warning("%s is unreadable: %s", candidate, error)
        else:
            if candidate != path:
                log.warning("%s is missing or damaged; using its previous version", path)
            return parsed
    if damage:
        raise StoreCorrupt(
            str(path), 0, f"{damage}; repair the file, or remove the file to start with defaults"
        )
    return None


def write_config(path: Path, content: bytes) -> None:
    """Replace the file by `content` and keep the previous version as .bak."""
    write_config_parts(path, [content])


def write_config_parts(path: Path, parts: Sequence[bytes]) -> None:
    """Replace the file by the joined `parts`, without a copy, with the GIL released."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    try:
        with fresh.open("wb", buffering=0) as file:
            for start in range(0, len(parts), PARTS_PER_WRITE_MAX):
                _write(file.fileno(), parts[start : start + PARTS_PER_WRITE_MAX])
            os.fsync(file.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)  # on a full disk, the unfinished file would need space
        raise
    _keep_previous(path)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(fd: int, parts: Sequence[bytes]) -> None:
    written = os.writev(fd, parts)
    missing = sum(map(len, parts)) - written
    if missing:
        # A short write: the disk is nearly full, or the file is very large.
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]


def _keep_previous(path: Path) -> None:
    backup = backup_of(path)
    if not path.exists():
        return
    backup.unlink(missing_ok=True)
    try:
        backup.hardlink_to(path)
    except OSError:
        # On a file system without hard links only the .bak exists for a moment.
        path.replace(backup)
