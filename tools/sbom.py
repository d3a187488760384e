"""Add the vendored files to a software bill of materials, and validate the result.

    python -m tools.sbom BOM.json

The bill, CycloneDX in JSON, comes from cyclonedx-py and lists the Python packages: those of
requirements.lock without the packages of the development. Each package of
static/vendor/manifest.json becomes a component, with the digests of its files. Needs the packages
cyclonedx-python-lib[json-validation]; tools/release.sh has both programs in one environment.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click

from tools.notices import ROOT, components

#: Extras for the development of Gantry, which no installation has.
DEVELOPMENT = frozenset({"dev", "docs", "kernel"})
LOCKED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)", re.M)


def vendored_components() -> list[dict[str, Any]]:
    """The vendored npm packages, and the packages bundled in them, as CycloneDX components."""
    return [_component(each) for each in components()]


def _component(each: dict[str, Any]) -> dict[str, Any]:
    group, _, name = each["name"].rpartition("/")
    prefix = f"{group.replace('@', '%40')}/" if group else ""
    purl = f"pkg:npm/{prefix}{name}@{each['version']}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": each["version"],
        "purl": purl,
        "licenses": [{"license": {"id": each["licence"]}}],
    }
    if group:
        component["group"] = group
    if files := each.get("files"):
        component["components"] = [
            {
                "type": "file",
                "bom-ref": f"static/vendor/{file['path']}",
                "name": f"static/vendor/{file['path']}",
                "hashes": [{"alg": "SHA-256", "content": file["sha256"]}],
            }
            for file in files
        ]
    return component


def with_vendored(bill: dict[str, Any]) -> dict[str, Any]:
    """The bill with the vendored packages, in order of their references."""
    found = {each["bom-ref"]: each for each in (*bill["components"], *vendored_components())}
    return {**bill, "components": [found[ref] for ref in sorted(found)]}


def locked_versions() -> dict[str, str]:
    """The versions of requirements.lock by normalized name."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return {normalized(name): version for name, version in LOCKED.findall(text)}


def required_packages() -> set[str]:
    """The packages that pyproject.toml names for installations, normalized."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[name] for name in extras.keys() - DEVELOPMENT)]
    found = (re.match(r"[\w.-]+", each) for packages in lists for each in packages)
    return {normalized(match[0]) for match in found if match}


def normalized(name: str) -> str:
    """The name as package indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def deviations(bill: dict[str, Any]) -> list[str]:
    """Python packages of the bill that are not those of the lock file, and missing ones."""
    packages = [each for each in bill["components"] if each.get("purl", "").startswith("pkg:pypi/")]
    listed = {normalized(each["name"]): each["version"] for each in packages}
    listed.pop("gantry", None)
    locked = locked_versions()
    wrong = [
        f"{name} {version}, but {locked.get(name, 'nothing')} is locked"
        for name, version in sorted(listed.items())
        if locked.get(name) != version
    ]
    return wrong + [f"{name} is missing" for name in sorted(required_packages() - listed.keys())]


def problem(text: str) -> str | None:
    """Validate a bill strictly against the schema of its version; return the first problem."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    found = JsonStrictValidator(version).validate_str(text)
    return None if found is None else str(found)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path, exists=True))
def main(path: Path) -> None:
    """Add the vendored files to the bill in PATH."""
    bill = with_vendored(json.loads(path.read_text(encoding="utf-8")))
    if wrong := deviations(bill):
        raise click.ClickException(f"{path} deviates from requirements.lock: {'; '.join(wrong)}")
    text = json.dumps(bill, indent=2, ensure_ascii=False) + "\n"
    if why := problem(text):
        raise click.ClickException(f"{path} is no valid bill of materials: {why}")
    path.write_text(text, encoding="utf-8")
    click.echo(f"{path}: {len(bill['components'])} components")


if __name__ == "__main__":
    main()
