"""Decoding and encoding of bodies.

msgspec decodes standard JSON. Bodies that msgspec refuses, written by Java's fastjson or by a C++
client, are parsed by `fastjson` and then converted to the same types.
"""

from typing import Any, TypeVar

import msgspec

from core_broker.errors import ProtocolError
from core_broker.remoting import fastjson
from core_broker.remoting.ext_fields import DECODE_FAULTS
from core_broker.remoting.fastjson import Dialect

T = TypeVar("T")


def decode_body(kind: type[T], data: bytes) -> T:
    """Decode a body; raises ProtocolError when the data does not match `kind`."""
    try:
        body: T = _decoder(kind).decode(data)
    except DECODE_FAULTS:
        return _decode_lenient(kind, data)
    return body


def encode_body(body: Any, dialect: Dialect = Dialect.STANDARD) -> bytes:
    """Encode a body. Struct keys are written as objects in both dialects, as in Java."""
    return fastjson.dumps(body, dialect)


def _decode_lenient(kind: type[T], data: bytes) -> T:
    value = fastjson.loads(data)
    try:
        return msgspec.convert(value, kind, strict=False)
    except DECODE_FAULTS as fault:
        raise ProtocolError(f"a body is no {kind.__name__}: {fault}") from None


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, strict=False)
    return decoder
