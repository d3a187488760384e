"""Print the version, after a check that every file names the same one; exit code 1 otherwise."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where a release is named, and as what.
PLACES = {
    "deploy/chart/gantry/Chart.yaml": (r"^version: (\S+)$", r"^appVersion: (\S+)$"),
    "CHANGELOG.md": (r"^## (\d\S*)$",),
}


def project_version() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def other_versions(version: str) -> list[str]:
    """The places with another version than the project's; the newest one in the changelog."""
    found = []
    for name, patterns in PLACES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for pattern in patterns:
            match = re.search(pattern, text, re.M)
            named = match[1] if match else "none"
            if named != version:
                found.append(f"{name}: {named}, expected {version}")
    minor = version.rpartition(".")[0]
    if f"The newest release is {minor}." not in (ROOT / "SECURITY.md").read_text(encoding="utf-8"):
        found.append(f"SECURITY.md: expected “The newest release is {minor}.”")
    return found


def main() -> int:
    version = project_version()
    if wrong := other_versions(version):
        sys.stderr.write("\n".join(wrong) + "\n")
        return 1
    sys.stdout.write(version + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
