"""Copy the front end's scripts, styles and icons from npm packages into static/vendor.

static/vendor/manifest.json is the one list: package, version, licence, and for each file its
place here, its place in the package, and the SHA-256 of what is stored here. This program
repeats the copy (`make vendor`) and refuses content that no longer has the listed hash;
`--accept` writes the new hashes instead, for a reviewed change of version.

A line that points to a source map is left out, since the map is not vendored and a browser
would ask for it in vain. Files without a "source" (licence texts that a package leaves out)
are kept as they are.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).resolve().parent.parent / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"
SOURCE_MAP_LINE = re.compile(rb"\s*(?://#|/\*#) sourceMappingURL=\S+(?: \*/)?\s*\Z")


def main() -> int:
    parser = argparse.ArgumentParser(description="Repeat static/vendor from npm packages.")
    parser.add_argument("--accept", action="store_true", help="store new hashes in the manifest")
    accept = parser.parse_args().accept
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    changed: list[str] = []
    for package in manifest["packages"]:
        changed += copy_package(package, accept=accept)
    if changed and not accept:
        sys.stderr.write("Content differs from the manifest, nothing was written for:\n")
        sys.stderr.write("".join(f"  {name}\n" for name in changed))
        return 1
    if accept:
        MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"static/vendor: {len(manifest['packages'])} packages as listed\n")
    return 0


def copy_package(package: dict[str, Any], *, accept: bool) -> list[str]:
    """Write the package's listed files; return the paths whose content was not the listed one."""
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
    sys.exit(main())
