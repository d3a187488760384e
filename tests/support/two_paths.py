"""Equal bytes to two brokers, one with the fast path and one with the slow path alone.

Both brokers have equal clocks and topics and real connections, so that answers and store files can
be compared byte for byte.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core_broker.auth.gate import Gate
from core_broker.broker.assembly import broker_server, compiled_fast_path
from core_broker.fastpath import has_kernel
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.state.statistics import GROUP_GET_LATENCY
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Files
from tests.support.broker_harness import BrokerHarness

if TYPE_CHECKING:  # needs the kernel
    from core_broker.fastpath.sends import FastSends

#: Iterations of the event loop after which no answer is under way.
TURNS = 8
#: The paths that this machine has; "slow" is the slow path alone.
PATHS = ["compiled", "slow"] if has_kernel() else ["slow"]
#: A budget that no iteration of a test uses up, seconds.
UNLIMITED_S = 3600.0
#: What a failing test shows of two files.
SHOWN_BYTES = 600


class Wire(asyncio.Transport):
    """A transport to a peer that keeps what it reads, and reads nothing while it is `stuck`."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_open = True
        self.is_stuck = False
        self.is_read = True
        #: What the peer has said and the broker has not read.
        self.unread = b""
        #: The protocol that asyncio would call, and the connection behind it.
        self.protocol: asyncio.BufferedProtocol
        self.connection: Connection
        self._unsent = bytearray()
        self._is_full = False
        self._high = 0
        self._addresses = {"peername": ("10.1.2.3", port), "sockname": ("127.0.0.1", 10911)}

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._addresses.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_open:
            self._unsent += data
            self._send()

    def _send(self) -> None:
        if not self.is_stuck:
            self.written += self._unsent
            self._unsent.clear()
        is_full = len(self._unsent) > self._high
        if is_full and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()
        elif self._is_full and not self._unsent:
            self._is_full = False
            self.protocol.resume_writing()

    def loosen(self) -> None:
        """The peer reads again."""
        self.is_stuck = False
        self._send()

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    abort = close

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or 0

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True
        asyncio.get_running_loop().call_soon(self.read)

    def read(self) -> None:
        """Let the broker read what it wants of what the peer has said."""
        while self.unread and self.is_open and self.is_read:
            room = memoryview(self.protocol.get_buffer(-1))
            count = min(len(room), len(self.unread))
            room[:count] = self.unread[:count]
            self.unread = self.unread[count:]
            self.protocol.buffer_updated(count)


class OnePath:
    """One broker and what its peers are told."""

    def __init__(
        self,
        folder: Path,
        topics: Sequence[tuple[str, int]],
        *,
        path: str = PATHS[0],
        limits: Limits | None = None,
        files: Files | None = None,
        gate: Gate | None = None,
        **settings: Any,
    ) -> None:
        self.broker = BrokerHarness(folder, files, gate, **settings)
        for name, queues in topics:
            self.broker.topic(name, queues)
        ctx, requests = self.broker.ctx, self.broker.requests
        self.compiled = compiled_fast_path(ctx, requests) if path == "compiled" else None
        # A machine that stands still must not move requests of one path to a later iteration.
        limits = replace(limits or Limits(), iteration_budget_s=UNLIMITED_S)
        self.server = broker_server(ctx, requests, self.compiled, limits)
        self.folder = folder / "store"
        self.wires: list[Wire] = []

    @property
    def sends(self) -> "FastSends":
        """The sends of the fast path."""
        assert self.compiled is not None, "access control closes the fast path"
        return self.compiled.sends

    @property
    def messages_sent(self) -> int:
        """Messages that the fast path has taken."""
        return 0 if self.compiled is None else self.compiled.sends.messages

    @property
    def messages_pulled(self) -> int:
        """Messages that the compiled fast path has returned."""
        return 0 if self.compiled is None else self.compiled.pulls.taker.messages

    @property
    def pulls_missed(self) -> int:
        """Pulls without a message that the compiled fast path has taken."""
        return 0 if self.compiled is None else self.compiled.pulls.taker.missed

    @property
    def heartbeats_taken(self) -> int:
        """Heartbeats that the compiled fast path has answered."""
        return 0 if self.compiled is None else self.compiled.heartbeats.taker.heartbeats

    def peer(self) -> int:
        """One more connection; returns its number."""
        wire = Wire(40_000 + len(self.wires))
        wire.protocol = cast("asyncio.BufferedProtocol", self.server.accept())
        wire.connection = getattr(wire.protocol, "connection", wire.protocol)
        wire.protocol.connection_made(wire)
        self.wires.append(wire)
        return len(self.wires) - 1

    def connection(self, number: int) -> Connection:
        """The connection of a peer."""
        return self.wires[number].connection

    def hear(self, number: int, data: bytes) -> None:
        """Let a peer say something, in as many reads as the buffer makes of it."""
        random.seed(0)  # it picks the queue of messages that do not say one
        self.wires[number].unread += data
        self.wires[number].read()

    def lose(self, number: int) -> None:
        """A connection is gone."""
        self.wires[number].is_open = False
        self.wires[number].protocol.connection_lost(None)

    def fail_once_at(self, queue_id: int) -> None:
        """Let the kernel fail in the middle of a read, where it first meets a queue."""
        sends: Any = self.sends
        find = sends.queue

        def fail(name: bytes, asked: int) -> ConsumeQueue:
            if asked != queue_id:
                return cast("ConsumeQueue", find(name, asked))
            sends.queue = find
            raise MemoryError

        sends.queue = fail

    async def settle(self) -> list[bytes]:
        """End the turn, let the disk confirm, and return what all peers were told so far."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            for executor in self.broker.executors:
                executor.run()
        return self.told

    @property
    def told(self) -> list[bytes]:
        """What all peers were told so far."""
        return [bytes(wire.written) for wire in self.wires]

    def counted(self) -> tuple[object, ...]:
        """What is counted and committed, but for how long things took."""
        ctx = self.broker.ctx
        stats = ctx.store.stats()
        totals = ctx.statistics.totals()
        totals.pop(GROUP_GET_LATENCY, None)
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

    async def close(self) -> dict[str, bytes]:
        """Stop, and return the files of the store."""
        for wire in self.wires:
            if not wire.connection.closed:
                wire.protocol.connection_lost(None)
        await self.server.close()
        self.broker.close()
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "lock"
        }


#: Bytes that peers send, by the number of the peer.
Said = Sequence[tuple[int, bytes]]
#: A change of a broker that no peer requests.
Deed = Callable[[OnePath], None]
#: A whole test on one path; returns the values to compare with the other path.
Play = Callable[[OnePath], Awaitable[object]]


async def same(
    folder: Path,
    play: Play,
    topics: Sequence[tuple[str, int]],
    *,
    limits: Limits | None = None,
    gate: Callable[[], Gate | None] = lambda: None,
    **settings: Any,
) -> OnePath:
    """Let the same happen to both; returns the broker with the fast path and its counters.

    Needs the kernel.
    Fails when the play, the answers, what is counted and committed, or the files are not the same.
    """
    # A machine that stands still between the two must not make one of them refuse.
    settings |= {"wait_time_mills_in_send_queue": 60_000, "wait_time_mills_in_pull_queue": 60_000}
    # Notices are numbered through all brokers of a process.
    settings["notify_consumer_ids_changed_enable"] = False
    fast = OnePath(folder / "fast", topics, limits=limits, gate=gate(), **settings)
    slow = OnePath(folder / "slow", topics, path="slow", limits=limits, gate=gate(), **settings)
    assert await play(fast) == await play(slow)
    assert fast.told == slow.told
    assert fast.counted() == slow.counted()
    stored, wanted = await fast.close(), await slow.close()
    assert stored.keys() == wanted.keys()
    for name, content in wanted.items():
        assert stored[name] == content, (name, stored[name][:SHOWN_BYTES], content[:SHOWN_BYTES])
    return fast


def played(turns: Sequence[Said | Deed], peers: int) -> Play:
    """A play of requests and other events, by the peers 0 to `peers` - 1."""

    async def play(path: OnePath) -> list[list[bytes]]:
        for _ in range(peers):
            path.peer()
        told = []
        for turn in turns:
            if callable(turn):
                turn(path)
                continue
            for number, data in turn:
                path.hear(number, data)
            told.append(await path.settle())
        return told

    return play


async def compare(
    folder: Path, turns: Sequence[Said], topics: Sequence[tuple[str, int]], **settings: Any
) -> int:
    """Let both receive equal bytes; returns the number of messages that a fast path took."""
    peers = max((number for turn in turns for number, _ in turn), default=0) + 1
    return (await same(folder, played(turns, peers), topics, **settings)).messages_sent


async def compare_pulls(
    folder: Path, turns: Sequence[Said | Deed], topics: Sequence[tuple[str, int]], **settings: Any
) -> int:
    """Let the same happen to both; returns the messages pulled on the compiled fast path."""
    return (await same(folder, played(turns, 2), topics, **settings)).messages_pulled
