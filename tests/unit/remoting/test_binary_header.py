"""The binary header: known encodings and malformed headers."""

from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting import binary_header
from core_broker.remoting.binary_header import BinaryHeader
from core_broker.remoting.codes import LanguageCode, SerializeType
from core_broker.remoting.command import RemotingCommand


def header(remark: str | None = None, fields: dict[str, str] | None = None) -> BinaryHeader:
    return BinaryHeader(103, LanguageCode.JAVA, 409, 7, 0, remark, fields or {})


@pytest.mark.parametrize(
    ("remark", "fields", "size"),
    [(None, {}, 21), ("Sample Remark", {}, 34), (None, {"key": "value"}, 35)],
)
def test_known_lengths(remark: str | None, fields: dict[str, str], size: int) -> None:
    data = binary_header.encode(header(remark, fields))
    assert len(data) == size
    assert binary_header.decode(data) == header(remark, fields)


def test_length_of_the_ext_fields() -> None:
    data = binary_header.encode(header(None, {"key": "value"}))
    assert int.from_bytes(data[17:21], "big") == 14
    assert data[21:] == b"\x00\x03key\x00\x00\x00\x05value"


def test_an_empty_value_reads_as_absent() -> None:
    assert binary_header.decode(binary_header.encode(header(None, {"a": "", "b": "1"}))) == header(
        None, {"b": "1"}
    )


def test_large_codes_lose_their_upper_bits_as_in_java() -> None:
    data = binary_header.encode(header()._replace(code=200050, opaque=2**31 + 5))
    assert binary_header.decode(data).code == 3442
    assert binary_header.decode(data).opaque == 5 - 2**31


@pytest.mark.parametrize("cut", range(35))
def test_cut_off(cut: int) -> None:
    with pytest.raises(ProtocolError):
        binary_header.decode(binary_header.encode(header(None, {"key": "value"}))[:cut])


@pytest.mark.parametrize(
    "data",
    [
        pack(">HBHiiI", 1, 0, 409, 1, 0, 2**32 - 1),
        pack(">HBHiiI", 1, 0, 409, 1, 0, 2) + b"\xff\xfe" + pack(">I", 0),
        pack(">HBHiiII", 1, 0, 409, 1, 0, 0, 2**32 - 1),
        pack(">HBHiiII", 1, 0, 409, 1, 0, 0, 3) + b"\x00\x03k",
        pack(">HBHiiII", 1, 0, 409, 1, 0, 0, 7) + b"\x00\x01k\x00\x00\x00\x05value",
        pack(">HBHiiII", 1, 0, 409, 1, 0, 0, 12) + b"\x00\x01k\xff\xff\xff\xffvalue",
    ],
)
def test_broken(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        binary_header.decode(data)


def test_through_a_command() -> None:
    command = RemotingCommand(
        34, {"a": "1"}, b"body", remark="r", serialize_type=SerializeType.ROCKETMQ
    )
    data = command.encode()
    assert data[4] == 1
    again = RemotingCommand.decode(data)
    assert (again.ext_fields, again.body, again.remark) == ({"a": "1"}, b"body", "r")
    assert again.serialize_type == SerializeType.ROCKETMQ
    assert again.language is LanguageCode.PYTHON


def test_an_unknown_language_is_other() -> None:
    data = binary_header.encode(header()._replace(language=200))
    frame = pack(">II", 4 + len(data), 1 << 24 | len(data)) + data
    assert RemotingCommand.decode(frame).language is LanguageCode.OTHER
