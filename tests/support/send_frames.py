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
) -> bytes:
    """A frame with a JSON header, with or without blanks."""
    header: dict[str, Any] = {
        "code": code,
        "extFields": fields,
        "flag": flag,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 409,
    }
    text = json.dumps(header, separators=None if spaces else (",", ":")).encode()
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


def common_case_frame(number: int, body: bytes = b"body", **changes: str) -> bytes:
    """A send frame for the compiled fast path; `number` selects the queue and is the opaque."""
    header = {**common_case_fields(number), **changes}
    return frame(header, body, code=310, flag=0, opaque=number, spaces=False)
