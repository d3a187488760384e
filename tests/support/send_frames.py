"""Frames of sends in the format of clients."""

import json
import struct
from typing import Any


def frame(
    fields: dict[str, Any],
    body: bytes,
    *,
    code: int,
    flag: int = 0,
    opaque: int = 0,
    spaces: bool = False,
    escapes: bool = True,
) -> bytes:
    """A frame with a JSON header, with or without blanks.

    Characters beyond ASCII are escapes or UTF-8; as UTF-8, a surrogate of Python's
    `surrogateescape` is a malformed byte.
    """
    header: dict[str, Any] = {
        "code": code,
        "extFields": fields,
        "flag": flag,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 409,
    }
    separators = None if spaces else (",", ":")
    text = json.dumps(header, separators=separators, ensure_ascii=escapes).encode(
        "utf-8", "surrogateescape"
    )
    return struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body


def common_case_fields(number: int) -> dict[str, str]:
    """Ext fields of a send for the compiled fast path; `number` selects the queue."""
    return {
        "a": "PG",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": str(number % 4),
        "f": "0",
        "g": "1700000000123",
        "h": "0",
        "i": f"KEYS\x01k{number} b\x02UNIQ_KEY\x01AC{number:08X}\x02WAIT\x01true\x02TAGS\x01A",
        "j": "0",
        "k": "false",
        "m": "false",
    }


def common_case_frame(
    number: int, body: bytes = b"body", *, escapes: bool = True, **changes: str
) -> bytes:
    """A send frame for the compiled fast path; `number` selects the queue and is the opaque."""
    header = {**common_case_fields(number), **changes}
    return frame(header, body, code=310, flag=0, opaque=number, escapes=escapes)
