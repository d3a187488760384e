"""Presentation of a message body: JSON, XML, text, hex or Base64, with encoding and truncation.

A body with a schema is shown as JSON; when the body does not fit the schema, in hex, with the
reason. Without a schema, a body is shown as text only if the bytes decode to text without control
characters: UTF-8, or UTF-16 with a byte order mark.
"""

import base64
import codecs
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from django.utils.safestring import SafeString

from console.areas.messages import json_tree, xml_text
from console.gateway.messages.schemas.decoder import NO_DECODER, Decoded, Decoder
from core_broker.errors import ProtocolError
from core_broker.message import sysflag
from core_broker.message.model import MessageExt

TEXT_BYTES_MAX = 64 * 1024
TREE_BYTES_MAX = 1024 * 1024
HEX_BYTES_MAX = 8 * 1024
PREVIEW_CHARS_MAX = 120
HEX_ROW_BYTES = 16
BINARY = "binary"
#: Control characters except tab and line ends; text has none.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_COMPRESSIONS = {0x000: "zlib", 0x100: "LZ4", 0x200: "Zstandard", 0x300: "zlib"}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16 LE"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16 BE"),
)


class BodyForm(StrEnum):
    #: JSON as a folding tree, for pages; the text is the same as for JSON.
    TREE = "tree"
    JSON = "json"
    XML = "xml"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


#: Forms of every body.
ALWAYS = (BodyForm.HEX, BodyForm.BASE64)


@dataclass(frozen=True, slots=True)
class BodyView:
    """A body for display. `forms` are the lossless forms, best form first."""

    form: BodyForm
    forms: tuple[BodyForm, ...]
    text: str
    size_bytes: int
    shown_bytes: int
    compression: str
    encoding: str
    #: Digest of the complete body as sent, equal to the digest of the downloaded file.
    sha256: str
    problem: str = ""
    #: Why the body does not fit the schema of the topic.
    misfit: str = ""
    tree: SafeString | str = ""
    tree_is_cut: bool = False

    @property
    def is_cut(self) -> bool:
        return self.shown_bytes < self.size_bytes


def view_body(message: MessageExt, form: str = "", decoder: Decoder = NO_DECODER) -> BodyView:
    """The body in the requested form; in the best form if the requested form is not lossless."""
    body, compression, problem = sent_body(message)
    decoded = decoder.decode(message)
    text, encoding, forms = _read(body, decoded)
    chosen = BodyForm(form) if form in forms else next(name for name in forms if name != "tree")
    tree, is_cut = json_tree.draw(json_tree.parse(text or "")) if chosen == "tree" else ("", False)
    shown, shown_bytes = _shown(chosen, body, text or "", is_decoded=decoded is not None)
    return BodyView(
        form=chosen,
        forms=forms,
        text=shown,
        size_bytes=len(body),
        shown_bytes=shown_bytes,
        compression=compression,
        encoding=encoding,
        sha256=hashlib.sha256(body).hexdigest(),
        problem=problem,
        misfit="" if decoded is None else decoded.misfit,
        tree=tree,
        tree_is_cut=is_cut,
    )


def _read(body: bytes, decoded: Decoded | None) -> tuple[str | None, str, tuple[BodyForm, ...]]:
    """The text of a body, the name of the encoding and the forms."""
    if decoded is None:
        text, encoding = text_of(body)
        return text, encoding, forms_of(body, text)
    if decoded.misfit:
        return None, decoded.label, ALWAYS
    json = (BodyForm.JSON,) if len(decoded.text) <= TEXT_BYTES_MAX else ()
    return decoded.text, decoded.label, (BodyForm.TREE, *json, *ALWAYS)


def sent_body(message: MessageExt) -> tuple[bytes, str, str]:
    """The decompressed body, the name of the compression and the decompression error, both may be
    empty. After an error, the body is returned as stored."""
    if not message.sys_flag & sysflag.COMPRESSED:
        return message.body, "", ""
    compression = _COMPRESSIONS.get(message.sys_flag & sysflag.COMPRESSION_MASK, "unknown")
    try:
        return message.decompressed_body(), compression, ""
    except ProtocolError as fault:
        return message.body, compression, str(fault)


def text_of(body: bytes) -> tuple[str | None, str]:
    """The body as text and the name of the encoding; (None, BINARY) for a body without text."""
    plain = ("utf-8", "ASCII" if body.isascii() else "UTF-8")
    marked = (encoding for bom, *encoding in _BYTE_ORDER_MARKS if body.startswith(bom))
    codec, name = next(marked, plain)
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        return None, BINARY
    if not _is_clean(text) or (body and not text):
        return None, BINARY
    return text, name


def forms_of(body: bytes, text: str | None) -> tuple[BodyForm, ...]:
    """The lossless forms of a body, best form first."""
    if text is None:
        return ALWAYS
    start = text.lstrip()[:1]
    if start in ("{", "[") and _is_json(text) and len(body) <= TREE_BYTES_MAX:
        json = (BodyForm.JSON,) if len(body) <= TEXT_BYTES_MAX else ()
        return (BodyForm.TREE, *json, BodyForm.TEXT, *ALWAYS)
    if start == "<" and len(body) <= TEXT_BYTES_MAX and _is_xml(text):
        return (BodyForm.XML, BodyForm.TEXT, *ALWAYS)
    return (BodyForm.TEXT, *ALWAYS)


def _is_json(text: str) -> bool:
    try:
        json_tree.parse(text)
        msgspec.json.format(text)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return False
    return True


def _is_xml(text: str) -> bool:
    try:
        xml_text.indented(text)
    except ValueError:
        return False
    return True


def is_text(body: bytes) -> bool:
    """True for UTF-8 without control characters other than tab and line ends."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return _is_clean(text)


def _is_clean(text: str) -> bool:
    return _CONTROLS.search(text) is None


def preview(message: MessageExt, decoder: Decoder = NO_DECODER) -> str:
    """The beginning of a body on one line, for lists: with a schema JSON, otherwise text or hex."""
    decoded = decoder.decode(message)
    if decoded is not None and not decoded.misfit:
        return _line(decoded.text)
    try:
        body = message.decompressed_body()
    except ProtocolError:
        body = message.body
    head = body[: 4 * PREVIEW_CHARS_MAX]
    text = head.decode(errors="ignore") if len(head) < len(body) else head.decode(errors="replace")
    if decoded is not None or not is_text(text.encode()) or "\ufffd" in text:
        return f"{body[:24].hex(' ')}{' …' if len(body) > 24 else ''}"
    return _line(text)


def _line(text: str) -> str:
    line = " ".join(text[: 4 * PREVIEW_CHARS_MAX].split())
    return line if len(line) <= PREVIEW_CHARS_MAX else line[: PREVIEW_CHARS_MAX - 1] + "…"


def _shown(form: BodyForm, body: bytes, text: str, *, is_decoded: bool) -> tuple[str, int]:
    """The body in a form, and the number of shown bytes."""
    size_bytes = len(text) if is_decoded else len(body)
    match form:
        case BodyForm.HEX:
            return _as_hex(body)
        case BodyForm.BASE64:
            cut = body[:TEXT_BYTES_MAX]
            return base64.encodebytes(cut).decode(), len(cut)
        case BodyForm.XML:
            return xml_text.indented(text), len(body)
        case BodyForm.JSON | BodyForm.TREE if size_bytes <= TEXT_BYTES_MAX:
            return msgspec.json.format(text, indent=2), len(body)
        case BodyForm.TREE:
            return "", len(body)
    if len(body) <= TEXT_BYTES_MAX:
        return text, len(body)
    kept = text.encode()[:TEXT_BYTES_MAX]
    return kept.decode(errors="ignore"), len(kept)


def _as_hex(body: bytes) -> tuple[str, int]:
    shown = body[:HEX_BYTES_MAX]
    rows = []
    for start in range(0, len(shown), HEX_ROW_BYTES):
        row = shown[start : start + HEX_ROW_BYTES]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{start:08x}  {row.hex(' '):<{3 * HEX_ROW_BYTES - 1}}  {letters}")
    return "\n".join(rows), len(shown)
