"""Slow peers, lost peers and split frames: all paths behave alike."""

import random
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.frames import FrameSplitter
from tests.support.send_frames import common_case_frame
from tests.support.two_paths import OnePath, compare, same

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

TOPICS = (("T", 4), ("U", 2))
LOG_BYTES = 1 << 20
#: A limit that a few answers reach, bytes.
HIGH_WATER_BYTES = 1000


def sends(count: int, first: int = 0) -> bytes:
    return b"".join(common_case_frame(number) for number in range(first, first + count))


async def test_a_peer_that_does_not_read_is_not_read_from(tmp_path: Path) -> None:
    """Other peers go on; the slow peer's requests wait, and are answered in order afterwards."""

    async def play(path: OnePath) -> object:
        slow, other = path.peer(), path.peer()
        seen: list[object] = []
        path.wires[slow].is_stuck = True
        for turn in range(6):
            path.hear(slow, sends(5, 100 * turn))
            path.hear(other, sends(2, 1000 + 100 * turn))
            seen.append(await path.settle())
            seen.append(path.wires[slow].is_read)
        path.wires[slow].loosen()
        seen += [await path.settle() for _ in range(10)]
        said = FrameSplitter().feed(path.told[slow])
        assert [each.opaque for each in said] == [
            100 * turn + number for turn in range(6) for number in range(5)
        ]
        return seen

    limits = Limits(write_high_water_bytes=HIGH_WATER_BYTES)
    assert (await same(tmp_path, play, TOPICS, limits=limits)).messages_sent > 12


async def test_more_answers_in_one_read_than_the_buffer_limit(tmp_path: Path) -> None:
    async def play(path: OnePath) -> object:
        path.peer()
        path.hear(0, sends(40))
        seen = [await path.settle() for _ in range(12)]
        assert [each.opaque for each in FrameSplitter().feed(path.told[0])] == list(range(40))
        return seen

    limits = Limits(write_high_water_bytes=HIGH_WATER_BYTES)
    await same(tmp_path, play, TOPICS, limits=limits)


async def test_a_peer_that_never_reads_is_cut_off(tmp_path: Path) -> None:
    """The peer's messages stay stored, although the peer got no answer."""

    async def play(path: OnePath) -> object:
        slow, other = path.peer(), path.peer()
        path.wires[slow].is_stuck = True
        path.hear(slow, sends(10))
        path.hear(other, sends(2, 100))
        told = await path.settle()
        assert not path.wires[slow].is_open
        assert path.wires[other].is_open
        return told, path.server.counters

    limits = Limits(write_high_water_bytes=HIGH_WATER_BYTES, write_bytes_max=HIGH_WATER_BYTES)
    await same(tmp_path, play, TOPICS, limits=limits)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_a_peer_lost_in_the_middle_of_an_iteration(tmp_path: Path, flush: str) -> None:
    """Earlier sends of the peer are stored; other peers are answered."""

    async def play(path: OnePath) -> object:
        for _ in range(3):
            path.peer()
        path.hear(0, sends(3))
        path.hear(1, sends(3, 10))
        path.lose(0)
        path.hear(2, sends(3, 20))
        told = await path.settle()
        path.hear(1, sends(2, 30))
        path.lose(1)
        told += await path.settle()
        path.hear(2, sends(2, 40))
        return told, await path.settle(), len(await path.broker.messages("T", 0))

    fast = await same(tmp_path, play, TOPICS, flush_disk_type=flush)
    assert fast.messages_sent == 13


async def test_a_peer_is_answered_after_its_end_of_file(tmp_path: Path) -> None:
    async def play(path: OnePath) -> object:
        path.peer()
        path.hear(0, sends(3))
        path.wires[0].connection.eof_received()
        path.hear(0, sends(3, 10))
        told = await path.settle()
        assert [each.opaque for each in FrameSplitter().feed(told[0])] == [0, 1, 2]
        return told

    assert (await same(tmp_path, play, TOPICS)).messages_sent == 3


@pytest.mark.parametrize("seed", range(2))
async def test_frames_of_all_peers_cut_everywhere(tmp_path: Path, seed: int) -> None:
    """Three streams in pieces of any length, interleaved."""
    rng = random.Random(seed)
    streams = []
    for peer in range(3):
        frames = [
            common_case_frame(100 * peer + n, rng.randbytes(rng.randrange(700)), **slow_path_fields)
            for n in range(25)
            for slow_path_fields in [{"j": "1"} if rng.random() < 0.2 else {}]
        ]
        streams.append(b"".join(frames))
    turns = []
    while any(streams):
        turn = []
        for _ in range(4):
            peer = rng.randrange(3)
            count = rng.choice([1, 3, 4, 7, 8, 9, 100, 1500])
            turn.append((peer, streams[peer][:count]))
            streams[peer] = streams[peer][count:]
        turns.append(turn)
    fast = await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=LOG_BYTES)
    assert fast > 40


async def test_every_cut_of_two_frames(tmp_path: Path) -> None:
    stream = common_case_frame(0) + common_case_frame(1, j="1")
    turns = []
    for cut in range(0, len(stream) + 1, 5):
        turns += [[(0, stream[:cut])], [(0, stream[cut:])]]
    fast = await compare(tmp_path, turns, TOPICS, mapped_file_size_commit_log=LOG_BYTES)
    assert fast >= len(turns) // 2


@pytest.mark.parametrize("tail", [b"\0\0\0\1xxxx", b"\xff" * 9, b"GET / HTTP/1.1\r\n\r\n" * 20])
async def test_bytes_that_are_not_the_protocol(tmp_path: Path, tail: bytes) -> None:
    """Earlier requests are answered, then the connection is closed."""

    async def play(path: OnePath) -> object:
        path.peer()
        path.peer()
        path.hear(0, sends(2) + tail)
        path.hear(1, sends(2, 10))
        told = await path.settle()
        assert [wire.is_open for wire in path.wires] == [False, True]
        return told, path.server.counters

    assert (await same(tmp_path, play, TOPICS)).messages_sent == 4


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_more_requests_in_flight_than_one_peer_may_have(tmp_path: Path, flush: str) -> None:
    limits = Limits(in_flight_max=5)

    async def play(path: OnePath) -> object:
        path.peer()
        path.peer()
        path.hear(0, sends(9))
        path.hear(1, sends(3, 20))
        path.hear(0, sends(2, 40))
        return await path.settle(), path.server.counters

    await same(tmp_path, play, TOPICS, limits=limits, flush_disk_type=flush)
