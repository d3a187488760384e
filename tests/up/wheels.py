"""Builds the wheel from this tree, and installs it into an empty environment.

The wheel takes the modules that are compiled beside their sources, so a build takes seconds.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.cluster import ROOT

BUILD_DEADLINE_S = 900.0  # compiles the kernel where the tree's is outdated
INSTALL_DEADLINE_S = 300.0


def build_wheel(folder: Path) -> Path:
    """Build the wheel in the folder and return its path."""
    folder.mkdir(exist_ok=True)
    steps = ("egg_info", "--egg-base", folder, "build", "--build-base", folder / "build")
    command = [sys.executable, "setup.py", "-q", *steps, "bdist_wheel", "--dist-dir", folder]
    done = subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=BUILD_DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("gantry-*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpack the wheel as an installer would, and return the folder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def install(wheel: Path, folder: Path, python: str = sys.executable) -> Path:
    """Install the wheel without extras into a new environment of the interpreter; return the
    environment's folder of programs."""
    uv = Path(sys.executable).parent / "uv"
    if uv.exists():
        steps = [[uv, "venv", "-q", "-p", python, folder]]
        steps += [[uv, "pip", "install", "-q", "-p", folder / "bin" / "python", wheel]]
    else:
        steps = [[python, "-m", "venv", folder]]
        steps += [[folder / "bin" / "python", "-m", "pip", "install", "-q", wheel]]
    for step in steps:
        subprocess.run(step, check=True, timeout=INSTALL_DEADLINE_S, env=no_packages())
    return folder / "bin"


def no_packages() -> dict[str, str]:
    """Return the environment without variables that add packages of this tree."""
    foreign = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in foreign}
