"""The right to write to the trace lake, and the clearing of what killed runs left behind.

Every run has a number of its own, also one that was killed: the last number given out stands in
the lock file. So nothing that a dying run still writes can be taken for another run's data.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trace.lake import DATASETS, Lake, LakeError, Snapshot

_NUMBER_BYTES_MAX: Final = 20


class LakeWriter:
    """The right to write to a lake. Gives out the numbers of its runs."""

    def __init__(self, lake: Lake, handle: int) -> None:
        self.lake = lake
        self._handle = handle

    def next_run(self) -> int:
        """A number that no run had before, kept before it is used."""
        text = os.pread(self._handle, _NUMBER_BYTES_MAX, 0).strip()
        last = int(text) if text.isdigit() else 0
        run = max(last, self.lake.snapshot().run) + 1
        os.pwrite(self._handle, f"{run:<{_NUMBER_BYTES_MAX}}".encode(), 0)
        return run


@contextmanager
def only_writer(lake: Lake) -> Iterator[LakeWriter]:
    """Hold the lake for writing. Raises LakeError when another process does."""
    lake.root.mkdir(parents=True, exist_ok=True)
    handle = os.open(lake.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeError(f"Another job is writing to the lake {lake.root}.") from None
        yield LakeWriter(lake, handle)
    finally:
        os.close(handle)


def sweep(lake: Lake, snapshot: Snapshot) -> int:
    """Delete the folders that do not count: of killed runs, and replaced ones. Returns how many.

    Replaced folders go one run later than their replacement is committed, so that no reader
    still has them open.
    """
    swept = 0
    for dataset in DATASETS:
        counting = snapshot.parts.get(dataset, {})
        for hour, run, path in list(lake.on_disk(dataset)):
            if run not in counting.get(hour, ()):
                shutil.rmtree(path, ignore_errors=True)
                swept += 1
        shutil.rmtree(lake.dataset(dataset) / "_temporary", ignore_errors=True)
    return swept
