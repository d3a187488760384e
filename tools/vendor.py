"""Copy the front end's scripts, styles and icons from npm packages into static/vendor.

static/vendor/manifest.json lists each package with version and licence, and each file with its path
below static/vendor, its path in the package, and the SHA-256 of the stored content. `make vendor`
repeats the copy and refuses content whose hash differs from the manifest; `--accept` writes the new
hashes to the manifest, for a reviewed change of version.

A line that points to a source map is removed: the map is not vendored, and a browser would request
the missing file. Files without a "source" (licence texts missing from a package) stay unchanged.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import click

VENDOR = Path(__file__).resolve().parent.parent / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"
SOURCE_MAP_LINE = re.compile(rb"\s*(?://#|/\*#) sourceMappingURL=\S+(?: \*/)?\s*\Z")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--accept", is_flag=True, help="store new hashes in the manifest")
def main(accept: bool) -> None:
    """Repeat static/vendor from npm packages."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    changed: list[str] = []
    for package in manifest["packages"]:
        changed += copy_package(package, accept=accept)
    if changed and not accept:
        sys.stderr.write("Content differs from the manifest, nothing was written for:\n")
        sys.stderr.write("".join(f"  {name}\n" for name in changed))
        sys.exit(1)
    if accept:
        MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"static/vendor: {len(manifest['packages'])} packages as listed\n")


def copy_package(package: dict[str, Any], *, accept: bool) -> list[str]:
    """Write the listed files of a package; return the paths with an unexpected hash."""
    changed = []
    with tempfile.TemporaryDirectory() as folder:
        archive = download(f"{package['name']}@{package['version']}", Path(folder))
        with tarfile.open(archive) as members:
            for file in package["files"]:
                content = content_of(file, members)
                digest = hashlib.sha256(content).hexdigest()
                if digest != file.get("sha256"):
                    changed.append(file["path"])
                    if not accept:
                        continue
                    file["sha256"] = digest
                target = VENDOR / file["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    return changed


def download(spec: str, folder: Path) -> Path:
    """Fetch one package archive with npm's own client and return its path."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", spec], cwd=folder, check=True, capture_output=True, text=True
    )
    return folder / packed.stdout.strip().splitlines()[-1]


def content_of(file: dict[str, Any], members: tarfile.TarFile) -> bytes:
    if "source" not in file:
        return (VENDOR / str(file["path"])).read_bytes()
    member = members.extractfile(f"package/{file['source']}")
    if member is None:
        raise SystemExit(f"{file['source']} is not a file of the package")
    content: bytes = SOURCE_MAP_LINE.sub(b"", member.read())
    return content.rstrip() + b"\n"


if __name__ == "__main__":
    main()
