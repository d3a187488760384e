"""The package `trace` of an installed Gantry, beside the module `trace` of the standard library.

In a clone, the working folder comes first in the search path, and `trace` is Gantry's package. In
an installation, `trace` is the module of the standard library. The module stays, and gets the
modules of the package: `trace.codec` is Gantry's then, and `trace.Trace` the standard library's.
"""

from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "trace"


def provide_trace_package() -> None:
    """Let `import trace.codec` find the package; packages with such imports call this first."""
    module = import_module("trace")
    if not hasattr(module, "__path__"):
        module.__path__ = [str(FOLDER)]
