"""Answers of busy iterations: whole, in order, to the right peer.

Pulls are answered at once, straight from the mapped log. An answer behind another answer of the
same read waits for the end of the iteration, and the writer thread sends both.
"""

import asyncio
import random
import socket
import struct
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.message.record_layout import BLANK_MAGIC
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from core_broker.remoting.headers import UpdateConsumerOffsetRequestHeader
from tests.support.eventually import eventually
from tests.support.two_paths import OnePath
from tests.unit.kernel.test_pulls_same_on_all_paths import command, pulled, sent

if has_kernel():
    from core_broker.fastpath import writer_thread

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")
each_way = pytest.mark.parametrize("is_lent", [False, True], ids=["at once", "by the thread"])

PEERS = 8
MESSAGES = 400
BODY_REPEATS = 400
WITHIN_S = 60
#: Opaque of commits.
COMMIT = 100_000


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the thread on any machine."""
    monkeypatch.setattr(writer_thread, "_processors", lambda: 2)


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[OnePath]:
    """A broker that listens, with messages in one queue."""
    path = OnePath(tmp_path, (("T", 2),), notify_consumer_ids_changed_enable=False)
    path.peer()
    for number in range(MESSAGES):
        path.hear(0, sent(number, size=BODY_REPEATS))
        if number % 50 == 0:
            await path.settle()
    path.hear(0, pulled())
    await path.settle()
    yield path
    await path.close()
    assert not [each for each in threading.enumerate() if each.name == "answers"]


async def connected(path: OnePath) -> list[socket.socket]:
    port = await path.server.listen("127.0.0.1", 0)
    peers = []
    for _ in range(PEERS):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", port))
        peer.setblocking(False)
        peers.append(peer)
    await eventually(lambda: len(path.server.connections) >= PEERS, WITHIN_S)
    return peers


async def answers(peer: socket.socket, count: int) -> list[RemotingCommand]:
    """The next answers to one peer."""
    loop, splitter = asyncio.get_running_loop(), FrameSplitter()
    told: list[RemotingCommand] = []
    while len(told) < count:
        data = await asyncio.wait_for(loop.sock_recv(peer, 1 << 16), WITHIN_S)
        assert data, "the broker closed the connection"
        told += splitter.feed(data)
    return told


def commit() -> bytes:
    """A commit; a pull behind the commit of one read is not answered at once."""
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group="CG", topic="T", queue_id=0, commit_offset=1
    )
    return command(RequestCode.UPDATE_CONSUMER_OFFSET, header, opaque=COMMIT)


def asked(offsets: list[int], *, is_lent: bool) -> bytes:
    """Pulls of 32 messages from each offset on."""
    pulls = [pulled(each, opaque=each, max_msg_nums=32) for each in offsets]
    return b"".join([commit()] * is_lent + pulls)


async def pages_told(peer: socket.socket, count: int, *, is_lent: bool) -> list[RemotingCommand]:
    """The next answers to `count` reads with one pull each."""
    told = await answers(peer, count * (1 + is_lent))
    return [each for each in told if each.opaque != COMMIT]


def check_way(path: OnePath, *, is_lent: bool) -> None:
    """Answers were sent this way; the rest of an answer is sent by the thread both ways."""
    compiled = path.compiled
    assert compiled is not None
    assert compiled.writer_thread.batches if is_lent else compiled.pulls.taker.sent_at_once


def pages_of(path: OnePath) -> list[bytes]:
    """Records of a pull of 32 messages from each offset on, read from the log's files."""
    log = b"".join(each.read_bytes() for each in sorted((path.folder / "commitlog").iterdir()))
    found: list[bytes] = []
    at = 0
    while len(found) < MESSAGES:
        size, magic = struct.unpack_from(">iI", log, at)
        if magic != BLANK_MAGIC:
            found.append(log[at : at + size])
        at += size
    return [b"".join(found[first : first + 32]) for first in range(MESSAGES - 32)]


@each_way
async def test_every_peer_gets_its_own_answers_in_order(path: OnePath, is_lent: bool) -> None:
    peers, pages = await connected(path), pages_of(path)
    rng = random.Random(5)
    loop = asyncio.get_running_loop()
    for turn in range(30):
        wanted = {
            peer: [rng.randrange(MESSAGES - 32) for _ in range(1 + turn % 3)] for peer in peers
        }
        for peer, offsets in wanted.items():
            await loop.sock_sendall(peer, asked(offsets, is_lent=is_lent))
        for peer, offsets in wanted.items():
            told = (await answers(peer, len(offsets) + is_lent))[is_lent:]
            assert [each.opaque for each in told] == offsets
            assert [each.body for each in told] == [pages[each] for each in offsets]
    check_way(path, is_lent=is_lent)
    for peer in peers:
        peer.close()


def shorten_buffers(path: OnePath, peers: list[socket.socket]) -> None:
    """Shrink the socket send buffers below the size of an answer."""
    ports = {peer.getsockname()[1] for peer in peers}
    for connection in path.server.connections:
        if connection.peer_port in ports:
            wire = connection._transport.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


@each_way
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
async def test_the_rest_of_an_answer_needs_no_other_traffic(
    path: OnePath, rounds: int, is_lent: bool
) -> None:
    """The kernel of the operating system may accept only a part of the last batch."""
    peers, page = await connected(path), pages_of(path)[0]
    shorten_buffers(path, peers)
    for _ in range(rounds):
        for peer in peers:
            await asyncio.get_running_loop().sock_sendall(peer, asked([0], is_lent=is_lent))
        for _ in range(3):
            await asyncio.sleep(0)
    told = await asyncio.gather(*(pages_told(peer, rounds, is_lent=is_lent) for peer in peers))
    assert [each.body for whole in told for each in whole] == [page] * PEERS * rounds
    for peer in peers:
        peer.close()


@each_way
async def test_a_slow_reader_gets_all_answers(path: OnePath, is_lent: bool) -> None:
    """More bytes than one send() accepts: the transport sends the rest, then later bytes."""
    peers = await connected(path)
    shorten_buffers(path, peers)
    loop = asyncio.get_running_loop()
    offsets = [number % (MESSAGES - 32) for number in range(60)]
    for offset in offsets:
        for peer in peers:
            await loop.sock_sendall(peer, asked([offset], is_lent=is_lent))
        for _ in range(3):
            await asyncio.sleep(0)
    await eventually(lambda: any(each.unsent_bytes for each in path.server.connections), WITHIN_S)
    count = len(offsets)
    told = await asyncio.gather(*(pages_told(peer, count, is_lent=is_lent) for peer in peers))
    pages = pages_of(path)
    expected = [pages[each] for each in offsets]
    for each in told:
        assert [answer.opaque for answer in each] == offsets
        assert [answer.body for answer in each] == expected
    for peer in peers:
        peer.close()


@each_way
@pytest.mark.parametrize("how", ["reset", "aborted", "closed"])
async def test_peers_that_close_meanwhile(path: OnePath, how: str, is_lent: bool) -> None:
    """Sockets are closed behind the sent bytes; other peers are not affected."""
    loop, pages = asyncio.get_running_loop(), pages_of(path)
    for turn in range(20):
        peers = await connected(path)
        staying, going = peers[:2], peers[2:]
        for peer in peers:
            await loop.sock_sendall(peer, asked([turn], is_lent=is_lent))
        for _ in range(turn % 4):
            await asyncio.sleep(0)
        if how == "reset":
            for peer in going:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()
        else:
            ports = {peer.getsockname()[1] for peer in going}
            for connection in list(path.server.connections):
                if connection.peer_port in ports:
                    connection.abort("a test") if how == "aborted" else connection.close("a test")
        for peer in staying:
            assert (await pages_told(peer, 1, is_lent=is_lent))[0].body == pages[turn]
        for peer in peers:
            peer.close()
        await eventually(lambda: len(path.server.connections) <= 1, WITHIN_S)
    check_way(path, is_lent=is_lent)


async def test_answers_are_equal_both_ways(path: OnePath) -> None:
    (peer, *others), loop = await connected(path), asyncio.get_running_loop()
    frames = []
    for is_lent in (False, True):
        await loop.sock_sendall(peer, asked([7], is_lent=is_lent))
        (told,) = await pages_told(peer, 1, is_lent=is_lent)
        frames.append(told.encode())
    assert frames[0] == frames[1]
    for each in (peer, *others):
        each.close()


async def test_a_read_with_many_pulls_sends_a_bounded_part_at_once(path: OnePath) -> None:
    assert path.compiled is not None
    port = await path.server.listen("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as peer:
        await eventually(lambda: path.server.connections, WITHIN_S)
        (connection,) = path.server.connections
        at_once_max = connection.limits.write_high_water_bytes // len(pages_of(path)[0]) + 1
        in_all = 3 * at_once_max
        before = path.compiled.pulls.taker.sent_at_once
        # The loop reads all pulls together: `sendall` holds the loop until the last one is sent.
        peer.sendall(asked([0] * in_all, is_lent=False))
        peer.setblocking(False)
        told = await answers(peer, in_all)
    assert [each.opaque for each in told] == [0] * in_all
    assert 0 < path.compiled.pulls.taker.sent_at_once - before <= at_once_max


def test_one_processor_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one processor the writer thread would compete with the event loop."""
    monkeypatch.setattr(writer_thread, "_processors", lambda: 1)
    writing = writer_thread.WriterThread(None)
    writing.start()
    assert not [each for each in threading.enumerate() if each.name == "answers"]
    writing.stop()
    assert writing.batches == 0


def test_the_processors_this_process_may_use() -> None:
    assert writer_thread._processors() >= 1
