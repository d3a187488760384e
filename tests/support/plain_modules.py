"""Modules as plain Python, also where a compiled module is present."""

from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType


def plain_module(name: str) -> ModuleType:
    """A new module from the Python source of the module `name`."""
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None
    origin = Path(found.origin)
    path = str(origin.with_name(name.rpartition(".")[2] + ".py"))
    spec = spec_from_loader(f"plain_{name}", SourceFileLoader(f"plain_{name}", path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
