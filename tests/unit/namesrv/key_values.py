"""Key-value tables with the limits of the default settings."""

from pathlib import Path

from namesrv.kv import KeyValues, load_key_values

VALUE_BYTES_MAX = 64 * 1024
TABLE_BYTES_MAX = 4 * 1024 * 1024


def key_values(
    *, value_bytes_max: int = VALUE_BYTES_MAX, table_bytes_max: int = TABLE_BYTES_MAX
) -> KeyValues:
    """Return an empty table."""
    return KeyValues(value_bytes_max=value_bytes_max, table_bytes_max=table_bytes_max)


def load(
    path: Path, *, value_bytes_max: int = VALUE_BYTES_MAX, table_bytes_max: int = TABLE_BYTES_MAX
) -> KeyValues:
    """Return the table of a file."""
    return load_key_values(path, value_bytes_max=value_bytes_max, table_bytes_max=table_bytes_max)
