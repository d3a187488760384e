"""The compiled fast path and other measured hot loops, in Cython's pure-Python mode.

The kernel is optional: every caller has a form in Python with the same bytes. The names of the
paths are defined in core_broker/fastpath. GANTRY_KERNEL=off switches the kernel off for a whole
process; tests of the slow path use the switch.
"""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

if os.environ.get("GANTRY_KERNEL") == "off":
    raise ImportError("the kernel is switched off by GANTRY_KERNEL=off")

_HERE = Path(__file__).parent


def _is_compiled(source: Path) -> bool:
    return any(source.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES)


# The sources read as Python, but only compiled modules run. If one is missing, the kernel is off.
# Modules with their source in core_broker/remoting and core_broker/store.
_SHARED = (_HERE / "connection_state.py", _HERE / "queue_tail.py")
if not all(map(_is_compiled, (*_HERE.glob("[!_]*.py"), *_SHARED))):
    raise ImportError("the kernel is not compiled: setup.py build_ext --inplace compiles it")
