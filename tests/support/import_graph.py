"""The import graph of a package, read from its source, and the circles in the graph.

Imports inside functions count: a deferred import only hides a circle. Imports below
`if TYPE_CHECKING` are left out, because only the type checker reads them. An import of `a.b.c` is
an import of `a.b.c` alone, not of the parent packages.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def import_graph(root: Path, package: str) -> Graph:
    """Map each module of the package to the imported modules of the same package."""
    files = {_module_name(path.relative_to(root)): path for path in (root / package).rglob("*.py")}
    graph: Graph = {}
    for module, path in files.items():
        graph[module] = set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in _imports(tree):
            graph[module] |= {name for name in _targets(statement, files) if name != module}
    return graph


def import_circles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
    reachable = {module: _reachable(graph, module) for module in graph}
    circles: list[list[str]] = []
    for module in sorted(graph):
        circle = sorted(other for other in reachable[module] if module in reachable[other])
        if circle and circle not in circles:
            circles.append(circle)
    return circles


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    children: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children = [*node.orelse]
    for child in children:
        yield from _imports(child)


def _targets(statement: ast.Import | ast.ImportFrom, files: dict[str, Path]) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names} & files.keys()
    names = {f"{statement.module}.{alias.name}" for alias in statement.names}
    modules = names & files.keys()
    if modules != names and statement.module in files:
        modules.add(statement.module)
    return modules


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    pending = list(graph[start])
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending.extend(graph[module])
    return seen
