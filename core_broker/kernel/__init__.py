"""The measured hot loops, compiled with Cython's pure-Python mode.

Nothing here is needed. What the kernel does not take, or everything where it is not compiled, the
plain path handles; both give the same bytes. GANTRY_KERNEL=off switches it off for a whole
process, as the tests of the plain path do.
"""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

if os.environ.get("GANTRY_KERNEL") == "off":
    raise ImportError("the kernel is switched off by GANTRY_KERNEL=off")


def _is_compiled(source: Path) -> bool:
    return any(source.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES)


# The sources are Python to read, but only what Cython makes of them can be run: of all, or none.
if not all(_is_compiled(each) for each in Path(__file__).parent.glob("[!_]*.py")):
    raise ImportError("the kernel is not compiled: setup.py build_ext --inplace does it")
