"""Files of the project beside the packages, in a clone and in an installed wheel.

In a clone they lie at the top; setup.py copies them into the wheel as console/files/….
"""

import importlib.metadata
import sys
import tomllib
from pathlib import Path

#: The folder that holds the packages: the clone, or the folder of installed packages.
PROJECT_ROOT = Path(__file__).resolve().parent.parent
_IN_WHEEL = Path(__file__).resolve().parent / "files"
IS_INSTALLED = _IN_WHEEL.is_dir()

#: The command line that users type before `up`, `create_token` and so on.
COMMAND = "gantry" if IS_INSTALLED else "manage.py"
#: The home folder without GANTRY_HOME: beside manage.py, or in the current folder.
HOME_DEFAULT = (Path.cwd() if IS_INSTALLED else PROJECT_ROOT) / "var"
_PIP = f"{sys.executable} -m pip install"
INSTALL_CONSOLE = f"{_PIP} 'gantry[console]'" if IS_INSTALLED else "make up"
INSTALL_SPARK = f"{_PIP} 'gantry[console,spark]'" if IS_INSTALLED else "make up"


def project_file(name: str) -> Path:
    """Path of a file or folder, named as in a clone, such as `docs/settings.md`."""
    return (_IN_WHEEL if IS_INSTALLED else PROJECT_ROOT) / name


def project_version() -> str:
    if IS_INSTALLED:
        return importlib.metadata.version("gantry")
    with project_file("pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])
