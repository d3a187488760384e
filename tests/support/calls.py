"""What a function leads to, read from its source: used to find writes that leave no audit row."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

DEPTH_MAX = 5


def leads_to(function: Any, wanted: str, owner: type | None = None, depth: int = 0) -> bool:
    """Whether `function` calls `wanted`, itself or through functions of the console and methods
    of its own class."""
    for name, found in _called(function, owner):
        if name == wanted:
            return True
        ours = inspect.isfunction(found) and found.__module__.startswith("console.")
        if ours and depth < DEPTH_MAX and leads_to(found, wanted, owner, depth + 1):
            return True
    return False


def _called(function: FunctionType, owner: type | None) -> Iterator[tuple[str, Any]]:
    """Every name the function's text mentions, and what it stands for where that is known."""
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
