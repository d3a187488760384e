"""The project's own source files and documents, for tests of house rules."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = (
    *("benchmarks", "console", "core_broker", "deploy", "docs", "gantry", "namesrv"),
    *("spark_jobs", "static", "tests", "tools", "trace", ".ci"),
)
TOP_FILES = ("*.py", "*.md", "*.toml", "Makefile", "LICENSE")
GENERATED = (
    "/migrations/",
    "/golden/",
    "/locale/",
    "/__pycache__/",
    "static/vendor/",
    "deploy/kubernetes/",
    "checks.lock",
)


@cache
def sources() -> tuple[Path, ...]:
    """All files that people write; generated and vendored files are left out."""
    paths = [path for pattern in TOP_FILES for path in ROOT.glob(pattern)]
    for folder in SOURCE_FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return tuple(path for path in paths if not any(part in f"/{name(path)}" for part in GENERATED))


def name(path: Path) -> str:
    """The path below the project's root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """(name, text) of the files with one of the suffixes, or of all text files."""
    for path in sources():
        if not suffixes or path.suffix in suffixes:
            try:
                yield name(path), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a picture
