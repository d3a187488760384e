"""Commands and the JSON header."""

import json
from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting.codes import LanguageCode, RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frame_layout import HEADER_BYTES_MAX
from core_broker.remoting.headers import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader


def frame(header: bytes | str, body: bytes = b"", serialize_type: int = 0) -> bytes:
    header = header.encode() if isinstance(header, str) else header
    word = serialize_type << 24 | len(header)
    return pack(">II", 4 + len(header) + len(body), word) + header + body


def header_of(data: bytes) -> dict[str, object]:
    header: dict[str, object] = json.loads(data[8 : 8 + int.from_bytes(data[4:8], "big")])
    return header


def test_request() -> None:
    header = GetMaxOffsetRequestHeader(topic="T", queue_id=3)
    command = RemotingCommand.request(RequestCode.GET_MAX_OFFSET, header, b"body")
    command.opaque = 7
    data = command.encode()
    assert header_of(data) == {
        "code": 30,
        "flag": 0,
        "language": "PYTHON",
        "opaque": 7,
        "serializeTypeCurrentRPC": "JSON",
        "version": 409,
        "extFields": {"topic": "T", "queueId": "3", "committed": "true"},
    }
    assert data.endswith(b"}body")
    assert data == command.encode_head() + b"body"
    assert not command.is_response
    assert not command.is_oneway


def test_response() -> None:
    command = RemotingCommand.response(1, "why", GetMaxOffsetResponseHeader(offset=-1))
    assert command.is_response
    header = header_of(command.encode())
    assert header["remark"] == "why"
    assert header["extFields"] == {"offset": "-1"}
    assert "extFields" not in header_of(RemotingCommand.response().encode())


def test_ext_fields_can_be_a_dict_and_be_changed() -> None:
    command = RemotingCommand.decode(RemotingCommand.request(1, {"a": "1"}).encode())
    command.ext_fields["Signature"] = "s"
    assert header_of(command.encode())["extFields"] == {"a": "1", "Signature": "s"}
    command.ext_fields = {"b": "2"}
    assert RemotingCommand.decode(command.encode()).ext_fields == {"b": "2"}


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ('"CPP"', LanguageCode.CPP),
        ('"NODE_JS"', LanguageCode.NODE_JS),
        ('"KLINGON"', LanguageCode.OTHER),
        ("9", LanguageCode.GO),
        ("-1", LanguageCode.OTHER),
        ("null", LanguageCode.OTHER),
    ],
)
def test_languages(language: str, expected: LanguageCode) -> None:
    command = RemotingCommand.decode(frame(f'{{"code":1,"language":{language}}}'))
    assert command.language is expected


def test_missing_and_unknown_members() -> None:
    command = RemotingCommand.decode(
        frame('{"code":105,"serializeTypeCurrentRPC":"JSON","new":[{}],"remark":""}\n')
    )
    assert (command.code, command.opaque, command.flag, command.version) == (105, 0, 0, 0)
    assert command.remark is None
    assert command.ext_fields == {}
    assert RemotingCommand.decode(frame('{"code":1,"extFields":null}')).ext_fields == {}


def test_numbers_as_texts() -> None:
    command = RemotingCommand.decode(frame('{"code":"310","opaque":"5","flag":"2"}'))
    assert (command.code, command.opaque, command.is_oneway) == (310, 5, True)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"code":null}',
        '{"code":1.5}',
        '{"code":99999999999}',
        '{"code":1e400}',
        '{"code":1,"opaque":99999999999999999999}',
        '{"code":1,"flag":' + "9" * 5000 + "}",
        '{"code":1,"extFields":' + "[" * 100_000,
        '{"code":1,"x":' + '{"a":' * 100_000,
        '{"code":1}}',
        '{"code":1',
        "{code:1}",
        b'{"code":1,"remark":"\xff\xfe"}',
        '{"code":1,"extFields":{"half of a pair":"\\ud800"}}',
        b"\xef\xbb\xbf",
        b"\x00" * 20,
    ],
)
def test_hostile_headers(header: bytes | str) -> None:
    with pytest.raises(ProtocolError):
        RemotingCommand.decode(frame(header))


def test_duplicate_members_the_last_one_wins() -> None:
    command = RemotingCommand.decode(
        frame('{"code":1,"code":2,"extFields":{"a":"1"},"extFields":{"b":"2","b":"3"}}')
    )
    assert command.code == 2
    assert command.ext_fields == {"b": "3"}


@pytest.mark.parametrize("serialize_type", [2, 0x16, 255])
def test_unknown_serialize_type(serialize_type: int) -> None:
    with pytest.raises(ProtocolError, match="serialize type"):
        RemotingCommand.decode(frame('{"code":1}', serialize_type=serialize_type))


def test_lengths_that_do_not_add_up() -> None:
    good = frame('{"code":1}')
    for data in (b"", good[:7], good + b"x", b"\0\0\0\0" + good[4:], good[:4] + b"\0\0\0\xff"):
        with pytest.raises(ProtocolError):
            RemotingCommand.decode(data)


def test_a_header_too_large_to_send() -> None:
    with pytest.raises(ProtocolError, match="does not fit"):
        RemotingCommand.response(0, "x" * HEADER_BYTES_MAX).encode()


def test_repr_tells_the_kind() -> None:
    assert repr(RemotingCommand.request(1)).startswith("<request code=1")
    assert repr(RemotingCommand.response(0)).startswith("<answer")
    assert repr(RemotingCommand(1, flag=2)).startswith("<oneway")
