"""Key-value settings of the cluster, kept in kvConfig.json.

    {"configTable":{"<namespace>":{"<key>":"<value>"}}}

Namespace ORDER_TOPIC_CONFIG holds the queues of ordered topics ("broker-a:4;broker-b:4"); other
namespaces are free. The format is RocketMQ's KVConfigManager (KVConfigSerializeWrapper).
"""

from pathlib import Path

import msgspec

from core_broker.errors import RequestRefused, SettingProblem, SettingsError
from core_broker.remoting.codes import ResponseCode

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"
#: Approximate bytes of memory of one key or namespace beside its text.
ENTRY_OVERHEAD_BYTES = 128


class _File(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] | None = None


class KeyValues:
    """Namespaces of keys with text values, in memory, with a bounded size.

    The size of the table is the UTF-8 length of its namespaces, keys and values plus
    ENTRY_OVERHEAD_BYTES for each namespace and key. A table over the limit, for example a loaded
    one, accepts deletions and shorter values only.
    """

    def __init__(
        self,
        table: dict[str, dict[str, str]] | None = None,
        *,
        value_bytes_max: int,
        table_bytes_max: int,
    ) -> None:
        self._table = table or {}
        self._value_bytes_max = value_bytes_max
        self._table_bytes_max = table_bytes_max
        self._emptied = {name for name, pairs in self._table.items() if not pairs}
        self.size_bytes = sum(map(_charge, self._table)) + sum(
            _charge(key, value) for pairs in self._table.values() for key, value in pairs.items()
        )

    def put(self, namespace: str, key: str, value: str) -> None:
        """Add or overwrite a key; raises RequestRefused above a limit, and changes nothing."""
        for name, text in (("namespace", namespace), ("key", key), ("value", value)):
            if (size := len(text.encode())) > self._value_bytes_max:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR,
                    f"the {name} has {size} bytes, over maxKvValueSize ({self._value_bytes_max})",
                )
        growth = self._growth(namespace, key, value)
        if growth > 0 and self.size_bytes + growth > self._table_bytes_max:
            self._drop_emptied(namespace)
            if self.size_bytes + growth > self._table_bytes_max:
                raise RequestRefused(
                    ResponseCode.SYSTEM_ERROR,
                    f"the key-value table is full: it has {self.size_bytes} bytes, the key needs "
                    f"{growth} more, maxKvTableSize is {self._table_bytes_max}; delete keys first",
                )
        self.size_bytes += growth
        self._table.setdefault(namespace, {})[key] = value
        self._emptied.discard(namespace)

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, or None."""
        return self._table.get(namespace, {}).get(key)

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key if present.

        An emptied namespace stays, as in RocketMQ, until another key needs its bytes.
        """
        pairs = self._table.get(namespace, {})
        if key in pairs:
            self.size_bytes -= _charge(key, pairs.pop(key))
            if not pairs:
                self._emptied.add(namespace)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return the pairs of a namespace, or None for a namespace that never had a key."""
        return self._table.get(namespace)

    def to_json(self) -> bytes:
        """Return the text of kvConfig.json."""
        return msgspec.json.encode(_File(self._table), order="sorted")

    def _growth(self, namespace: str, key: str, value: str) -> int:
        """Return the number of bytes by which the table grows with a key; may be negative."""
        pairs = self._table.get(namespace)
        if pairs is None:
            return _charge(namespace) + _charge(key, value)
        if key not in pairs:
            return _charge(key, value)
        return len(value.encode()) - len(pairs[key].encode())

    def _drop_emptied(self, kept: str) -> None:
        """Remove the namespaces without keys, except the one that is about to get a key."""
        for namespace in self._emptied - {kept}:
            del self._table[namespace]
            self.size_bytes -= _charge(namespace)
        self._emptied &= {kept}


def _charge(*texts: str) -> int:
    return ENTRY_OVERHEAD_BYTES + sum(len(text.encode()) for text in texts)


def load_key_values(path: Path, *, value_bytes_max: int, table_bytes_max: int) -> KeyValues:
    """Read kvConfig.json; a missing file is an empty table, a table over a limit is kept.

    Raises SettingsError when the file is damaged: after a start with an empty table, the next
    change would overwrite the file.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        text = b"{}"
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    try:
        table = msgspec.json.decode(text, type=_File).config_table
        return KeyValues(table, value_bytes_max=value_bytes_max, table_bytes_max=table_bytes_max)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _unreadable(path, str(error)) from None


def _unreadable(path: Path, reason: str) -> SettingsError:
    expected = f"expected a readable kvConfig.json ({reason}); repair or move the file"
    return SettingsError([SettingProblem("kvConfigPath", expected, str(path))])
