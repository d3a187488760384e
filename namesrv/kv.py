"""Key-value settings of the cluster, kept in kvConfig.json.

    {"configTable":{"<namespace>":{"<key>":"<value>"}}}

Namespace ORDER_TOPIC_CONFIG holds the queues of ordered topics ("broker-a:4;broker-b:4"); other
namespaces are free. The format is RocketMQ's KVConfigManager (KVConfigSerializeWrapper).
"""

import asyncio
import os
from pathlib import Path

import msgspec

from core_broker.errors import SettingProblem, SettingsError

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"


class _File(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] | None = None


class KeyValues:
    """Namespaces of keys with text values, in memory."""

    def __init__(self, table: dict[str, dict[str, str]] | None = None) -> None:
        self._table = table or {}

    def put(self, namespace: str, key: str, value: str) -> None:
        """Add or overwrite a key."""
        self._table.setdefault(namespace, {})[key] = value

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, or None."""
        return self._table.get(namespace, {}).get(key)

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key if present. An emptied namespace stays, as in RocketMQ."""
        self._table.get(namespace, {}).pop(key, None)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return the pairs of a namespace, or None for a namespace that never had a key."""
        return self._table.get(namespace)

    def to_json(self) -> bytes:
        """Return the text of kvConfig.json."""
        return msgspec.json.encode(_File(self._table), order="sorted")


def load_key_values(path: Path) -> KeyValues:
    """Read kvConfig.json; a missing file is an empty table.

    Raises SettingsError when the file is damaged: after a start with an empty table, the next
    change would overwrite the file.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return KeyValues()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    try:
        return KeyValues(msgspec.json.decode(text, type=_File).config_table)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _unreadable(path, str(error)) from None


def _unreadable(path: Path, reason: str) -> SettingsError:
    expected = f"expected a readable kvConfig.json ({reason}); repair or move the file"
    return SettingsError([SettingProblem("kvConfigPath", expected, str(path))])


class AtomicFile:
    """A small file that is replaced as a whole, off the event loop, one write after another.

    After `save` returns, the saved content (or later content) survives a power cut.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._write_lock = asyncio.Lock()

    async def save(self, content: bytes) -> None:
        """Replace the file; raises OSError on a failed write, and the old content stays."""
        async with self._write_lock:
            await asyncio.to_thread(replace_file, self.path, content)


def replace_file(path: Path, content: bytes) -> None:
    """Write a temporary file, fsync it, rename it over the file, fsync the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    with fresh.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
