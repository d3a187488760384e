"""Sources of Protobuf (`.proto`), compiled on upload to the descriptor set that is stored.

A source is one file, or a ZIP archive of files that import each other by their paths in the
archive. A source is hostile input: Google's compiler runs in a process of its own
(`protoc_program.py`) with limits of time, memory and file size, without the environment and the
import path of the console. Imports are read from the upload and from the compiler's own
`google/protobuf/*.proto` only.
"""

import io
import os
import re
import signal
import struct
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore
from typing import Final

from console.gateway.messages.schemas.bounds import SCHEMA_BYTES_MAX, SchemaError
from console.gateway.messages.schemas.protobuf import FILES_MAX

#: Maximum duration of a compilation, and of the wait for earlier ones, seconds.
COMPILE_S: Final = 10.0
COMPILES_AT_ONCE_MAX: Final = 2
#: Maximum size of all files of an archive, bytes.
SOURCE_BYTES_MAX: Final = 4 * 1024 * 1024
PATH_CHARS_MAX: Final = 255
#: Maximum number of reported errors, and of characters of each.
ERRORS_MAX: Final = 10
ERROR_CHARS_MAX: Final = 300
#: Name of an upload of one file, in errors.
SINGLE: Final = "schema.proto"
PROGRAM: Final = Path(__file__).with_name("protoc_program.py")
#: Begin of an archive, also of an empty one; no source begins so.
_ARCHIVE: Final = b"PK"
_PATH: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_][A-Za-z0-9_.+-]*\.proto")
_COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Faults of an archive. RuntimeError: an encrypted file; OverflowError: an offset of 2^63 and more.
_FAULTS: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OverflowError),
    *(RuntimeError, EOFError, ValueError, OSError),
)
_slots: Final = BoundedSemaphore(COMPILES_AT_ONCE_MAX)


def compiled(content: bytes) -> bytes:
    """Return the descriptor set of a source. Raises SchemaError with one line per error; a line
    begins with file, line and column."""
    files = _unpacked(content) if content.startswith(_ARCHIVE) else {SINGLE: content}
    if not _slots.acquire(timeout=COMPILE_S):
        raise SchemaError("other sources are being compiled; upload the source again")
    try:
        with TemporaryDirectory(prefix="gantry-protoc-") as folder:
            return _descriptor_set(Path(folder), files)
    finally:
        _slots.release()


def _unpacked(content: bytes) -> dict[str, bytes]:
    """Return the `.proto` files of an archive by path. Raises SchemaError."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except _FAULTS as fault:
        raise SchemaError(f"not a ZIP archive: {fault}") from fault
    files: dict[str, bytes] = {}
    left = SOURCE_BYTES_MAX
    for entry in _checked(archive.infolist()):
        files[entry.filename] = _file_of(archive, entry, left)
        left -= len(files[entry.filename])
    return files


def _file_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, bytes_max: int) -> bytes:
    try:
        with archive.open(entry) as file:
            found = file.read(bytes_max + 1)
    except _FAULTS as fault:
        raise SchemaError(f"{entry.filename}: {fault}") from fault
    if len(found) > bytes_max:
        raise SchemaError(f"the archive has more than {SOURCE_BYTES_MAX} bytes")
    return found


def _checked(entries: Iterable[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the `.proto` files. Raises SchemaError."""
    sources = [each for each in entries if each.filename.endswith(".proto")]
    if not 0 < len(sources) <= FILES_MAX:
        raise SchemaError(f"the archive has {len(sources)} .proto files, not 1 to {FILES_MAX}")
    for each in sources:
        name = each.filename
        if len(name) > PATH_CHARS_MAX or not _PATH.fullmatch(name):
            raise SchemaError(f"unusable path in the archive: {name[:PATH_CHARS_MAX]!r}")
        if each.compress_type not in _COMPRESSIONS:
            raise SchemaError(f"{name}: unknown compression {each.compress_type}")
    names = Counter(each.filename for each in sources)
    name, count = names.most_common(1)[0]
    if count > 1:
        raise SchemaError(f"{name}: {count} files of the archive have this path")
    return sources


def _descriptor_set(folder: Path, files: Mapping[str, bytes]) -> bytes:
    """Compile files in an empty folder. Raises SchemaError."""
    source, output, errors = folder / "source", folder / "descriptors", folder / "errors"
    source.mkdir()
    try:
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
    except OSError as fault:  # a path is a file and a folder
        raise SchemaError(f"{name}: {fault.strerror}") from fault
    code = _run(source, errors, [str(output), *files])
    if code:
        raise SchemaError(_reasons(errors, code))
    with output.open("rb") as file:
        return file.read(SCHEMA_BYTES_MAX + 1)


def _run(source: Path, errors: Path, arguments: list[str]) -> int:
    """Return the exit code of the compiler. Raises SchemaError after COMPILE_S."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    with errors.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM), *arguments],
            cwd=source,
            env=kept | {"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
        try:
            return process.wait(COMPILE_S)
        except subprocess.TimeoutExpired:
            raise SchemaError(f"the compiler took more than {COMPILE_S:.0f} s") from None
        finally:
            process.kill()
            process.wait()


def _reasons(errors: Path, code: int) -> str:
    """Return the errors that the compiler has printed, one per line."""
    with errors.open("rb") as file:
        printed = file.read(ERRORS_MAX * ERROR_CHARS_MAX * 4).decode(errors="replace")
    lines = [each for each in printed.splitlines() if each.strip() and ": warning: " not in each]
    if code < 0:
        lines = [f"the compiler ended with {signal.Signals(-code).name}"]
    return "\n".join(each[:ERROR_CHARS_MAX] for each in lines[:ERRORS_MAX]) or f"exit code {code}"
