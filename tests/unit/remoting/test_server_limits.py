"""The remoting server against hostile and slow peers: every limit, and the peers it affects."""

import asyncio

import pytest

from core_broker.errors import ConnectionClosed
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.codes import ResponseCode, SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import BUSY_REMARK, Connection
from core_broker.remoting.endpoint import Limits
from tests.unit.remoting.peers import (
    Holder,
    Loopback,
    echo,
    peer_port,
    request,
    until,
)

MALFORMED = b"\0\0\0\x08\0\0\0\x04null"
OVERSIZE = (FRAME_BYTES_MAX + 1).to_bytes(4, "big") + bytes(4)


async def test_requests_in_flight_are_limited(loopback: Loopback) -> None:
    holder = Holder()
    server = await loopback.server(holder, limits=Limits(in_flight_max=2))
    peer, other = await loopback.peer(server), await loopback.peer(server)
    await peer.send(*(request(opaque=at) for at in range(3)))
    refused = await peer.receive()
    assert (refused.opaque, refused.code) == (2, ResponseCode.SYSTEM_BUSY)
    assert refused.remark == BUSY_REMARK
    assert server.counters.busy == 1

    holder.answer()
    assert (await peer.receive()).opaque == 0
    await peer.send(request(opaque=4))
    await other.send(request(opaque=5))
    await until(lambda: len(holder.held) == 3)
    assert server.counters.busy == 1


@pytest.mark.parametrize("bad", [MALFORMED, OVERSIZE, b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_malformed_frame_closes_only_its_connection(loopback: Loopback, bad: bytes) -> None:
    server = await loopback.server(echo)
    good, hostile = await loopback.peer(server), await loopback.peer(server)
    await hostile.send(request(opaque=1, body=b"before"), bad)
    assert (await hostile.receive()).body == b"before"
    assert await hostile.at_end() == b""

    assert server.counters.malformed + server.counters.oversize == 1
    assert server.counters.oversize == (0 if bad is MALFORMED else 1)
    await good.send(request(body=b"fine"))
    assert (await good.receive()).body == b"fine"


async def test_unfinished_frames_of_all_peers_together_are_limited(loopback: Loopback) -> None:
    server = await loopback.server(echo, limits=Limits(unfinished_bytes_max=220_000))
    half = request(body=bytes(200_000)).encode()[:100_000]
    patient, late = await loopback.peer(server), await loopback.peer(server)
    await patient.send(half)
    await until(lambda: server.unfinished_bytes == len(half))
    await late.send(request(body=bytes(200_000)).encode()[:150_000])
    assert await late.at_end() == b""
    assert server.counters.unfinished == 1
    assert server.unfinished_bytes == len(half)

    await patient.send(request(body=bytes(200_000)).encode()[100_000:])
    assert len((await patient.receive()).body) == 200_000
    assert server.unfinished_bytes == 0
    await patient.send(half)
    await patient.close()
    await until(lambda: not server.connections)
    assert server.unfinished_bytes == 0


async def test_an_unencodable_remark_is_answered_as_an_error(loopback: Loopback) -> None:
    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(0, "half of a pair: \ud800")

    peer = await loopback.peer(await loopback.server(dispatch))
    for kind in SerializeType:
        sent = request()
        sent.serialize_type = kind
        await peer.send(sent)
        answer = await peer.receive()
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "surrogates not allowed" in (answer.remark or "")


async def test_bytes_that_arrive_one_by_one(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    peer = await loopback.peer(server)
    for byte in request(body=b"slow").encode():
        await peer.send(bytes([byte]))
    assert (await peer.receive()).body == b"slow"


async def test_a_large_body_comes_through(loopback: Loopback) -> None:
    body = bytes(range(256)) * 16_384
    peer = await loopback.peer(await loopback.server(echo))
    sending = asyncio.create_task(peer.send(request(body=body)))
    assert (await peer.receive()).body == body
    await sending


async def test_requests_of_a_peer_that_does_not_read_wait(loopback: Loopback) -> None:
    answer = bytes(100_000)
    served = 0

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        nonlocal served
        served += 1
        return RemotingCommand.response(body=answer)

    high_water = 200_000
    server = await loopback.server(dispatch, limits=Limits(write_high_water_bytes=high_water))
    peer = await loopback.peer(server, receive_buffer=65_536)
    other = await loopback.peer(server)
    count = 400
    await peer.send(*(request(opaque=at) for at in range(count)))
    await until(lambda: served > 0)
    await other.send(request())
    await other.receive()  # the first peer's event-loop iteration is over

    connection = next(each for each in server.connections if each.peer_port == peer_port(peer))
    unsent = connection._transport.get_write_buffer_size() + connection.state.out_bytes
    assert unsent <= high_water + 2 * len(answer)
    assert served < count
    opaques = [(await peer.receive()).opaque for _ in range(count)]
    assert opaques == list(range(count))
    assert served == count + 1
    assert not connection.closed


async def test_a_peer_that_never_reads_is_aborted(loopback: Loopback) -> None:
    holder = Holder()
    lost: list[Connection] = []
    limits = Limits(write_high_water_bytes=100_000, write_bytes_max=1_000_000)
    server = await loopback.server(holder, limits=limits, on_close=lost.append)
    peer = await loopback.peer(server, receive_buffer=65_536)
    await peer.send(request())
    await until(lambda: holder.held)
    connection = holder.held[0][0]

    async def tell_much() -> None:
        for _ in range(1000):
            connection.send(RemotingCommand.request(40, body=bytes(100_000)))
            await asyncio.sleep(0)

    with pytest.raises(ConnectionClosed, match="does not read"):
        await tell_much()
    await until(lambda: lost == [connection])
    assert server.counters.slow_readers == 1


async def test_connections_are_limited(loopback: Loopback) -> None:
    server = await loopback.server(echo, limits=Limits(connections_max=1))
    first = await loopback.peer(server)
    await first.send(request())
    await first.receive()
    second = await loopback.peer(server)
    assert await second.at_end() == b""
    assert server.counters.refused == 1
    await first.send(request())
    await first.receive()


async def test_only_idle_connections_are_closed(loopback: Loopback) -> None:
    server = await loopback.server(echo, limits=Limits(idle_close_s=0.2))
    busy, idle = await loopback.peer(server), await loopback.peer(server)
    closed = asyncio.create_task(idle.at_end())
    while not closed.done():
        await busy.send(request())
        await busy.receive()
    assert closed.result() == b""
    assert server.counters.idle == 1
    await busy.send(request())
    await busy.receive()
