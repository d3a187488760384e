"""`tools/setup.sh venv`: steps with times, and the causes of failures, without a terminal."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SET_UP = Path(__file__).resolve().parents[3] / "tools" / "setup.sh"
TIMEOUT_S = 240

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an extension module that does not compile, and without packages."""
    (tmp_path / "tools").mkdir()
    shutil.copy(SET_UP, tmp_path / "tools")
    (tmp_path / "requirements.lock").write_text("")
    (tmp_path / "setup.py").write_text("raise SystemExit('a compiler error')")
    return tmp_path


def set_up(project: Path) -> subprocess.CompletedProcess[str]:
    """Run the set-up; no package index answers."""
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    return subprocess.run(
        ["tools/setup.sh", "venv"],
        cwd=project,
        env={**os.environ, **unreachable, "PYTHON": sys.executable},
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def test_steps_are_named_with_times_and_problems_with_remedies(project: Path) -> None:
    done = set_up(project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "\r" not in done.stderr
    ended = re.findall(r"^\[(\d)/5\] (\w+).*: done, \d+ s$", done.stderr, re.M)
    assert ended == [("1", "virtual"), ("2", "installer"), ("3", "packages"), ("4", "bytecode")]
    assert re.search(
        r"^\[5/5\] compiled kernel of the broker: failed after \d+ s$", done.stderr, re.M
    )
    assert "uv could not be installed; pip installs the packages." in done.stderr
    assert "The broker's kernel could not be compiled (build/setup.log)" in done.stderr
    assert "a compiler error" in (project / "build" / "setup.log").read_text()

    (project / "requirements.lock").write_text("no-such-package-of-gantry==1.0 --hash=sha256:00\n")
    done = set_up(project)
    assert done.returncode == 1
    assert "virtual environment" not in done.stderr, "the step is not repeated"
    assert re.search(r"^\[3/5\] packages.*: failed after \d+ s$", done.stderr, re.M)
    assert "no-such-package-of-gantry" in done.stderr
    assert "Nothing was started." in done.stderr
