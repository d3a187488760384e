"""The server's side of the shell: turns, limits, hostile and slow peers, closing."""

import asyncio
import logging

import pytest

from core_broker.errors import ClientError, ConnectionClosed, RequestRefused
from core_broker.remoting.codes import ResponseCode, SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import BUSY_REMARK, Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.frames import FRAME_BYTES_MAX
from tests.unit.remoting.peers import Loopback, addr_of, echo, port_of, request, until

MALFORMED = b"\0\0\0\x08\0\0\0\x04null"
OVERSIZE = (FRAME_BYTES_MAX + 1).to_bytes(4, "big") + bytes(4)


class Holder:
    """A dispatch that keeps requests until the test answers them."""

    def __init__(self) -> None:
        self.held: list[tuple[Connection, RemotingCommand]] = []

    def __call__(self, connection: Connection, command: RemotingCommand) -> None:
        self.held.append((connection, command))

    def answer(self, body: bytes = b"") -> None:
        connection, command = self.held.pop(0)
        connection.answer(command, RemotingCommand.response(body=body))


class WriteCounter:
    """Stands in front of a transport and counts its writes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


async def test_answers_carry_the_opaque_and_the_encoding_of_their_request(
    loopback: Loopback,
) -> None:
    peer = await loopback.peer(await loopback.server(echo))
    for kind in SerializeType:
        sent = request(opaque=-5, body=b"hi")
        sent.serialize_type = kind
        await peer.send(sent)
        answer = await peer.receive()
        assert (answer.opaque, answer.flag, answer.body) == (-5, 1, b"hi")
        assert answer.serialize_type == kind


async def test_one_write_and_one_before_write_per_turn(loopback: Loopback) -> None:
    turns: list[int] = []
    server = await loopback.server(echo, before_write=lambda: turns.append(1))
    peer = await loopback.peer(server)
    await peer.send(request())
    await peer.receive()
    (connection,) = server.connections
    counter = WriteCounter(connection._transport)
    connection._transport = counter  # type: ignore[assignment]
    turns.clear()

    await peer.send(*(request(opaque=at, body=b"x" * 50) for at in range(20)))
    assert [(await peer.receive()).opaque for _ in range(20)] == list(range(20))
    assert len(counter.writes) == 1
    assert len(turns) == 1


async def test_what_could_not_be_written_is_not_acknowledged(
    loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True

    def before_write() -> None:
        if broken:
            raise OSError("disk full")

    holder = Holder()

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        if command.code == 1:
            return echo(connection, command)
        holder(connection, command)
        return None

    server = await loopback.server(dispatch, before_write=before_write)
    waiting, victim = await loopback.peer(server), await loopback.peer(server)
    await waiting.send(request(code=2))
    await until(lambda: holder.held)
    await victim.send(request(), request())

    assert await victim.at_end() == b""
    assert server.counters.unstored == 1
    assert "disk full" in caplog.text
    broken = False
    holder.answer(b"still here")
    assert (await waiting.receive()).body == b"still here"


async def test_a_notice_is_never_answered(loopback: Loopback) -> None:
    seen: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        seen.append(command.opaque)
        if command.opaque == 2:
            raise ValueError("also for failures")
        return echo(connection, command)

    server = await loopback.server(dispatch)
    peer = await loopback.peer(server)
    await peer.send(request(opaque=1, flag=2), request(opaque=2, flag=2), request(opaque=3))
    assert (await peer.receive()).opaque == 3
    assert seen == [1, 2, 3]


async def test_what_dispatch_raises_becomes_the_answer(
    loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [
        RequestRefused(17, "no such topic"),
        ClientError("The specified topic is blank."),
        ZeroDivisionError("oh"),
    ]

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        raise errors[command.opaque]

    server = await loopback.server(dispatch)
    peer = await loopback.peer(server)
    await peer.send(*(request(opaque=at) for at in range(3)))
    answers = [await peer.receive() for _ in range(3)]
    assert [(answer.code, answer.remark) for answer in answers] == [
        (17, "no such topic"),
        (1, "ClientError: The specified topic is blank."),
        (1, "ZeroDivisionError: oh"),
    ]
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(logged) == 1
    assert server.counters.failed == 2


async def test_an_answer_larger_than_a_frame_is_an_error_instead(loopback: Loopback) -> None:
    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(body=bytes(FRAME_BYTES_MAX))

    peer = await loopback.peer(await loopback.server(dispatch))
    await peer.send(request(opaque=9))
    answer = await peer.receive()
    assert (answer.code, answer.opaque) == (ResponseCode.SYSTEM_ERROR, 9)
    assert "over the limit" in (answer.remark or "")


async def test_later_answers_second_answers_and_answers_to_nobody(loopback: Loopback) -> None:
    holder = Holder()
    server = await loopback.server(holder)
    peer = await loopback.peer(server)
    await peer.send(request(opaque=1), request(opaque=2))
    await until(lambda: len(holder.held) == 2)
    (connection, first), (_, second) = holder.held
    assert connection.held == 2
    connection.answer(second, RemotingCommand.response(body=b"second"))
    connection.answer(second, RemotingCommand.response(body=b"again"))
    connection.answer(first, RemotingCommand.response(body=b"first"))
    assert [(await peer.receive()).body for _ in range(2)] == [b"second", b"first"]
    assert connection.held == 0

    await peer.send(request(opaque=3))
    await until(lambda: len(holder.held) == 3)
    await peer.close()
    await until(lambda: connection.closed)
    connection.answer(holder.held[2][1], RemotingCommand.response())


async def test_an_answer_made_elsewhere_is_sent_as_it_is(loopback: Loopback) -> None:
    holder = Holder()
    peer = await loopback.peer(await loopback.server(holder))
    await peer.send(request(opaque=5))
    await until(lambda: holder.held)
    response = RemotingCommand.response(body=b"relayed")
    response.opaque = 5
    holder.held[0][0].send(response)
    answer = await peer.receive()
    assert (answer.opaque, answer.flag, answer.body) == (5, 1, b"relayed")


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
async def test_a_bad_frame_closes_only_its_own_connection(loopback: Loopback, bad: bytes) -> None:
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


async def test_a_remark_that_cannot_be_encoded_is_an_error_instead(loopback: Loopback) -> None:
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


async def test_a_peer_that_does_not_read_stops_being_served(loopback: Loopback) -> None:
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
    await other.receive()  # by now the first peer's turn is over

    connection = next(each for each in server.connections if each.peer_port == peer_port(peer))
    unsent = connection._transport.get_write_buffer_size() + connection._out_bytes
    assert unsent <= high_water + 2 * len(answer)
    assert served < count
    opaques = [(await peer.receive()).opaque for _ in range(count)]
    assert opaques == list(range(count))
    assert served == count + 1
    assert not connection.closed


async def test_a_peer_that_never_reads_is_cut_off(loopback: Loopback) -> None:
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


async def test_idle_connections_are_closed_and_busy_ones_are_not(loopback: Loopback) -> None:
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


async def test_the_end_of_a_connection_is_told_once(
    loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[Connection] = []

    def on_close(connection: Connection) -> None:
        lost.append(connection)
        raise ValueError("cleaning up failed")

    server = await loopback.server(echo, on_close=on_close)
    peer = await loopback.peer(server)
    await peer.send(request())
    await peer.receive()
    (connection,) = server.connections
    await peer.close()
    await until(lambda: lost == [connection])
    assert not server.connections
    assert connection.closed
    assert "cleaning up failed" in caplog.text


async def test_what_was_asked_before_the_peer_stopped_sending_is_answered(
    loopback: Loopback,
) -> None:
    peer = await loopback.peer(await loopback.server(echo))
    await peer.send(request(body=b"last words"))
    peer.writer.write_eof()
    assert (await peer.receive()).body == b"last words"
    assert await peer.at_end() == b""


async def test_several_ports(loopback: Loopback) -> None:
    ports: list[int] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        ports.append(connection.local_port)
        return RemotingCommand.response()

    server = await loopback.server(dispatch)
    vip = await server.listen("127.0.0.1", 0)
    client = loopback.client()
    await client.invoke(addr_of(server), RemotingCommand.request(1))
    await client.invoke(f"127.0.0.1:{vip}", RemotingCommand.request(1))
    assert ports == [port_of(server), vip]


async def test_an_occupied_port_is_an_error(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    with pytest.raises(OSError, match="address already in use"):
        await server.listen("127.0.0.1", port_of(server))


async def test_closing_waits_for_answers(loopback: Loopback) -> None:
    holder = Holder()
    server = await loopback.server(holder)
    peer = await loopback.peer(server)
    await peer.send(request())
    await until(lambda: holder.held)
    closing = asyncio.create_task(server.close(drain_timeout_s=10))
    await asyncio.sleep(0)
    assert not closing.done()
    holder.answer(b"in time")
    assert (await peer.receive()).body == b"in time"
    await closing
    assert await peer.at_end() == b""
    assert not server.connections


async def test_closing_does_not_wait_for_ever(loopback: Loopback) -> None:
    holder = Holder()
    server = await loopback.server(holder)
    peer = await loopback.peer(server)
    await peer.send(request())
    await until(lambda: holder.held)
    await server.close(drain_timeout_s=0.01)
    assert await peer.at_end() == b""
    assert not server.connections
    connection, command = holder.held[0]
    connection.answer(command, RemotingCommand.response())


def peer_port(peer: object) -> int:
    port: int = peer.writer.get_extra_info("sockname")[1]  # type: ignore[attr-defined]
    return port
