"""The JSON files under storePathRootDir/config: read with a fallback, replaced atomically.

A new version is written to a .tmp file, synced, and renamed over the old version; the old version
stays as .bak. A crash at any point leaves at least one version complete. These functions block, so
a running broker calls them in a thread. Compatible with RocketMQ's ConfigManager and
MixAll.string2File.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from core_broker.durable_files import replace_file
from core_broker.errors import ProtocolError, StoreCorrupt

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


def write_config(path: Path, parts: Sequence[bytes]) -> None:
    """Replace the file by the joined `parts` and keep the previous version as .bak."""
    replace_file(path, parts, partial(_keep_previous, path))


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
