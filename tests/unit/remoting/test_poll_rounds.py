"""What one round of the kernel's reads takes: one iteration, with as much as is there by then."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.iteration import IterationEnd
from tests.unit.remoting.peers import Loopback, port_of, request, until

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

#: Rounds to try: one that lasts 2 ms, on a busy machine, does not poll again.
TRIES_MAX = 50


@pytest.fixture
async def polled() -> AsyncIterator[Loopback]:
    async with AsyncExitStack() as stack:
        yield Loopback(stack, is_polled=True)


class _Rounds:
    """Eight connections; `sizes` has the number of requests of each iteration."""

    def __init__(self, body: bytes) -> None:
        self.sizes: list[int] = []
        self._sockets: list[socket.socket] = []
        self._handled = 0
        self._body = body

    async def begin(self, polled: Loopback, again_max: int) -> None:
        """Every connection sends a request; `again_max` of the requests are followed by another."""
        server = await polled.server(
            lambda _, command: self._handle(command, again_max),
            iteration_end=IterationEnd(always=(self._end,)),
        )
        self._sockets = [_connected(port_of(server)) for _ in range(8)]
        await until(lambda: polled.intake.polled_reads.connections == 8)
        for number in range(8):
            self._say(number)

    def _say(self, number: int) -> None:
        data = request(opaque=number, flag=2, body=self._body).encode()
        assert self._sockets[number].send(data) == len(data)

    def _handle(self, command: RemotingCommand, again_max: int) -> None:
        self._handled += 1
        if self._handled <= again_max:
            self._say(command.opaque)

    def _end(self) -> None:
        if self._handled:
            self.sizes.append(self._handled - sum(self.sizes))

    async def end(self, polled: Loopback, requests: int) -> None:
        """Wait for the last request, and close the connections."""
        await until(lambda: sum(self.sizes) == requests)
        for each in self._sockets:
            each.close()
        await until(lambda: polled.intake.polled_reads.connections == 0)


def _connected(port: int) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port))
    peer.setblocking(False)
    return peer


async def test_requests_that_come_during_a_round_join_the_iteration(polled: Loopback) -> None:
    for _ in range(TRIES_MAX):
        rounds = _Rounds(b"")
        await rounds.begin(polled, 4)
        await rounds.end(polled, 12)
        if rounds.sizes[0] == 12:
            return
    pytest.fail("the requests of the second poll are in an iteration of their own")


async def test_a_round_with_ever_more_bytes_ends(polled: Loopback) -> None:
    """Behind 256 KiB the iteration ends, although all connections are readable again."""
    rounds = _Rounds(bytes(30_000))
    await rounds.begin(polled, 1_000)
    await rounds.end(polled, 1_008)
    assert max(rounds.sizes) <= 16
