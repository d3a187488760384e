"""Frames between members: every byte that no member sends is refused."""

import asyncio
import random

import msgspec
import pytest

from core_broker.errors import ProtocolError
from core_broker.raft.messages import (
    AppendRequest,
    Heartbeat,
    Message,
    SnapshotChunk,
    VoteRequest,
    encode_messages,
)
from core_broker.raft.model import Entry, EntryKind, Membership, SnapshotMeta
from core_broker.raft_member.frames import (
    FRAME_BYTES_MAX,
    FRAME_MESSAGES_MAX,
    HELLO_BYTES_MAX,
    Hello,
    decode_payload,
    encode_frame,
    encode_hello,
    encode_message,
    read_frame,
    read_hello,
)

ENTRY = Entry(7, 2, EntryKind.NORMAL, b"data")
APPEND = AppendRequest(1, 2, 2, 6, 2, (ENTRY,), 5)
CHUNK = SnapshotChunk(1, 2, 3, SnapshotMeta(9, 2, Membership((1, 2)), 4, 1), 0, b"abcd")


def reader_of(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("message", [APPEND, CHUNK, VoteRequest(1, 2, 3, 4, 3, True)])
async def test_a_message_travels_unchanged(message: Message) -> None:
    payload = await read_frame(reader_of(encode_message(message)), FRAME_BYTES_MAX)
    assert decode_payload(payload, 1, 2) == [message]


async def test_a_hello_travels_unchanged() -> None:
    hello = Hello("ü" * 128, 1, 2)
    assert await read_hello(reader_of(encode_hello(hello))) == hello


async def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    frame = encode_message(APPEND)
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises((ProtocolError, asyncio.IncompleteReadError)):
            await read_frame(reader_of(bytes(damaged)), FRAME_BYTES_MAX)
    for size in range(len(frame)):
        with pytest.raises(asyncio.IncompleteReadError):
            await read_frame(reader_of(frame[:size]), FRAME_BYTES_MAX)


async def test_a_frame_above_the_limit_is_refused_by_its_header() -> None:
    head = encode_frame(b"x" * (HELLO_BYTES_MAX + 1))[:12]
    with pytest.raises(ProtocolError, match="at most"):
        await read_frame(reader_of(head), HELLO_BYTES_MAX)


async def test_random_bytes_are_no_hello() -> None:
    dice = random.Random(1)
    for _ in range(300):
        junk = dice.randbytes(dice.randrange(200))
        for data in (junk, encode_frame(junk)):
            with pytest.raises((ProtocolError, asyncio.IncompleteReadError)):
                await read_hello(reader_of(data))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x91\x81\xa1\xe3\x01",
        msgspec.msgpack.encode([{"type": "Unknown"}]),
        msgspec.msgpack.encode({"type": "Heartbeat"}),
        encode_messages([Heartbeat(1, 2, -1, 0, 0)]),
        encode_messages([Heartbeat(1, 2, 1, (1 << 62), 0)]),
        encode_messages([AppendRequest(1, 2, 2, 6, 2, (Entry(-7, 2, EntryKind.NOOP, b""),), 5)]),
        encode_messages(
            [msgspec.structs.replace(CHUNK, snapshot=SnapshotMeta(-1, 0, Membership()))]
        ),
        encode_messages([Heartbeat(3, 2, 1, 0, 0)]),
        encode_messages([Heartbeat(1, 3, 1, 0, 0)]),
        encode_messages([Heartbeat(1, 2, 1, 0, 0)] * (FRAME_MESSAGES_MAX + 1)),
    ],
)
def test_messages_that_no_member_sends_are_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_payload(payload, 1, 2)


def test_random_changes_of_a_message_are_refused_or_are_messages() -> None:
    dice = random.Random(2)
    for _ in range(2_000):
        payload = bytearray(encode_messages([APPEND, CHUNK]))
        for _ in range(dice.randint(1, 4)):
            payload[dice.randrange(len(payload))] = dice.randrange(256)
        try:
            messages = decode_payload(bytes(payload), 1, 2)
        except ProtocolError:
            continue
        assert all((each.source, each.target) == (1, 2) for each in messages)


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (Hello("other", 2, 1), "belongs to cluster 'other'"),
        (Hello("mine", 3, 1), "is member 3"),
        (Hello("mine", 2, 3), "looks for member 3"),
        (Hello("mine", 2, 1, version=2), "version 2"),
    ],
)
def test_a_hello_of_somebody_else_is_refused(hello: Hello, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        hello.check(Hello("mine", 1, 2))
