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

#: Maximum size of a body that a peer sends and the event loop decodes at once, bytes.
REQUEST_BODY_BYTES_MAX = 2 * 1024 * 1024
#: Maximum objects in such a body, nested ones included.
REQUEST_OBJECTS_MAX = 20_000
#: Maximum commas, colons and escapes of such a body in fastjson's dialect, which Python parses.
REQUEST_TOKENS_MAX = 16_000

T = TypeVar("T")


def decode_body(kind: type[T], data: bytes) -> T:
    """Decode a body; raises ProtocolError when the data does not match `kind`."""
    try:
        body: T = _decoder(kind).decode(data)
    except DECODE_FAULTS:
        return _decode_lenient(kind, data)
    return body


def decode_request(
    kind: type[T],
    data: bytes,
    bytes_max: int = REQUEST_BODY_BYTES_MAX,
    objects_max: int = REQUEST_OBJECTS_MAX,
) -> T:
    """Decode a body that a peer sent to a server; raises ProtocolError, also above a limit.

    The limits come before any work: the decoding holds the event loop.
    """
    if len(data) > bytes_max:
        raise ProtocolError(
            f"a body of {len(data)} bytes is longer than {bytes_max}, the limit of this request"
        )
    if (objects := data.count(b"{")) > objects_max:
        raise ProtocolError(f"a body of {objects} objects, {objects_max} are possible")
    try:
        body: T = _decoder(kind).decode(data)
    except DECODE_FAULTS:
        if (tokens := sum(map(data.count, _TOKENS))) > REQUEST_TOKENS_MAX:
            raise ProtocolError(
                f"a body is no {kind.__name__} in standard JSON; in another form it may have "
                f"{REQUEST_TOKENS_MAX} commas, colons and escapes, not {tokens}"
            ) from None
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


_TOKENS = (b",", b":", b"\\")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, strict=False)
    return decoder
