"""Without compiled files, or switched off, the broker has the plain path and nothing breaks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import core_broker

PROBE = "from core_broker.processors.hot_path import has_kernel; print(has_kernel())"


def has_kernel(folder: Path, **environment: str) -> str:
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_sources_alone_are_passed_over(tmp_path: Path) -> None:
    source = Path(core_broker.__file__).parent
    shutil.copytree(source, tmp_path / "core_broker", ignore=shutil.ignore_patterns("*.so"))
    assert has_kernel(tmp_path) == "False"


def test_it_can_be_switched_off() -> None:
    assert has_kernel(Path(core_broker.__file__).parents[1], GANTRY_KERNEL="off") == "False"
