"""The write lock of the trace lake, run numbers, and removal of unreferenced folders.

Every run has a unique number, even a killed run: the lock file holds the last assigned number.
Output of a dying run can therefore never be mistaken for the data of another run.
"""

import fcntl
import os
import shutil
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spark_jobs.spark.hour_files import StagedFile
from spark_jobs.spark.message_index import index_of
from trace.lake import DATASETS, STAGING, STATE, HourIndex, Lake, LakeError, Snapshot, part_path

_NUMBER_BYTES_MAX: Final = 20


class LakeWriter:
    """The write lock of a lake; assigns run numbers."""

    def __init__(self, lake: Lake, handle: int) -> None:
        self.lake = lake
        self._handle = handle

    def next_run(self) -> int:
        """Assign a new number. The number is stored before it is used."""
        text = os.pread(self._handle, _NUMBER_BYTES_MAX, 0).strip()
        last = int(text) if text.isdigit() else 0
        run = max(last, self.lake.snapshot().run) + 1
        os.pwrite(self._handle, f"{run:<{_NUMBER_BYTES_MAX}}".encode(), 0)
        return run

    def place(self, dataset: str, run: int, files: Iterable[StagedFile]) -> list[HourIndex]:
        """Move the files of a run, and their indexes, from staging to the folders of their hours.

        Returns the hours with files. A crash before the commit leaves unreferenced folders.
        """
        hours = set()
        for hour, name in files:
            folder = self.lake.dataset(dataset) / part_path(hour, run)
            folder.mkdir(parents=True, exist_ok=True)
            staged = self.lake.staging(run) / name
            if index_of(staged).exists():
                index_of(staged).rename(folder / index_of(staged).name)
            staged.rename(folder / name)
            hours.add(hour)
        return sorted(hours)


@contextmanager
def exclusive_writer(lake: Lake) -> Iterator[LakeWriter]:
    """Lock the lake for writing. Raises LakeError when another process holds the lock."""
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


def delete_unreferenced(
    lake: Lake, snapshot: Snapshot, among: Container[Path] | None = None
) -> set[Path]:
    """Delete the folders and files of killed runs, and replaced ones, or only those of `among`.

    Returns the unreferenced paths that remain. A replaced folder or file is deleted some time after
    the commit of its replacement, in a later run or round, for open readers.
    """
    remaining = set()
    for dataset in (*DATASETS, *STATE):
        referenced = snapshot.parts.get(dataset, {})
        for hour, run, path in list(lake.on_disk(dataset)):
            if run in referenced.get(hour, ()):
                continue
            if among is None or path in among:
                shutil.rmtree(path, ignore_errors=True)
            else:
                remaining.add(path)
    valid = lake.subscriptions_file(snapshot.subscriptions_run)
    for path in list(valid.parent.glob("*")):
        if path == valid:
            continue
        if among is None or path in among:
            path.unlink()
        else:
            remaining.add(path)
    shutil.rmtree(lake.root / STAGING, ignore_errors=True)
    return remaining
