"""The call graph of a function, read from the source: finds writes without an audit row."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

DEPTH_MAX = 5


def leads_to(function: Any, target: str, owner: type | None = None, depth: int = 0) -> bool:
    """True when `function` calls `target`, directly or through functions of the console and
    methods of the class `owner`."""
    for name, called in _called(function, owner):
        if name == target:
            return True
        is_console = inspect.isfunction(called) and called.__module__.startswith("console.")
        if is_console and depth < DEPTH_MAX and leads_to(called, target, owner, depth + 1):
            return True
    return False


def _called(function: FunctionType, owner: type | None) -> Iterator[tuple[str, Any]]:
    """Every name in the function's source, with the named object or None if unknown."""
    function = inspect.unwrap(function)
    scope = function.__globals__
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, scope.get(node.id)
        elif isinstance(node, ast.Attribute):
            base = ast.unparse(node.value)
            holder = owner if base in {"self", "type(self)"} else scope.get(base)
            if isinstance(holder, ModuleType | type):
                yield node.attr, getattr(holder, node.attr, None)
