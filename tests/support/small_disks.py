"""Small file systems for tests that fill a disk; need root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def mounted(tmp_path: Path, kind: str, size: int) -> Iterator[Path]:
    """Mount a `tmpfs`, or an `ext4` in a file, of `size` bytes; skip the test where impossible."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    else:
        image = tmp_path / "disk.img"
        with image.open("wb") as file:
            file.truncate(size)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Append to a file until not one more byte fits on its file system."""
    with ballast.open("ab", buffering=0) as file:
        for size in (1024 * 1024, 64 * 1024, 4096, 1):
            with suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"this test needs {command[0]}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
