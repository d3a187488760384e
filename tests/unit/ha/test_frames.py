"""The frames of replication: bytes of RocketMQ, any chunking, malformed and huge numbers."""

import random
from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.ha.frames import (
    BODY_BYTES_MAX,
    PACKET_HEADER_BYTES,
    Packet,
    PacketSplitter,
    ReportReader,
    encode_packet_header,
    encode_report,
    join_packets,
)

GIB = 1024**3


def encoded(packet: Packet) -> bytes:
    return encode_packet_header(packet.offset, len(packet.body)) + packet.body


def test_the_bytes_of_rocketmq() -> None:
    assert encode_packet_header(GIB, 32768) == bytes.fromhex("000000004000000000008000")
    assert encode_report(GIB) == bytes.fromhex("0000000040000000")


@pytest.mark.parametrize("size", [-1, BODY_BYTES_MAX + 1])
def test_a_body_that_a_java_slave_cannot_receive_is_not_encoded(size: int) -> None:
    with pytest.raises(ValueError, match=str(BODY_BYTES_MAX)):
        encode_packet_header(0, size)


@pytest.mark.parametrize("seed", range(20))
def test_packets_survive_any_chunking(seed: int) -> None:
    dice = random.Random(seed)
    sent = [
        Packet(dice.randrange(2**62), dice.randbytes(dice.choice([0, 1, 100, 32768])))
        for _ in range(40)
    ]
    stream = b"".join(map(encoded, sent))
    splitter, received, at = PacketSplitter(), [], 0
    while at < len(stream):
        size = dice.choice([1, 5, 12, 1000, 100_000])
        received += splitter.feed(stream[at : at + size])
        at += size
    assert received == sent, f"seed {seed}"
    assert splitter.pending_bytes == 0


def test_packets_that_follow_each_other_become_one() -> None:
    heartbeat = Packet(7, b"")
    first, second, apart = Packet(7, b"abc"), Packet(10, b"de"), Packet(20, b"f")
    assert list(join_packets([heartbeat, first, second, Packet(12, b""), apart])) == [
        Packet(7, b"abcde"),
        apart,
    ]
    assert list(join_packets([heartbeat])) == [heartbeat]
    # An offset that comes again, or is left out, stays visible.
    assert list(join_packets([first, first])) == [first, first]
    assert list(join_packets([second, first])) == [second, first]
    assert list(join_packets([])) == []


def test_the_largest_packet_passes() -> None:
    largest = Packet(7, bytes(BODY_BYTES_MAX))
    splitter = PacketSplitter()
    stream = encoded(largest)
    assert splitter.feed(stream[:-1]) == []
    assert splitter.pending_bytes == len(stream) - 1
    assert splitter.feed(stream[-1:]) == [largest]


@pytest.mark.parametrize(
    ("offset", "size"), [(0, BODY_BYTES_MAX + 1), (0, 2**31 - 1), (0, -1), (-1, 0), (-(2**63), 4)]
)
def test_a_malformed_header_ends_the_stream_behind_the_packets_before(
    offset: int, size: int
) -> None:
    splitter = PacketSplitter()
    first = Packet(5, b"abc")
    assert splitter.feed(encoded(first) + pack(">qi", offset, size) + b"rest") == [first]
    assert splitter.fault is not None
    assert splitter.pending_bytes == 0
    with pytest.raises(ProtocolError, match=str(size)):
        splitter.feed(b"more")


def test_the_buffer_of_the_caller_can_be_reused() -> None:
    splitter = PacketSplitter()
    buffer = bytearray(encoded(Packet(1, b"body")) + b"\0")
    (packet,) = splitter.feed(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    buffer.clear()  # raises BufferError if a memoryview of the buffer is still alive
    assert packet == Packet(1, b"body")
    assert splitter.pending_bytes == 1 < PACKET_HEADER_BYTES


@pytest.mark.parametrize("chunk", [1, 3, 8, 9, 1000])
def test_reports_survive_any_chunking(chunk: int) -> None:
    offsets = [0, 1, GIB, 2**63 - 1, 5]
    stream = b"".join(map(encode_report, offsets))
    reader, received = ReportReader(), []
    for at in range(0, len(stream), chunk):
        received += reader.feed(stream[at : at + chunk])
    assert received == offsets


def test_a_negative_report_is_refused() -> None:
    with pytest.raises(ProtocolError, match="-5"):
        ReportReader().feed(encode_report(3) + pack(">q", -5))
