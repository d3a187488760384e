"""RemotingCommand: one request, answer or one-way request, and the two header encodings.

The JSON header (serialize type 0) is one object:

    code int · flag int (bit 0 answer, bit 1 one-way) · language NAME · opaque int · version int
    serializeTypeCurrentRPC "JSON", the encoding of this header
    remark string, absent when empty · extFields object of strings, absent when empty

The reader ignores unknown members and serializeTypeCurrentRPC: the header word has the encoding.
Java writes the member in every header, and the Rust client drops a frame without it.
`opaque` matches an answer to its request; the requesting peer chooses the value freely. The binary
header (serialize type 1) is in `binary_header`. An answer uses the encoding of its request.
Compatible with RocketMQ's RemotingCommand.
"""

from typing import TypeVar

import msgspec

from core_broker.errors import ProtocolError
from core_broker.remoting import binary_header
from core_broker.remoting.binary_header import BinaryHeader
from core_broker.remoting.codes import PROTOCOL_VERSION, LanguageCode, SerializeType
from core_broker.remoting.ext_fields import (
    DECODE_FAULTS,
    Header,
    Int,
    Long,
    decode_fields,
    decode_raw,
    encode_fields,
    read_fields,
)
from core_broker.remoting.frame_layout import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES_MAX,
    LENGTH_BYTES,
    SERIALIZE_TYPE_SHIFT,
    pack_frame_head,
    unpack_frame_head,
)

_RESPONSE = 1
_ONEWAY = 2
_NO_FIELDS = msgspec.Raw()
_LANGUAGES: dict[str | int | None, LanguageCode] = {
    **{language.name: language for language in LanguageCode},
    **{language.value: language for language in LanguageCode},
}
_JSON_NAME = SerializeType.JSON.name
_LANGUAGE_NAMES = {language: language.name for language in LanguageCode}

H = TypeVar("H", bound=Header)


class RemotingCommand:
    """One command. The sending connection sets `opaque` and the one-way flag."""

    __slots__ = (
        "_fields",
        "_raw_fields",
        "body",
        "code",
        "flag",
        "held",
        "language",
        "opaque",
        "remark",
        "serialize_type",
        "version",
    )

    def __init__(
        self,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        flag: int = 0,
        opaque: int = 0,
        remark: str | None = None,
        language: LanguageCode = LanguageCode.PYTHON,
        version: int = PROTOCOL_VERSION,
        serialize_type: int = SerializeType.JSON,
    ) -> None:
        self.code = code
        self.flag = flag
        self.opaque = opaque
        self.remark = remark
        self.language = language
        self.version = version
        self.serialize_type = serialize_type
        self.body = body
        self._fields = fields
        self._raw_fields = _NO_FIELDS
        #: True while the request waits for its answer; set by the connection.
        self.held = False

    @classmethod
    def request(
        cls, code: int, header: Header | dict[str, str] | None = None, body: bytes = b""
    ) -> "RemotingCommand":
        """A request. `Connection.send` sends the request one-way."""
        return cls(code, encode_fields(header) if isinstance(header, Header) else header, body)

    @classmethod
    def response(
        cls,
        code: int = 0,
        remark: str | None = None,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
    ) -> "RemotingCommand":
        """An answer; the connection calls `answer_to` with the request."""
        fields = encode_fields(header) if isinstance(header, Header) else header
        return cls(code, fields, body, flag=_RESPONSE, remark=remark)

    def answer_to(self, request: "RemotingCommand") -> "RemotingCommand":
        """Make the command the answer to a request, with its opaque and encoding; returns it."""
        self.opaque = request.opaque
        self.flag = self.flag & ~_ONEWAY | _RESPONSE
        self.serialize_type = request.serialize_type
        return self

    @property
    def is_response(self) -> bool:
        """True for an answer."""
        return self.flag & _RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        """True for a request that must never be answered."""
        return self.flag & _ONEWAY != 0

    @property
    def ext_fields(self) -> dict[str, str]:
        """All ext fields as text; changes of the dict change the command."""
        if self._fields is None:
            self._fields = {} if self._raw_fields is _NO_FIELDS else read_fields(self._raw_fields)
            self._raw_fields = _NO_FIELDS
        return self._fields

    @ext_fields.setter
    def ext_fields(self, fields: dict[str, str]) -> None:
        self._fields = fields
        self._raw_fields = _NO_FIELDS

    def header(self, kind: type[H]) -> H:
        """The ext fields as a typed header; raises ProtocolError for missing or invalid fields."""
        if self._raw_fields is not _NO_FIELDS:
            header = decode_raw(kind, self._raw_fields)
            if header is not None:
                return header
        return decode_fields(kind, self.ext_fields)

    def encode_head(self) -> bytes:
        """The frame without the body; the caller sends the body right after the head."""
        if self.serialize_type == SerializeType.JSON:
            header = _encode_json(
                _JsonHeaderOut(
                    self.code,
                    self.flag,
                    _LANGUAGE_NAMES[self.language],
                    self.opaque,
                    _JSON_NAME,
                    self.version,
                    self.ext_fields or None,
                    self.remark or None,
                )
            )
        else:
            header = binary_header.encode(
                BinaryHeader(
                    self.code,
                    self.language,
                    self.version,
                    self.opaque,
                    self.flag,
                    self.remark,
                    self.ext_fields,
                )
            )
        size = len(header)
        if size > HEADER_BYTES_MAX:
            raise ProtocolError(f"a header of {size} bytes does not fit into a frame")
        word = self.serialize_type << SERIALIZE_TYPE_SHIFT | size
        return pack_frame_head(LENGTH_BYTES + size + len(self.body), word) + header

    def encode(self) -> bytes:
        """The whole frame."""
        return self.encode_head() + self.body

    @staticmethod
    def decode(frame: bytes) -> "RemotingCommand":
        """Decode exactly one whole frame; raises ProtocolError otherwise."""
        if len(frame) < FRAME_HEAD_BYTES:
            raise ProtocolError(f"{len(frame)} bytes are no frame")
        length, word = unpack_frame_head(frame)
        header_end = FRAME_HEAD_BYTES + (word & HEADER_BYTES_MAX)
        if length + LENGTH_BYTES != len(frame) or header_end > len(frame):
            raise ProtocolError(f"lengths of the frame do not add up to its {len(frame)} bytes")
        return decode_parts(
            word >> SERIALIZE_TYPE_SHIFT, frame[FRAME_HEAD_BYTES:header_end], frame[header_end:]
        )

    def __repr__(self) -> str:
        kind = "answer" if self.is_response else "oneway" if self.is_oneway else "request"
        return f"<{kind} code={self.code} opaque={self.opaque} body={len(self.body)}>"


class _JsonHeader(msgspec.Struct, rename={"ext_fields": "extFields"}):
    code: Int
    opaque: Long = 0
    flag: Int = 0
    language: str | int | None = None
    version: Int = 0
    remark: str | None = None
    ext_fields: msgspec.Raw = _NO_FIELDS


class _JsonHeaderOut(
    msgspec.Struct,
    rename={"ext_fields": "extFields", "serialize_type": "serializeTypeCurrentRPC"},
    omit_defaults=True,
    gc=False,
):
    code: int
    flag: int
    language: str
    opaque: int
    serialize_type: str
    version: int
    ext_fields: dict[str, str] | None = None
    remark: str | None = None


_decode_json = msgspec.json.Decoder(_JsonHeader, strict=False).decode
_encode_json = msgspec.json.Encoder().encode


def decode_parts(serialize_type: int, header: bytes, body: bytes) -> RemotingCommand:
    """Decode a command from the parts of its frame; raises ProtocolError for an invalid header."""
    if serialize_type == SerializeType.JSON:
        return _from_json(header, body)
    if serialize_type == SerializeType.ROCKETMQ:
        return _from_binary(header, body)
    raise ProtocolError(f"unknown serialize type {serialize_type}")


def _from_json(header: bytes, body: bytes) -> RemotingCommand:
    try:
        parsed = _decode_json(header)
    except DECODE_FAULTS as fault:
        raise ProtocolError(f"broken JSON header: {fault}") from None
    command = RemotingCommand(
        parsed.code,
        None,
        body,
        flag=parsed.flag,
        opaque=parsed.opaque,
        remark=parsed.remark or None,
        language=_LANGUAGES.get(parsed.language, LanguageCode.OTHER),
        version=parsed.version,
    )
    command._raw_fields = parsed.ext_fields
    return command


def _from_binary(header: bytes, body: bytes) -> RemotingCommand:
    parsed = binary_header.decode(header)
    return RemotingCommand(
        parsed.code,
        parsed.ext_fields,
        body,
        flag=parsed.flag,
        opaque=parsed.opaque,
        remark=parsed.remark,
        language=_LANGUAGES.get(parsed.language, LanguageCode.OTHER),
        version=parsed.version,
        serialize_type=SerializeType.ROCKETMQ,
    )
