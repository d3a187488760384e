"""The JSON files under storePathRootDir/config: read with a fallback, replaced without a gap.

A file is written beside the old one, synced, and put in its place by a rename; the previous version
stays as .bak. A crash at any point leaves one of the two whole. These calls block, so a running
broker makes them in a thread. Compatible with RocketMQ's ConfigManager and MixAll.string2File.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from core_broker.errors import ProtocolError, StoreCorrupt

log = logging.getLogger(__name__)

T = TypeVar("T")


def backup_of(path: Path) -> Path:
    """Where the previous version of a file is kept."""
    return path.with_name(path.name + ".bak")


def read_config(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Return what the file holds, or else its .bak; None when neither exists or both are empty.

    Raises StoreCorrupt when there is content but none of it can be read: a broker must not forget
    its topics silently.
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
            log.warning("%s cannot be read: %s", candidate, error)
        else:
            if candidate != path:
                log.warning("%s is missing or damaged; its previous version is used", path)
            return parsed
    if damage:
        raise StoreCorrupt(str(path), 0, f"{damage}; repair it, or remove it to start without it")
    return None


def write_config(path: Path, content: bytes) -> None:
    """Replace the file by `content` and keep the previous version as .bak."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    _keep_previous(path)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep_previous(path: Path) -> None:
    backup = backup_of(path)
    if not path.exists():
        return
    backup.unlink(missing_ok=True)
    try:
        backup.hardlink_to(path)
    except OSError:
        # A file system without hard links; then there is a moment with the .bak only.
        path.replace(backup)
