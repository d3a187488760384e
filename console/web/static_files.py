"""Static files: read once, compressed once, served from memory without a call of Django.

`{% static %}` adds a digest of the file to the URL, so browsers may cache a file for ever and still
load a new version at once. Compression makes the style sheet eight times smaller, so the console
keeps compressed files in memory and uses no middleware that streams files from disk.
"""

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage

from console.web.security import AsgiApp

#: Relative file path whose folder and file names do not start with a dot.
NAME = re.compile(
    r"(?:[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}/){0,8}[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}"
)
DIGEST_CHARS = 12
COMPRESS_BYTES_MIN = 512
COMPRESSIBLE = ("text/", "image/svg", "application/javascript", "application/json")
KEEP_FOR_EVER = b"public, max-age=31536000, immutable"
KEEP_BRIEFLY = b"public, max-age=60"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file in memory. `packed` is the gzip form, None for small or incompressible files."""

    body: bytes
    packed: bytes | None
    content_type: str
    digest: str


#: Cache of existing files, bounded by the number of files in the static folders.
_FILES: dict[str, StaticFile] = {}


def static_file(name: str) -> StaticFile | None:
    """Return the file below /static/; None when no app and no folder has the file."""
    if name in _FILES and not settings.DEBUG:
        return _FILES[name]
    found = finders.find(name)
    if not isinstance(found, str) or not Path(found).is_file():
        return None
    _FILES[name] = packed_file(Path(found))
    return _FILES[name]


def content_type_of(name: str) -> str:
    """Return the content type of a file by its name; texts are UTF-8."""
    content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if content_type.startswith("text/") or content_type == "application/javascript":
        content_type += "; charset=utf-8"
    return content_type


def packed_file(path: Path) -> StaticFile:
    """Read a file, and compress the file if its type compresses well."""
    body = path.read_bytes()
    content_type = content_type_of(path.name)
    packed = None
    if len(body) >= COMPRESS_BYTES_MIN and content_type.startswith(COMPRESSIBLE):
        packed = gzip.compress(body, compresslevel=6, mtime=0)
    digest = hashlib.sha256(body).hexdigest()[:DIGEST_CHARS]
    return StaticFile(body, packed, content_type, digest)


class HashedUrlStorage(StaticFilesStorage):
    """`{% static "gantry/app.css" %}` → `/static/gantry/app.css?v=3f2a…`."""

    def url(self, name: str | None) -> str:
        address = str(super().url(name))
        file = static_file(name) if name else None
        return f"{address}?v={file.digest}" if file else address


class StaticFilesApp:
    """ASGI: answers GET and HEAD below STATIC_URL, forwards other requests."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self.prefix = settings.STATIC_URL

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(self.prefix):
            await self.app(scope, receive, send)
            return
        status, headers, body = answer(scope, path.removeprefix(self.prefix))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def answer(scope: dict[str, Any], name: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of a response."""
    if scope["method"] not in {"GET", "HEAD"}:
        return 405, [(b"allow", b"GET, HEAD"), (b"content-length", b"0")], b""
    file = static_file(name) if NAME.fullmatch(name) else None
    if file is None:
        return 404, [(b"content-type", b"text/plain"), (b"content-length", b"10")], b"Not found\n"
    wanted = dict(scope["headers"])
    etag = f'"{file.digest}"'.encode()
    asked_by_digest = scope.get("query_string", b"") == f"v={file.digest}".encode()
    headers = [
        (b"etag", etag),
        (b"vary", b"Accept-Encoding"),
        (b"cache-control", KEEP_FOR_EVER if asked_by_digest else KEEP_BRIEFLY),
        (b"x-content-type-options", b"nosniff"),
    ]
    if etag in wanted.get(b"if-none-match", b""):
        return 304, headers, b""
    body = file.body
    if file.packed is not None and b"gzip" in wanted.get(b"accept-encoding", b""):
        body = file.packed
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-type", file.content_type.encode()))
    headers.append((b"content-length", str(len(body)).encode()))
    return 200, headers, b"" if scope["method"] == "HEAD" else body
