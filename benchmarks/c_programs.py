"""The C programs of the benchmarks, compiled on first use."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(__file__).parent
PROGRAMS = ROOT / "var" / "bench"


def compiled(source: Path, name: str, options: Sequence[str] = (), hint: str = "") -> Path:
    """Compile a program unless the binary is newer than its source and all headers; exits without a
    C compiler. `hint` is added to the message about a failed compilation.
    """
    program = PROGRAMS / name
    changed = max(file.stat().st_mtime for file in (source, *FOLDER.glob("*.h")))
    if program.exists() and program.stat().st_mtime >= changed:
        return program
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        sys.exit(f"{source.name} is a C program: install a C compiler (apt-get install gcc).")
    program.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may compile at the same time.
    new = program.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-o", str(new), str(source), *options]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE)
    if done.returncode:
        errors = done.stderr[-2000:].decode(errors="replace")
        sys.exit(f"{source.name} was not compiled.{hint}\n{errors}")
    new.replace(program)
    return program
