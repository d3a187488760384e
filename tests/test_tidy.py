"""House rules that no linter knows. ruff, mypy and import-linter hold the others.

Run by `make lint` and again with all tests. Each rule lists every offender at once.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.import_graph import import_circles, import_graph
from tests.support.source_tree import ROOT, name, sources, texts

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Pure code: time comes in as `now_ms`, and effects go out as values.
PURE = (
    *("core_broker/state", "core_broker/filter", "core_broker/message"),
    *("trace/codec.py", "trace/scan.py", "trace/columns.py", "trace/attempts.py"),
    *("trace/timeline.py", "trace/facts.py", "trace/fact_columns.py", "namesrv/routes.py"),
    *("core_broker/auth/signature.py", "core_broker/auth/acl1/addresses.py"),
    *(f"core_broker/auth/acl1/{name}.py" for name in ("accounts", "demands", "permissions")),
    *(f"core_broker/auth/acl1/{name}.py" for name in ("reading", "rewriting", "rules")),
    "core_broker/raft/",
    *(f"core_broker/dledger/{name}.py" for name in ("codes", "messages", "model", "state")),
    *(f"core_broker/dledger/{name}.py" for name in ("election", "progress", "leader")),
    *(f"core_broker/dledger/{name}.py" for name in ("follower", "transfers", "node")),
    *(f"core_broker/controller/{name}.py" for name in ("model", "commands", "election", "machine")),
    "core_broker/controller/live_brokers.py",
)
IMPURE_MODULES = {"asyncio", "multiprocessing", "selectors", "socket", "subprocess", "threading"}
CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep"}
DATE_CLOCKS = {"now", "utcnow", "today"}

# Joined from parts, so that the rules do not match this file.
MARKERS = re.compile(
    r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b"
)
PLACES = re.compile(
    "|".join(
        re.escape("".join(parts))
        for parts in (
            *(("/wo", "rk/"), ("/tmp/", "gantry"), ("/ro", "ot/"), ("pypi", ".org")),
            *(("python", "hosted.org"), ("registry.", "npmjs"), ("repo1.", "maven")),
            *(("deb.", "debian.org"), ("proxy.", "golang.org"), ("crates", ".io")),
        )
    )
)


def test_there_is_something_to_check() -> None:
    names = {name(path) for path in sources()}
    assert {"manage.py", "Makefile", "tests/test_tidy.py", "core_broker/config/broker.py"} <= names


def test_files_are_short() -> None:
    long_ones = {
        file: lines
        for file, text in texts(".py", ".js", ".css", ".html", ".sh")
        if (lines := len(text.splitlines())) > FILE_LINES_MAX
    }
    assert not long_ones, f"over {FILE_LINES_MAX} lines: {long_ones}"


def test_functions_are_short() -> None:
    long_ones = {}
    for file, text in texts(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long_ones[f"{file}: {node.name}"] = lines
    assert not long_ones, f"over {FUNCTION_LINES_MAX} lines: {long_ones}"


def test_pure_code_reads_no_clock_and_does_no_io() -> None:
    offenders = [
        f"{file}:{node.lineno}"
        for file, text in texts(".py")
        if file.startswith(PURE)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt | ast.expr) and is_impure(node)
    ]
    assert not offenders


def is_impure(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] in IMPURE_MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        module = (node.module or "").split(".")[0]
        return module in IMPURE_MODULES or (
            module == "time" and any(alias.name in CLOCKS for alias in node.names)
        )
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner, attribute = node.value.id, node.attr
        return (owner == "time" and attribute in CLOCKS) or (
            owner in ("datetime", "date") and attribute in DATE_CLOCKS
        )
    return False


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ("import asyncio", True),
        ("from time import monotonic", True),
        ("import time; time.time()", True),
        ("datetime.now()", True),
        ("from datetime import datetime", False),
        ("command.time", False),
    ],
)
def test_the_rule_of_purity_can_fail(source: str, verdict: bool) -> None:
    assert any(is_impure(node) for node in ast.walk(ast.parse(source))) == verdict


@pytest.mark.parametrize("package", ["core_broker", "namesrv", "trace", "spark_jobs", "console"])
def test_there_is_no_import_circle_of_files_except_type_only_ones(package: str) -> None:
    assert not import_circles(import_graph(ROOT, package))


def test_the_rule_of_circles_can_fail(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    sources = {
        "__init__": "from p import a",
        "a": "from p.b import x\nif TYPE_CHECKING:\n    from p import d",
        "b": "try:\n    import p.c\nexcept ImportError:\n    pass",
        "c": "from p import a, d",
        "d": "def f():\n    from p import e",
        "e": "from p.d import f",
    }
    for module, source in sources.items():
        (package / f"{module}.py").write_text(source)
    circles = import_circles(import_graph(tmp_path, "p"))
    assert circles == [["p.a", "p.b", "p.c"], ["p.d", "p.e"]]


def test_nothing_is_left_for_later() -> None:
    offenders = [
        f"{file}:{number}: {line.strip()}"
        for file, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MARKERS.search(line)
    ]
    assert not offenders


def test_no_machine_and_no_registry_is_named() -> None:
    offenders = [
        f"{file}:{number}: {line.strip()[:100]}"
        for file, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if PLACES.search(line)
    ]
    assert not offenders


def test_pages_load_nothing_from_other_hosts() -> None:
    loading = re.compile(r"""(?:src|href|action|hx-get|@import)\s*[=(]?\s*["']?(?:https?:)?//""")
    links = re.compile(r"<a\b[^>]*>")
    offenders = [
        file for file, text in texts(".html", ".css", ".js") if loading.search(links.sub("", text))
    ]
    assert not offenders


# ---- one dialect ---------------------------------------------------------------------------------


def is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def attribute_strings(source: str) -> Iterator[int]:
    """Lines of strings that stand below an assignment, where `#:` comments above it belong."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in pairwise(node.body):
                if isinstance(before, ast.Assign | ast.AnnAssign) and is_text(after):
                    yield after.lineno


def test_attributes_are_documented_above_them() -> None:
    assert not [f"{file}:{line}" for file, text in texts(".py") for line in attribute_strings(text)]
    assert list(attribute_strings('LIMIT = 1\n"""A limit."""')) == [2]


def test_a_logger_is_called_log() -> None:
    makes = re.compile(r"^(\w+)(?:: [\w.]+)? = logging\.getLogger\(", re.M)
    assert not [
        f"{file}: {logger}"
        for file, text in texts(".py")
        for logger in makes.findall(text)
        if logger != "log"
    ]
    assert makes.findall("logger = logging.getLogger(__name__)") == ["logger"]


def test_annotations_are_evaluated() -> None:
    postponed = "from __future__ import " + "annotations"
    assert not [file for file, text in texts(".py") if postponed in text]


def test_command_lines_are_clicks() -> None:
    imports = re.compile(r"^\s*(?:import|from) (?:argparse|optparse|getopt)\b", re.M)
    assert not [file for file, text in texts(".py") if imports.search(text)]
    assert imports.search("import argparse")


# ---- vendored files ------------------------------------------------------------------------------

VENDOR = ROOT / "static" / "vendor"


def vendored() -> dict[str, str]:
    manifest = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    return {
        file["path"]: file["sha256"]
        for package in manifest["packages"]
        for file in package["files"]
    }


def test_vendored_files_are_those_of_the_manifest() -> None:
    present = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert present == vendored()


def test_every_vendored_package_has_its_licence_and_no_source_map() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    for package in manifest["packages"]:
        assert package["licence"]
        assert any(file["path"].endswith("LICENSE") for file in package["files"]), package["name"]
    maps = [path for path in vendored() if b"sourceMappingURL" in (VENDOR / path).read_bytes()]
    assert not maps
