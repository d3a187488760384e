"""Write NOTICE-vendored.txt: the licences of the files in static/vendor.

    python tools/notices.py            writes the file
    python tools/notices.py --check    exit code 1 when the file is outdated

The packages, and the packages that their files bundle, are listed in static/vendor/manifest.json.
`make vendor` renews the file; wheel and source distribution contain it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"
NOTICES = ROOT / "NOTICE-vendored.txt"
HEAD = """\
Licences of the files in static/vendor, which are the work of others.

Written by tools/notices.py from static/vendor/manifest.json; edit the manifest, not this file.
"""
RULE = "=" * 80


def manifest() -> list[dict[str, Any]]:
    """The vendored packages."""
    packages: list[dict[str, Any]] = json.loads(
        (VENDOR / "manifest.json").read_text(encoding="utf-8")
    )["packages"]
    return packages


def components() -> Iterator[dict[str, Any]]:
    """Every vendored package, and every package bundled in its files, with `within` its name."""
    for package in manifest():
        yield package
        for bundled in package.get("bundles", ()):
            yield {**bundled, "within": package["name"]}


def licence_file(component: dict[str, Any]) -> Path:
    """The text of the licence: named by a bundled package, else the package's file LICENSE."""
    if "notice" in component:
        return VENDOR / str(component["notice"])
    (path,) = (each["path"] for each in component["files"] if Path(each["path"]).name == "LICENSE")
    return VENDOR / str(path)


def text() -> str:
    """The content of NOTICE-vendored.txt."""
    parts = [HEAD]
    for each in components():
        within = f", bundled in {each['within']}" if "within" in each else ""
        title = f"{each['name']} {each['version']} ({each['licence']}){within}"
        licence = licence_file(each).read_text(encoding="utf-8").strip()
        parts.append(f"{RULE}\n{title}\n{RULE}\n\n{licence}\n")
    return "\n".join(parts)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", is_flag=True, help="write nothing; exit code 1 when the file is outdated")
def main(check: bool) -> None:
    """Write the licences of the vendored files."""
    if not check:
        NOTICES.write_text(text(), encoding="utf-8")
    elif not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != text():
        sys.exit(f"{NOTICES.name} is outdated: run `make vendor`, or python tools/notices.py")


if __name__ == "__main__":
    main()
