"""The remoting server: event-loop iterations, answers, ports, closing."""

import asyncio
import logging

import pytest

from core_broker.errors import ClientError, RequestRefused
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.remoting.codes import ResponseCode, SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.iteration import IterationEnd
from tests.unit.remoting.peers import Holder, Loopback, addr_of, echo, port_of, request, until


class WriteCounter:
    """Wraps a transport and counts the writes."""

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
    server = await loopback.server(
        echo, iteration_end=IterationEnd(before_write=(lambda: turns.append(1),))
    )
    peer = await loopback.peer(server)
    await peer.send(request())
    await peer.receive()
    (connection,) = server.connections
    counter = WriteCounter(connection._transport)
    connection._transport = counter  # type: ignore[assignment]
    turns.clear()

    await peer.send(*(request(opaque=at, body=b"x" * 50) for at in range(20)))
    assert [(await peer.receive()).opaque for _ in range(20)] == list(range(20))
    # The kernel sends to the socket, without the transport.
    assert len(counter.writes) == (0 if loopback.is_polled else 1)
    assert len(turns) == 1


async def test_a_failed_write_is_not_acknowledged(
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

    server = await loopback.server(
        dispatch, iteration_end=IterationEnd(before_write=(before_write,))
    )
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


async def test_a_oneway_request_is_never_answered(loopback: Loopback) -> None:
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


async def test_an_error_in_dispatch_becomes_the_answer(
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


async def test_late_repeated_and_undeliverable_answers(loopback: Loopback) -> None:
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


async def test_an_encoded_answer_is_sent_unchanged(loopback: Loopback) -> None:
    holder = Holder()
    peer = await loopback.peer(await loopback.server(holder))
    await peer.send(request(opaque=5))
    await until(lambda: holder.held)
    response = RemotingCommand.response(body=b"relayed")
    response.opaque = 5
    holder.held[0][0].send(response)
    answer = await peer.receive()
    assert (answer.opaque, answer.flag, answer.body) == (5, 1, b"relayed")


async def test_on_close_is_called_once(
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


async def test_requests_before_eof_are_answered(
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
