"""Values that wait in a task: in memory up to a bound, then in a file."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import Final

#: Maximum size of the waiting values that a task holds in memory, bytes.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024
#: Folders for files of running tasks (`spark.local.dir`), which Spark names to its Python workers.
LOCAL_FOLDERS: Final = "SPARK_LOCAL_DIRS"


class Spool:
    """Binary values by key. Beyond `held_bytes_max` all values are in a file without a name.

    The file is in Spark's local folder, or in the system's folder for temporary files outside of
    Spark. Leaving the `with` block, or the end of the process, deletes the file.
    """

    def __init__(self, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        folder = os.environ.get(LOCAL_FOLDERS, "").split(",")[0] or None
        self._file = tempfile.SpooledTemporaryFile(held_bytes_max, dir=folder)  # noqa: SIM115
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._size = 0

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, key: int, value: bytes) -> None:
        """Store a value. Raises OSError when the disk is full."""
        self._file.seek(self._size)
        self._file.write(value)
        self._places[key].append((self._size, len(value)))
        self._size += len(value)

    def values(self, key: int) -> Iterator[bytes]:
        """The values of `key` in the order of `add`, read one after another."""
        for begin, size in self._places.get(key, ()):
            self._file.seek(begin)
            yield self._file.read(size)
