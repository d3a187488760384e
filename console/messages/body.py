"""A message body for people: JSON, text, hex or Base64, with its encoding named and cuts shown.

Bytes are never shown as text unless they are UTF-8 without control characters.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.model import MessageExt

TEXT_BYTES_MAX = 64 * 1024
HEX_BYTES_MAX = 8 * 1024
PREVIEW_CHARS_MAX = 120
HEX_ROW_BYTES = 16
_ALLOWED_CONTROLS = frozenset("\t\n\r")
_COMPRESSIONS = {0x000: "zlib", 0x100: "LZ4", 0x200: "Zstandard", 0x300: "zlib"}


class BodyForm(StrEnum):
    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class BodyView:
    """A body as it is shown. `forms` are the forms it can be shown in, the best one first."""

    form: BodyForm
    forms: tuple[BodyForm, ...]
    text: str
    size_bytes: int
    shown_bytes: int
    compression: str
    problem: str = ""

    @property
    def is_cut(self) -> bool:
        return self.shown_bytes < self.size_bytes


def view_body(message: MessageExt, form: str = "") -> BodyView:
    """Show the body in the form asked for, or in the best that fits it."""
    compression, problem = "", ""
    body = message.body
    if message.sys_flag & sysflag.COMPRESSED:
        compression = _COMPRESSIONS.get(message.sys_flag & 0x700, "unknown")
        try:
            body = message.decompressed_body()
        except ProtocolError as fault:
            problem = str(fault)
    forms = forms_of(body)
    chosen = BodyForm(form) if form in forms else forms[0]
    text, shown_bytes = _SHOW[chosen](body)
    return BodyView(chosen, forms, text, len(body), shown_bytes, compression, problem)


def forms_of(body: bytes) -> tuple[BodyForm, ...]:
    """In which forms the bytes can be shown without lying about them, the best one first."""
    always = (BodyForm.HEX, BodyForm.BASE64)
    if not is_text(body):
        return always
    if len(body) <= TEXT_BYTES_MAX and body.lstrip()[:1] in (b"{", b"["):
        try:
            msgspec.json.format(body)
        except (msgspec.MsgspecError, RecursionError):
            return (BodyForm.TEXT, *always)
        return (BodyForm.JSON, BodyForm.TEXT, *always)
    return (BodyForm.TEXT, *always)


def is_text(body: bytes) -> bool:
    """True for UTF-8 without control characters other than tab and line ends."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return all(char in _ALLOWED_CONTROLS or (char >= " " and char != "\x7f") for char in text)


def preview(message: MessageExt) -> str:
    """The beginning of a body on one line, for lists; bytes that are no text are counted."""
    try:
        body = message.decompressed_body()
    except ProtocolError:
        body = message.body
    head = body[: 4 * PREVIEW_CHARS_MAX]
    text = head.decode(errors="ignore") if len(head) < len(body) else head.decode(errors="replace")
    if not is_text(text.encode()) or "\ufffd" in text:
        return f"{body[:24].hex(' ')}{' …' if len(body) > 24 else ''}"
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW_CHARS_MAX else line[: PREVIEW_CHARS_MAX - 1] + "…"


def _as_json(body: bytes) -> tuple[str, int]:
    return msgspec.json.format(body, indent=2).decode(), len(body)


def _as_text(body: bytes) -> tuple[str, int]:
    text = body[:TEXT_BYTES_MAX].decode(errors="ignore")
    return text, min(len(body), TEXT_BYTES_MAX)


def _as_hex(body: bytes) -> tuple[str, int]:
    shown = body[:HEX_BYTES_MAX]
    rows = []
    for start in range(0, len(shown), HEX_ROW_BYTES):
        row = shown[start : start + HEX_ROW_BYTES]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{start:08x}  {row.hex(' '):<{3 * HEX_ROW_BYTES - 1}}  {letters}")
    return "\n".join(rows), len(shown)


def _as_base64(body: bytes) -> tuple[str, int]:
    shown = body[:TEXT_BYTES_MAX]
    return base64.encodebytes(shown).decode(), len(shown)


_SHOW = {
    BodyForm.JSON: _as_json,
    BodyForm.TEXT: _as_text,
    BodyForm.HEX: _as_hex,
    BodyForm.BASE64: _as_base64,
}
