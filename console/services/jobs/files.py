"""Downloadable files of jobs: limited in size and number, deleted after some days.

    with files.writing(job.pk, "orders.jsonl") as file:     # in the work of a job
        file.write(line)

A file is listed after it was closed; a partial file of a killed worker is never listed.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from django.conf import settings
from django.utils.translation import gettext_noop

from console.services.jobs.paths import job_files

#: Maximum files of a job.
FILES_MAX: Final = 100
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
PARTIAL: Final = ".partial"
MEGABYTE: Final = 1024 * 1024
DAY_S: Final = 24 * 3600

TOO_LARGE: Final = gettext_noop(
    "The files of the job exceed the size limit (CONSOLE_JOB_FILES_MB) or the number limit."
)


class FilesTooLarge(Exception):
    """The files of the job exceed the limits of size or number."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """One finished file."""

    name: str
    size_bytes: int
    written_ms: int

    @property
    def expires_ms(self) -> int:
        return self.written_ms + settings.JOB_FILE_DAYS * DAY_S * 1000


class BoundedFile:
    """A file with a size limit."""

    def __init__(self, file: IO[bytes], left_bytes: int) -> None:
        self._file = file
        self.left_bytes = left_bytes

    def write(self, data: bytes) -> int:
        """Write `data` completely. Raises FilesTooLarge before a write beyond the limit."""
        if len(data) > self.left_bytes:
            raise FilesTooLarge(TOO_LARGE)
        self.left_bytes -= len(data)
        return self._file.write(data)


@contextmanager
def writing(job_id: int, name: str) -> Iterator[BoundedFile]:
    """A new file of a job. An exception in the block deletes the file."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a job's file")
    existing = listing(job_id)
    if len(existing) >= FILES_MAX:
        raise FilesTooLarge(TOO_LARGE)
    left_bytes = settings.JOB_FILES_MB * MEGABYTE - sum(file.size_bytes for file in existing)
    folder = job_files(job_id)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}{PARTIAL}"
    try:
        with partial.open("wb") as file:
            yield BoundedFile(file, left_bytes)
        partial.rename(folder / name)
    finally:
        partial.unlink(missing_ok=True)


def listing(job_id: int) -> list[JobFile]:
    """Finished, unexpired files of a job, by name."""
    found = []
    with suppress(FileNotFoundError):
        for path in sorted(job_files(job_id).iterdir()):
            if NAME.fullmatch(path.name) and not path.name.endswith(PARTIAL) and path.is_file():
                stat = path.stat()
                found.append(JobFile(path.name, stat.st_size, int(stat.st_mtime * 1000)))
    now_ms = int(time.time() * 1000)
    return [file for file in found if file.expires_ms > now_ms]


def path_of(job_id: int, name: str) -> Path | None:
    """The path of a file; None for an unknown or expired file."""
    is_there = any(file.name == name for file in listing(job_id))
    return job_files(job_id) / name if is_there else None


def forget_files(job_id: int) -> None:
    shutil.rmtree(job_files(job_id), ignore_errors=True)


def expire(now_s: float | None = None) -> int:
    """Delete folders older than JOB_FILE_DAYS; returns the count."""
    horizon = (time.time() if now_s is None else now_s) - settings.JOB_FILE_DAYS * DAY_S
    gone = 0
    with suppress(FileNotFoundError):
        for folder in job_files(0).parent.iterdir():
            if folder.name.isdigit() and folder.stat().st_mtime < horizon:
                shutil.rmtree(folder, ignore_errors=True)
                gone += 1
    return gone
