"""What `make release` puts together: versions, licences, the bill of materials."""

import json
import re
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT
from tools import versions
from tools.notices import NOTICES, components, licence_file, manifest, text
from tools.sbom import deviations, locked_versions, vendored_components, with_vendored
from tools.versions import other_versions, project_version

VENDOR = ROOT / "static" / "vendor"


def test_every_file_names_the_same_version() -> None:
    assert other_versions(project_version()) == []
    wrong = other_versions("9.8.7")
    assert len(wrong) == 4, wrong
    assert "SECURITY.md: expected “The newest release is 9.8.”" in wrong


def test_a_file_without_a_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*versions.PLACES, "SECURITY.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("nothing\n")
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    assert "CHANGELOG.md: none, expected 0.1.0" in other_versions("0.1.0")


def test_the_notices_are_those_of_the_manifest() -> None:
    assert NOTICES.read_text(encoding="utf-8") == text(), "run python tools/notices.py"


def test_every_vendored_package_has_its_licence_in_the_notices() -> None:
    written = NOTICES.read_text(encoding="utf-8")
    names = {each["name"] for each in components()}
    assert len(names) >= len(manifest()) >= 5
    for each in components():
        assert f"{each['name']} {each['version']} ({each['licence']})" in written
        licence = licence_file(each).read_text(encoding="utf-8").strip()
        assert len(licence) > 200, each["name"]
        assert licence in written, each["name"]


def test_packages_that_a_vendored_file_names_as_bundled_are_in_the_manifest() -> None:
    """Bundlers keep the comments `PACKAGE vVERSION … @license`."""
    listed = {(each["name"], each["version"]) for each in components()}
    named = {
        (name, version)
        for path in VENDOR.rglob("*.js")
        for comment in path.read_text(encoding="utf-8").split("/*")[1:]
        if "@license" in comment
        for name, version in re.findall(r"^\s*\* (\S+) v(\d\S*)$", comment, re.M)
    }
    assert ("@vue/reactivity", "3.5.41") in named
    assert named - listed == set()


def test_every_vendored_file_is_in_the_bill_of_materials() -> None:
    python = {"type": "library", "bom-ref": "click==1", "name": "click", "version": "1"}
    bill = with_vendored({"specVersion": "1.6", "components": [python]})
    refs = [each["bom-ref"] for each in bill["components"]]
    assert refs == sorted(refs)
    assert "click==1" in refs
    assert "pkg:npm/%40tabler/core@" in " ".join(refs)
    listed = {
        file["name"]: file["hashes"][0]["content"]
        for each in vendored_components()
        for file in each.get("components", ())
    }
    wanted = {
        f"static/vendor/{file['path']}": file["sha256"]
        for package in json.loads((VENDOR / "manifest.json").read_text())["packages"]
        for file in package["files"]
    }
    assert listed == wanted


def test_the_bill_of_materials_has_the_packages_of_the_lock() -> None:
    locked = locked_versions()
    assert len(locked) > 100
    packages = [
        {"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in locked.items()
    ]
    assert deviations({"components": packages}) == []
    other = {"name": "Click", "version": "0.1", "purl": "pkg:pypi/click@0.1"}
    unknown = {"name": "left_pad", "version": "1", "purl": "pkg:pypi/left-pad@1"}
    rest = [each for each in packages if each["name"] not in {"click", "django"}]
    assert deviations({"components": [*rest, other, unknown]}) == [
        f"click 0.1, but {locked['click']} is locked",
        "left-pad 1, but nothing is locked",
        "django is missing",
    ]
