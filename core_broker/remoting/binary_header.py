"""The compact binary header, serialize type 1.

    2  code              4  remark length       4  ext fields length in bytes
    1  language code     n  remark UTF-8        then repeated:
    2  version                                  2  key length    n  key
    4  opaque                                   4  value length  m  value
    4  flag

All integers are big-endian; the fixed part is 21 bytes. A length of 0 means absent, so an empty
value is decoded as absent. As in Java, codes above 65535 lose their upper bits. Compatible with
RocketMQ's RocketMQSerializable.
"""

from struct import Struct, error
from typing import NamedTuple

from core_broker.errors import ProtocolError

_FIXED = Struct(">HBHiiI")
_KEY_LENGTH = Struct(">H")
_LENGTH = Struct(">I")
_SIGN_BIT = 2**31


class BinaryHeader(NamedTuple):
    """The members of a binary header."""

    code: int
    language: int
    version: int
    opaque: int
    flag: int
    remark: str | None
    ext_fields: dict[str, str]


def decode(header: bytes) -> BinaryHeader:
    """Decode a header; raises ProtocolError for malformed bytes."""
    try:
        code, language, version, opaque, flag, length = _FIXED.unpack_from(header)
        remark, offset = _text(header, _FIXED.size, length)
        (ext_bytes,) = _LENGTH.unpack_from(header, offset)
        offset += _LENGTH.size
        if offset + ext_bytes > len(header):
            raise ProtocolError(f"ext fields of {ext_bytes} bytes run past the header")
        fields = _fields(header, offset, offset + ext_bytes)
    except (error, UnicodeDecodeError) as fault:
        raise ProtocolError(f"broken binary header: {fault}") from None
    return BinaryHeader(code, language, version, opaque, flag, remark or None, fields)


def _text(header: bytes, offset: int, length: int) -> tuple[str, int]:
    end = offset + length
    if end > len(header):
        raise ProtocolError(f"a text of {length} bytes runs past the binary header")
    return header[offset:end].decode(), end


def _fields(header: bytes, offset: int, end: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    while offset < end:
        (length,) = _KEY_LENGTH.unpack_from(header, offset)
        key, offset = _text(header, offset + _KEY_LENGTH.size, length)
        (length,) = _LENGTH.unpack_from(header, offset)
        value, offset = _text(header, offset + _LENGTH.size, length)
        if key and value:
            fields[key] = value
    if offset != end:
        raise ProtocolError("the last ext field runs past the binary header")
    return fields


def encode(header: BinaryHeader) -> bytes:
    """Encode a header; numbers too large for their field are cut to their lower bits."""
    remark = (header.remark or "").encode()
    fixed = _FIXED.pack(
        header.code & 0xFFFF,
        header.language & 0xFF,
        header.version & 0xFFFF,
        _signed(header.opaque),
        _signed(header.flag),
        len(remark),
    )
    parts = [fixed, remark, b""]
    for name, text in header.ext_fields.items():
        key, value = name.encode(), text.encode()
        parts += (_KEY_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value)
    parts[2] = _LENGTH.pack(sum(map(len, parts[3:])))
    return b"".join(parts)


def _signed(number: int) -> int:
    return ((number + _SIGN_BIT) & 0xFFFFFFFF) - _SIGN_BIT
