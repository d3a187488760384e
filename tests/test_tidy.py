"""House rules that no linter knows. ruff, mypy and import-linter hold the others.

Run by `make lint` and again with all tests. Each rule lists every offender at once.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from core_broker.config import BrokerConfig, NamesrvConfig, Settings
from core_broker.config.unsupported import REFUSED_VALUES
from tests.support.import_graph import import_circles, import_graph

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

SOURCE_FOLDERS = (
    *("benchmarks", "console", "core_broker", "deploy", "docs", "namesrv", "spark_jobs"),
    *("static", "tests", "tools", "trace", ".ci"),
)
TOP_FILES = ("*.py", "*.md", "*.toml", "Makefile", "LICENSE")
GENERATED = ("/migrations/", "/golden/", "/locale/", "/__pycache__/", "static/vendor/")

# Pure code: time comes in as `now_ms`, and effects go out as values.
PURE = (
    *("core_broker/state", "core_broker/filter", "core_broker/message"),
    *("trace/codec.py", "trace/timeline.py", "namesrv/routes.py"),
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


@cache
def sources() -> tuple[Path, ...]:
    found = [path for pattern in TOP_FILES for path in ROOT.glob(pattern)]
    for folder in SOURCE_FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return tuple(path for path in found if not any(part in f"/{name(path)}" for part in GENERATED))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    for path in sources():
        if not suffixes or path.suffix in suffixes:
            try:
                yield name(path), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a picture


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


# ---- documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [BrokerConfig, NamesrvConfig])
def test_every_setting_is_documented_with_its_default(settings: type[Settings]) -> None:
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    values = dict(settings().items())
    wrong = []
    for key, field in settings.keys().items():
        row = f"| `{key}` | "
        if field.default_factory is MISSING:  # others depend on the machine
            row += f"`{values[key]}` |" if values[key] else "empty |"
        if row not in document:
            wrong.append(row)
    assert not wrong


def settings_rows() -> dict[str, tuple[str, str]]:
    """Key -> its columns "live" and "meaning" in docs/settings.md, by program and key."""
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = {}
    for program, kind in (("## Broker", BrokerConfig), ("## Name server", NamesrvConfig)):
        section = document.partition(f"\n{program}\n")[2].partition("\n## ")[0]
        for key, live, meaning in re.findall(
            r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", section, re.M
        ):
            rows[f"{kind.__name__}.{key}"] = (live.strip(), meaning.strip())
    return rows


@pytest.mark.parametrize("settings", [BrokerConfig, NamesrvConfig])
def test_settings_are_documented_as_live_and_as_unused_exactly_where_they_are(
    settings: type[Settings],
) -> None:
    rows = settings_rows()
    updatable, no_effect = settings.updatable_keys(), settings.no_effect_keys()
    wrong = []
    for key in settings.keys():  # noqa: SIM118
        live, meaning = rows[f"{settings.__name__}.{key}"]
        unused = f"Not used: {no_effect[key]}." if key in no_effect else ""
        is_described = meaning.startswith(unused) if unused else "Not used" not in meaning
        if (live == "yes") != (key in updatable) or not is_described:
            wrong.append(key)
    assert not wrong


def test_settings_are_flagged_without_effect_exactly_where_no_code_reads_them() -> None:
    """Refused keys need no flag: their only accepted value is the default."""
    accessed = {
        node.attr
        for file, text in texts(".py")
        if file.startswith(("core_broker/", "namesrv/"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
    }
    refused = {key for key, _ in REFUSED_VALUES}
    wrong = [
        key
        for settings in (BrokerConfig, NamesrvConfig)
        for key, field in settings.keys().items()
        if key not in refused and (key in settings.no_effect_keys()) == (field.name in accessed)
    ]
    assert not wrong


def test_every_variable_of_the_console_is_documented() -> None:
    source = (ROOT / "console" / "environment.py").read_text(encoding="utf-8")
    variables = set(re.findall(r'\bread\.[a-z]+\("([A-Z_]+)"', source))
    assert variables, "console/environment.py reads its variables in another way now"
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert not [variable for variable in variables if f"`{variable}`" not in document]


def test_every_make_target_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):(.*)$", makefile, re.M)
    assert targets
    assert not [target for target, rest in targets if "## " not in rest]


def test_every_make_target_in_the_documents_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    missing = {
        f"{file}: make {target}"
        for file, text in texts(".md")
        for code in re.findall(r"`([^`\n]+)`|^    (.+)$", text, re.M)
        for target in re.findall(r"(?:^|[\s;&])make ([a-z][a-z-]*)", " ".join(code))
        if target not in targets
    }
    assert not missing


def test_every_make_target_for_users_is_in_hacking() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    hacking = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.M)
    assert not [name for name in targets if name != "help" and f"make {name}" not in hacking]


def test_every_module_that_the_documents_start_exists() -> None:
    missing = {
        f"{file}: python -m {module}"
        for file, text in texts(".md")
        for module in re.findall(r"python3? -m ([a-z][\w.]*)", text)
        if find_spec(module) is None
    }
    assert not missing


def test_units_start_programs_that_exist() -> None:
    units = list((ROOT / "deploy" / "systemd").glob("*.service"))
    assert units
    for unit in units:
        command = re.search(r"^ExecStart=\S+/python -m (\S+)", unit.read_text(), re.M)
        assert command, unit.name
        assert find_spec(command[1]), unit.name


def test_the_chinese_readme_has_the_same_headings() -> None:
    levels = [
        re.findall(r"^(#+) ", (ROOT / file).read_text(encoding="utf-8"), re.M)
        for file in ("README.md", "README.zh-CN.md")
    ]
    assert levels[0] == levels[1]


def test_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    roots = ("benchmarks", "console", "core_broker", "namesrv", "spark_jobs", "tests", "trace")
    named = re.findall(rf"`((?:{'|'.join(roots)})/[\w./]+)`", text)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_documents_link_to_files_that_exist() -> None:
    broken = [
        f"{file}: {target}"
        for file, text in texts(".md")
        for target in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in target and not (ROOT / file).parent.joinpath(target).exists()
    ]
    assert not broken
