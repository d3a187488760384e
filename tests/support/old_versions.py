"""Programs of older commits, for tests of updates and of the way back.

`git archive` writes the old source; the libraries are those of today. A clone without the history
of the commit has no old programs: the tests that need them are skipped.
"""

import io
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cluster import ROOT

#: The commit that begins the changelog.
VERSION_0_1 = "48b28177c864f71f32184934523b876a332ebf0e"
#: The first day's broker; `record_store.py` made the recorded store with it.
FIRST_BROKER = "c4fb0beaa5a7391de0224188966eea9af0e88141"
PACKAGES = ("core_broker", "namesrv", "pyproject.toml")
#: Console, worker and scheduler need more.
CONSOLE_PACKAGES = (*PACKAGES, "console", "spark_jobs", "static", "trace", "manage.py")


def old_tree(folder: Path, commit: str = VERSION_0_1, packages: Sequence[str] = PACKAGES) -> Path:
    """Write the programs of a commit into a new folder; skips the test without the commit."""
    done = subprocess.run(
        ["git", "archive", commit, *packages], cwd=ROOT, capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"this clone has no commit {commit[:8]}: {done.stderr.decode()[:200]}")
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder
