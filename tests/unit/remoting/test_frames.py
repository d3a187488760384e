"""The frame splitter: limits, faults and buffered bytes."""

from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.limits import FRAME_BYTES_MAX, HEADER_TEXT_BYTES_MAX
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter

GOOD = RemotingCommand.request(1, body=b"x" * 100).encode()


def test_several_frames_and_a_part() -> None:
    splitter = FrameSplitter()
    commands = splitter.feed(GOOD * 3 + GOOD[:50])
    assert len(commands) == 3
    assert splitter.pending_bytes == 50
    assert len(splitter.feed(GOOD[50:] + GOOD)) == 2
    assert splitter.pending_bytes == 0


def test_the_buffer_can_be_reused() -> None:
    splitter = FrameSplitter()
    buffer = bytearray(GOOD + GOOD[:50])
    (command,) = splitter.feed(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    buffer.clear()  # raises BufferError if a memoryview of the buffer is still alive
    assert command.body == b"x" * 100
    (command,) = splitter.feed(GOOD[50:])
    assert command.body == b"x" * 100


def test_commands_before_a_fault_are_kept() -> None:
    splitter = FrameSplitter()
    commands = splitter.feed(GOOD + GOOD + b"\0\0\0\x08\0\0\0\x04null" + GOOD)
    assert len(commands) == 2
    assert isinstance(splitter.fault, ProtocolError)
    assert not splitter.oversize
    with pytest.raises(ProtocolError):
        splitter.feed(GOOD)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_too_short_for_its_own_header_word(length: int) -> None:
    splitter = FrameSplitter()
    assert splitter.feed(pack(">II", length, 0) + bytes(20)) == []
    assert splitter.fault is not None


def test_header_longer_than_the_frame() -> None:
    splitter = FrameSplitter()
    splitter.feed(pack(">II", 100, 97))
    assert "cannot hold a header" in str(splitter.fault)


@pytest.mark.parametrize("length", [FRAME_BYTES_MAX + 1, 2**31 - 1, 2**32 - 1])
def test_an_oversize_frame_is_refused_by_its_length_field(length: int) -> None:
    splitter = FrameSplitter()
    splitter.feed(pack(">II", length, 10))
    assert splitter.oversize
    assert str(length) in str(splitter.fault)


def test_exactly_the_limit_is_fine() -> None:
    splitter = FrameSplitter(len(GOOD) - 4)
    assert len(splitter.feed(GOOD)) == 1
    assert FrameSplitter(len(GOOD) - 5).feed(GOOD) == []


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"])
def test_foreign_protocols_are_refused_by_the_first_bytes(start: bytes) -> None:
    splitter = FrameSplitter()
    assert splitter.feed(start) == []
    assert splitter.fault is not None


def test_a_large_frame_in_small_pieces() -> None:
    body = bytes(range(256)) * 4096
    data = RemotingCommand.request(1, body=body).encode()
    splitter = FrameSplitter()
    commands = []
    for at in range(0, len(data), 1000):
        commands += splitter.feed(data[at : at + 1000])
    assert [command.body for command in commands] == [body]


def test_an_empty_feed_changes_nothing() -> None:
    splitter = FrameSplitter()
    splitter.feed(GOOD[:20])
    assert splitter.feed(b"") == []
    assert len(splitter.feed(GOOD[20:])) == 1


def test_a_long_header_is_refused_by_its_length_field() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(pack(">II", 4_000_000, HEADER_TEXT_BYTES_MAX)) == []
    assert splitter.fault is None
    splitter = FrameSplitter()
    assert splitter.feed(pack(">II", 4_000_000, HEADER_TEXT_BYTES_MAX + 1)) == []
    assert splitter.oversize
    assert f"the limit of {HEADER_TEXT_BYTES_MAX}" in str(splitter.fault)
