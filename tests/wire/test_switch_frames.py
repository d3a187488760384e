"""Frames between brokers under a controller: RocketMQ's bytes, any chunking, hostile numbers."""

import random
from struct import pack

import pytest

from core_broker.errors import ProtocolError
from core_broker.ha.switch_frames import (
    BODY_BYTES_MAX,
    EPOCHS_SENT_MAX,
    TRANSFER_BYTES,
    MasterHandshake,
    MasterSplitter,
    Report,
    SlaveHandshake,
    SlaveReader,
    Transfer,
    encode_master_handshake,
    encode_report,
    encode_slave_handshake,
    encode_transfer_header,
)

EPOCHS = [(1, 0), (2, 4096), (5, 1_000_000)]
HANDSHAKE = bytes.fromhex(
    "0000000100000024000000000010000000000005"
    "000000010000000000000000"
    "000000020000000000001000"
    "0000000500000000000f4240"
)


def test_the_bytes_of_rocketmq() -> None:
    slave = bytes.fromhex("00000001000000000000000000000002")
    assert encode_slave_handshake(SlaveHandshake(2)) == slave
    flags = bytes.fromhex("00000001000100010000000000000003")
    assert encode_slave_handshake(SlaveHandshake(3, True, True)) == flags
    assert encode_report(4096) == bytes.fromhex("000000020000000000001000")
    assert encode_master_handshake(1_048_576, EPOCHS) == HANDSHAKE
    header = bytes.fromhex(
        "00000002000000050000000000001000000000020000000000000fff0000000000000800"
    )
    assert encode_transfer_header(4096, 5, (2, 4095), 2048) == header
    assert len(header) == TRANSFER_BYTES == 36


@pytest.mark.parametrize("size", [-1, BODY_BYTES_MAX + 1])
def test_a_body_that_a_java_slave_cannot_receive_is_not_encoded(size: int) -> None:
    with pytest.raises(ValueError, match=str(BODY_BYTES_MAX)):
        encode_transfer_header(0, size, (1, 0), 0)


def test_only_the_newest_epochs_fit_into_a_handshake() -> None:
    epochs = [(number, number * 10) for number in range(EPOCHS_SENT_MAX + 3)]
    (frame,) = MasterSplitter().feed(encode_master_handshake(7, epochs))
    assert frame == MasterHandshake(7, epochs[3:])


def test_a_master_without_epochs() -> None:
    assert MasterSplitter().feed(encode_master_handshake(7, [])) == [MasterHandshake(7, [])]


@pytest.mark.parametrize("seed", range(20))
def test_frames_of_a_master_survive_any_chunking(seed: int) -> None:
    dice = random.Random(seed)
    sent: list[MasterHandshake | Transfer] = [MasterHandshake(1_048_576, EPOCHS)]
    stream = HANDSHAKE
    for _ in range(30):
        body = dice.randbytes(dice.choice((0, 1, 100, 32_768)))
        numbers = [dice.randrange(2**40) for _ in range(4)]
        sent.append(Transfer(numbers[0], 7, numbers[1], numbers[2], body))
        stream += encode_transfer_header(numbers[0], len(body), (7, numbers[1]), numbers[2]) + body
    splitter, received, at = MasterSplitter(), [], 0
    while at < len(stream):
        size = dice.choice((1, 5, 36, 1000, 100_000))
        received += splitter.feed(stream[at : at + size])
        at += size
    assert received == sent
    assert splitter.pending_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_frames_of_a_slave_survive_any_chunking(seed: int) -> None:
    dice = random.Random(seed)
    sent: list[SlaveHandshake | Report] = [SlaveHandshake(3, is_learner=True)]
    sent += [Report(dice.randrange(2**62)) for _ in range(30)]
    stream = encode_slave_handshake(SlaveHandshake(3, is_learner=True))
    stream += b"".join(encode_report(each.offset) for each in sent if isinstance(each, Report))
    reader, received, at = SlaveReader(), [], 0
    while at < len(stream):
        size = dice.choice((1, 3, 11, 12, 16, 50))
        received += reader.feed(stream[at : at + size])
        at += size
    assert received == sent


@pytest.mark.parametrize(
    "data",
    [
        pack(">iiqi", 0, 0, 0, 0),
        pack(">iiqi", 3, 0, 0, 0),
        pack(">iiqi", -1, 0, 0, 0),
        pack(">iiqi", 1, -12, 0, 0),
        pack(">iiqi", 1, 13, 0, 0),
        pack(">iiqi", 1, 12 * (EPOCHS_SENT_MAX + 1), 0, 0),
        pack(">iiqi", 1, 0, -1, 0),
        pack(">iiqiqq", 2, -1, 0, 0, 0, 0),
        pack(">iiqiqq", 2, BODY_BYTES_MAX + 1, 0, 0, 0, 0),
        pack(">iiqiqq", 2, 2**31 - 1, 0, 0, 0, 0),
        pack(">iiqiqq", 2, 0, -1, 0, 0, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_malformed_frame_of_a_master_ends_the_stream(data: bytes) -> None:
    splitter = MasterSplitter()
    with pytest.raises(ProtocolError):
        splitter.feed(HANDSHAKE + data)
    with pytest.raises(ProtocolError):
        splitter.feed(HANDSHAKE)
    assert splitter.pending_bytes == 0


@pytest.mark.parametrize(
    "data",
    [
        pack(">iq", 0, 0),
        pack(">iq", 3, 0),
        pack(">iq", 2, -1),
        pack(">ihhq", 1, 0, 0, -1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_malformed_frame_of_a_slave_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        SlaveReader().feed(data)
