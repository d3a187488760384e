"""Without the compiled kernel, or with the kernel switched off, the other paths take all requests.

On a machine with the kernel, a part of the other tests runs here again without the kernel;
`GANTRY_KERNEL=off make test` runs all tests without the kernel.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import core_broker
from core_broker.fastpath import has_kernel

ROOT = Path(core_broker.__file__).parents[1]
#: Maximum output of a failed run in the assertion message, characters.
SHOWN_CHARACTERS = 8_000
PROBE = "from core_broker.fastpath import has_kernel; print(has_kernel())"
#: Tests that use the kernel: differential tests, tests with real processes,
#: on a disk that loses power, and with clients.
AGAIN = [
    ["tests/unit/kernel", "tests/unit/store/test_key_index.py"],
    ["tests/crash/test_broker_kill.py", "tests/sim/test_power_cuts.py"],
    ["tests/client/test_sending.py", "tests/client/test_pulling.py"],
]


def found_kernel(folder: Path, **environment: str) -> str:
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


def test_sources_without_a_compiled_kernel_are_ignored(tmp_path: Path) -> None:
    source = Path(core_broker.__file__).parent
    shutil.copytree(source, tmp_path / "core_broker", ignore=shutil.ignore_patterns("*.so"))
    assert found_kernel(tmp_path) == "False"


def test_the_kernel_can_be_switched_off() -> None:
    assert found_kernel(ROOT, GANTRY_KERNEL="off") == "False"


@pytest.mark.timeout(900)
@pytest.mark.skipif(not has_kernel(), reason="all tests run without the kernel already")
@pytest.mark.parametrize("paths", AGAIN, ids=lambda paths: paths[0])
def test_a_part_of_the_suite_passes_without_the_kernel(paths: list[str]) -> None:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths],
        cwd=ROOT,
        env={**inherited, "GANTRY_KERNEL": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-SHOWN_CHARACTERS:]
