"""Decoding and re-encoding of all frames recorded from Java RocketMQ preserve the meaning."""

import json

import pytest

from core_broker.errors import ProtocolError
from core_broker.remoting.codes import LanguageCode, SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.wire.recorded import Recorded, recorded

FRAMES = recorded()


def texts(fields: dict[str, object] | None) -> dict[str, str]:
    """The meaning of ext fields: numbers and booleans as JSON text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (fields or {}).items()
    }


def meaning(command: RemotingCommand) -> tuple[object, ...]:
    return (
        command.code,
        command.flag,
        command.opaque,
        command.version,
        command.language,
        command.remark,
        command.ext_fields,
        command.body,
    )


def test_the_samples_are_complete() -> None:
    assert len(FRAMES) == 262
    assert {frame.source for frame in FRAMES} == {"java-4.9.8", "java-5.3.3"}


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_decodes(frame: Recorded) -> None:
    (command,) = FrameSplitter().feed(frame.frame())

    header = frame.header
    assert command.code == header["code"]
    assert command.opaque == header["opaque"]
    assert command.flag == header["flag"]
    assert command.version == header["version"]
    assert command.language is LanguageCode[header["language"]]
    assert (command.remark or "") == header.get("remark", "")
    assert command.ext_fields == texts(header.get("extFields"))
    assert command.body == (frame.start if frame.body is None else frame.body)
    assert command.is_response == frame.is_answer


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_encodes_again_to_the_same_header(frame: Recorded) -> None:
    command = RemotingCommand.decode(frame.frame())
    encoded = command.encode()

    word = int.from_bytes(encoded[4:8], "big")
    header = json.loads(encoded[8 : 8 + word])
    wanted = {name: value for name, value in frame.header.items() if value not in ("", {})}
    if "extFields" in wanted:
        wanted["extFields"] = texts(wanted["extFields"])
    wanted["serializeTypeCurrentRPC"] = "JSON"  # sent by Java, removed from the samples
    assert header == wanted
    assert b": " not in encoded[8 : 8 + 20], "the Go client needs compact JSON"
    assert encoded[8 + word :] == command.body


@pytest.mark.parametrize("frame", [f for f in FRAMES if f.request_code < 2**16], ids=str)
def test_means_the_same_in_the_binary_encoding(frame: Recorded) -> None:
    command = RemotingCommand.decode(frame.frame())
    # The binary header has the same bytes for an empty and an absent value.
    command.ext_fields = {name: text for name, text in command.ext_fields.items() if text}
    command.serialize_type = SerializeType.ROCKETMQ
    again = RemotingCommand.decode(command.encode())

    assert meaning(again) == meaning(command)
    assert again.serialize_type == SerializeType.ROCKETMQ


def test_split_at_every_byte() -> None:
    stream = b"".join(frame.frame() for frame in FRAMES[:12])
    whole = [meaning(command) for command in FrameSplitter().feed(stream)]
    assert len(whole) == 12
    for cut in range(len(stream) + 1):
        splitter = FrameSplitter()
        commands = splitter.feed(stream[:cut]) + splitter.feed(stream[cut:])
        assert [meaning(command) for command in commands] == whole
        assert splitter.pending_bytes == 0
        assert splitter.fault is None


def test_one_byte_at_a_time() -> None:
    stream = b"".join(frame.frame() for frame in FRAMES)
    splitter = FrameSplitter()
    commands = [command for byte in stream for command in splitter.feed(bytes([byte]))]
    assert [meaning(command) for command in commands] == [
        meaning(RemotingCommand.decode(frame.frame())) for frame in FRAMES
    ]


@pytest.mark.parametrize("frame", FRAMES[:6], ids=str)
def test_a_frame_cut_short_is_no_frame(frame: Recorded) -> None:
    data = frame.frame()
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            RemotingCommand.decode(data[:size])
