"""The same bytes to two brokers, one with the kernel and one without: what must not differ.

Both have the same clock, the same topics and the real connection, so that what a peer is answered
and what lies in the store's folder can be compared byte for byte.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from core_broker.processors.hot_path import HotPath
from core_broker.remoting.connection import Connection
from core_broker.remoting.server import RemotingServer
from core_broker.store.consume_queue import ConsumeQueue
from tests.support.desk import Desk

#: Turns of the loop after which nothing is on its way any more.
TURNS = 4


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_open = True
        self._addresses = {"peername": ("10.1.2.3", port), "sockname": ("127.0.0.1", 10911)}

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._addresses.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """All of it is taken at once."""

    def pause_reading(self) -> None:
        """There is nothing to hold back."""

    def resume_reading(self) -> None:
        """There is nothing to hold back."""


class OnePath:
    """One broker and what its peers are told."""

    def __init__(self, folder: Path, topics: Sequence[tuple[str, int]], **settings: Any) -> None:
        self.desk = Desk(folder, **settings)
        for name, queues in topics:
            self.desk.topic(name, queues)
        turn = self.desk.requests.turn
        self.server = RemotingServer(
            self.desk.requests.dispatch, name="two paths", before_write=turn.end
        )
        self.hot = HotPath(self.desk.ctx, self.desk.requests, self.server)
        self.server.on_resume = self.desk.requests.pulls.resumed
        self.folder = folder / "store"
        self._peers: list[tuple[Connection, Wire]] = []

    def peer(self) -> int:
        """One more connection; returns its number."""
        wire = Wire(40_000 + len(self._peers))
        connection = self.server.connection_class(self.server)
        connection.connection_made(wire)
        self._peers.append((connection, wire))
        return len(self._peers) - 1

    def connection(self, number: int) -> Connection:
        """The connection of a peer."""
        return self._peers[number][0]

    def hear(self, number: int, data: bytes) -> None:
        """Let a peer say something, in as many reads as the buffer makes of it."""
        connection, wire = self._peers[number]
        while data and wire.is_open:
            room = connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            connection.buffer_updated(count)
            data = data[count:]

    def fail_once_at(self, queue_id: int) -> None:
        """Let the kernel fail in the middle of a read, where it first meets a queue."""
        hot: Any = self.hot.sends
        find = hot.queue

        def fail(name: bytes, asked: int) -> ConsumeQueue:
            if asked != queue_id:
                return cast("ConsumeQueue", find(name, asked))
            hot.queue = find
            raise MemoryError

        hot.queue = fail

    async def settle(self) -> list[bytes]:
        """End the turn, let the disk confirm, and return what all peers were told so far."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            for lane in self.desk.lanes:
                lane.run()
        return [bytes(wire.written) for _, wire in self._peers]

    async def close(self) -> dict[str, bytes]:
        """Stop, and return the files of the store."""
        for connection, _ in self._peers:
            connection.connection_lost(None)
        await self.server.close()
        self.desk.close()
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "lock"
        }


Said = Sequence[tuple[int, bytes]]
#: What happens to a broker beside what it hears.
Deed = Callable[[OnePath], None]


async def compare(
    folder: Path, turns: Sequence[Said], topics: Sequence[tuple[str, int]], **settings: Any
) -> int:
    """Let both hear the same, turn by turn; returns how many messages took the hot path.

    Each turn is what peers say, by their numbers. Fails at the first difference.
    """
    # A machine that stands still between the two must not make one of them refuse.
    settings["wait_time_mills_in_send_queue"] = 60_000
    hot = OnePath(folder / "hot", topics, **settings)
    plain = OnePath(folder / "plain", topics, **settings, kernel_enable=False)
    peers = max((number for turn in turns for number, _ in turn), default=0) + 1
    for _ in range(peers):
        hot.peer()
        plain.peer()
    for turn in turns:
        for number, data in turn:
            for path in (hot, plain):
                random.seed(0)  # it picks the queue of messages that do not say one
                path.hear(number, data)
        assert await hot.settle() == await plain.settle()
    stored, wanted = await hot.close(), await plain.close()
    assert stored.keys() == wanted.keys()
    for name, content in wanted.items():
        assert stored[name] == content, (name, stored[name][:600], content[:600])
    assert plain.hot.messages_sent == 0
    return hot.hot.messages_sent


async def compare_pulls(
    folder: Path, turns: Sequence[Said | Deed], topics: Sequence[tuple[str, int]], **settings: Any
) -> int:
    """Do as `compare` does; returns how many messages were pulled on the hot path.

    Compares what is counted and committed, too.
    """
    settings |= {"wait_time_mills_in_send_queue": 60_000, "wait_time_mills_in_pull_queue": 60_000}
    # Notices are numbered through all brokers of a process.
    settings["notify_consumer_ids_changed_enable"] = False
    hot = OnePath(folder / "hot", topics, **settings)
    plain = OnePath(folder / "plain", topics, **settings, kernel_enable=False)
    for path in (hot, plain, hot, plain):
        path.peer()
    for turn in turns:
        if callable(turn):
            turn(hot)
            turn(plain)
            continue
        for number, data in turn:
            for path in (hot, plain):
                random.seed(0)
                path.hear(number, data)
        told, wanted = await hot.settle(), await plain.settle()
        assert told == wanted
    assert _counted(hot) == _counted(plain)
    await hot.close()
    await plain.close()
    assert plain.hot.messages_pulled == 0
    return hot.hot.messages_pulled


def _counted(path: OnePath) -> tuple[object, ...]:
    ctx = path.desk.ctx
    stats = ctx.store.stats()
    totals = ctx.statistics.totals()
    # In milliseconds, most of which are none.
    totals.pop("GROUP_GET_LATENCY", None)
    return (
        totals,
        ctx.statistics.get_total,
        ctx.statistics.get_bytes_total,
        ctx.offsets.encode(),
        stats.get_found_times,
        stats.get_missed_times,
        stats.get_transferred_messages,
        stats.damaged_places,
    )
