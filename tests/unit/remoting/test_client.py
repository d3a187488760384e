"""The remoting client: requests in both directions, lost connections, reconnects."""

import asyncio

import pytest

from core_broker.errors import (
    ClientError,
    ConnectFailed,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
    TransportError,
)
from core_broker.remoting.client import RemotingClient, split_addr
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Limits
from core_broker.remoting.frame_layout import HEADER_BYTES_MAX
from core_broker.remoting.server import RemotingServer
from tests.unit.remoting.peers import Loopback, addr_of, echo, port_of, until

ASK = RequestCode.GET_MAX_OFFSET


def question(body: bytes = b"", code: int = ASK) -> RemotingCommand:
    return RemotingCommand.request(code, body=body)


def silent(connection: Connection, command: RemotingCommand) -> None:
    """Leaves every request unanswered."""


async def test_concurrent_requests_share_a_connection(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    bodies = [str(at).encode() for at in range(200)]
    answers = await asyncio.gather(
        *(client.invoke(addr_of(server), question(body)) for body in bodies)
    )
    assert [answer.body for answer in answers] == bodies
    assert len(server.connections) == 1
    assert server.counters.opened == 1


async def test_an_answer_with_an_error_code_is_returned(loopback: Loopback) -> None:
    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(ResponseCode.TOPIC_NOT_EXIST, "no")

    server = await loopback.server(dispatch)
    answer = await loopback.client().invoke(addr_of(server), question())
    assert (answer.code, answer.remark) == (17, "no")


async def test_connection_refused(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    addr = addr_of(server)
    await server.close()
    client = loopback.client()
    with pytest.raises(ConnectFailed, match=addr) as failed:
        await client.invoke(addr, question())
    assert failed.value.addr == addr
    assert "refused" in str(failed.value)
    with pytest.raises(ConnectFailed):
        await client.oneway(addr, question())


async def test_an_unknown_host(loopback: Loopback) -> None:
    with pytest.raises(ConnectFailed, match="Cannot connect to"):
        await loopback.client().invoke("host.invalid:9876", question())


async def test_the_timeout_includes_connecting(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = loopback.client()

    async def never(_addr: str) -> Connection:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(client, "_connect", never)
    with pytest.raises(ConnectFailed, match="no answer in 20 ms"):
        await client.invoke("127.0.0.1:9", RemotingCommand.request(RequestCode.HEART_BEAT), 20)


async def test_no_answer_in_time(loopback: Loopback) -> None:
    late: list[tuple[Connection, RemotingCommand]] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        if command.body:
            return echo(connection, command)
        late.append((connection, command))
        return None

    server = await loopback.server(dispatch)
    client = loopback.client()
    await client.invoke(addr_of(server), question(b"connect"))
    with pytest.raises(RequestTimeout, match="GET_MAX_OFFSET") as failed:
        await client.invoke(addr_of(server), question(), timeout_ms=30)
    assert failed.value.code == ASK
    late[0][0].answer(late[0][1], RemotingCommand.response())
    await until(lambda: client.counters.late_answers == 1)
    answer = await client.invoke(addr_of(server), question(b"still works"))
    assert answer.body == b"still works"
    assert server.counters.opened == 1


async def test_the_connection_is_lost_while_waiting(loopback: Loopback) -> None:
    def dispatch(connection: Connection, command: RemotingCommand) -> None:
        connection.abort("rude")

    server = await loopback.server(dispatch)
    with pytest.raises(ConnectionClosed):
        await loopback.client().invoke(addr_of(server), question())


async def test_reconnects_after_a_server_restart(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    port, addr = port_of(server), addr_of(server)
    client = loopback.client()
    await client.invoke(addr, question())
    await server.close()
    with pytest.raises(TransportError):
        await client.invoke(addr, question())

    again = RemotingServer(echo, name="again")
    await again.listen("127.0.0.1", port)
    try:
        assert (await client.invoke(addr, question(b"back"))).body == b"back"
    finally:
        await again.close()


async def test_notices(loopback: Loopback) -> None:
    seen: list[RemotingCommand] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        seen.append(command)
        return echo(connection, command)

    server = await loopback.server(dispatch)
    client = loopback.client()
    await client.oneway(addr_of(server), question(b"note"))
    await client.invoke(addr_of(server), question(b"question"))
    assert [(each.is_oneway, each.body) for each in seen] == [(True, b"note"), (False, b"question")]
    assert client.counters.late_answers == 0


async def test_requests_of_the_server(loopback: Loopback) -> None:
    def client_side(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(body=b"client says " + command.body)

    server = await loopback.server(echo)
    client = loopback.client(dispatch=client_side)
    await client.invoke(addr_of(server), question())
    (connection,) = server.connections
    answers = await asyncio.gather(
        *(connection.invoke(question(b"%d" % at), 3000) for at in range(50)),
        client.invoke(addr_of(server), question(b"both ways")),
    )
    assert [answer.body for answer in answers[:-1]] == [b"client says %d" % at for at in range(50)]
    assert answers[-1].body == b"both ways"


async def test_a_client_without_dispatch_refuses_requests(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    await client.invoke(addr_of(server), question())
    (connection,) = server.connections
    answer = await connection.invoke(question(code=307), 3000)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == " request type 307 not supported"


class Signer:
    """An RPC hook that signs requests and records its calls."""

    def __init__(self) -> None:
        self.answered: list[tuple[str, bytes, bytes]] = []

    def before_request(self, addr: str, command: RemotingCommand) -> None:
        command.ext_fields["Signature"] = f"for {addr}"

    def after_response(
        self, addr: str, command: RemotingCommand, response: RemotingCommand
    ) -> None:
        self.answered.append((addr, command.body, response.body))


async def test_hooks_are_called_for_every_request(loopback: Loopback) -> None:
    signatures: list[str] = []

    def dispatch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        signatures.append(command.ext_fields["Signature"])
        return RemotingCommand.response(body=b"answer")

    server = await loopback.server(dispatch)
    addr, signer = addr_of(server), Signer()
    client = loopback.client(rpc_hooks=[signer])
    await client.oneway(addr, question(b"notice"))
    await client.invoke(addr, question(b"question"))
    assert signatures == [f"for {addr}"] * 2
    assert signer.answered == [(addr, b"question", b"answer")]


async def test_closing_fails_pending_requests(loopback: Loopback) -> None:
    server = await loopback.server(silent)
    client = loopback.client()
    waiting = [asyncio.create_task(client.invoke(addr_of(server), question())) for _ in range(3)]
    await until(lambda: [each.held for each in server.connections] == [3])
    await client.close()
    for task in waiting:
        with pytest.raises(ConnectionClosed, match="the client was closed"):
            await task
    with pytest.raises(ClientError, match="is closed"):
        await client.invoke(addr_of(server), question())
    await client.close()


async def test_closing_while_connecting(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    waiting = asyncio.create_task(client.invoke(addr_of(server), question()))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(TransportError):
        await waiting


async def test_a_cancelled_caller_keeps_the_connection_for_others(
    loopback: Loopback,
) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    impatient = asyncio.create_task(client.invoke(addr_of(server), question()))
    patient = asyncio.create_task(client.invoke(addr_of(server), question(b"patient")))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).body == b"patient"
    assert impatient.cancelled()
    assert server.counters.opened == 1


async def test_a_cancelled_request_is_removed(loopback: Loopback) -> None:
    server = await loopback.server(silent)
    client = loopback.client()
    waiting = asyncio.create_task(client.invoke(addr_of(server), question()))
    await until(lambda: [each.held for each in server.connections] == [1])
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (connection,) = client.connections
    assert not connection._pending


async def test_waiting_for_an_answer_is_not_idle(loopback: Loopback) -> None:
    server = await loopback.server(silent)
    client = loopback.client(limits=Limits(idle_close_s=0.05))
    with pytest.raises(RequestTimeout):
        await client.invoke(addr_of(server), question(), timeout_ms=300)
    await until(lambda: not client.connections)
    assert client.counters.idle == 1


async def test_pending_requests_are_limited(loopback: Loopback) -> None:
    server = await loopback.server(silent)
    client = loopback.client(limits=Limits(asked_max=2))
    waiting = [asyncio.create_task(client.invoke(addr_of(server), question())) for _ in range(2)]
    await until(lambda: [each.held for each in server.connections] == [2])
    with pytest.raises(ClientError, match="2 requests"):
        await client.invoke(addr_of(server), question())
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_an_oversize_request_leaves_no_pending_entry(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    large = RemotingCommand.request(ASK, {"text": "x" * HEADER_BYTES_MAX})
    with pytest.raises(ProtocolError):
        await client.invoke(addr_of(server), large)
    assert (await client.invoke(addr_of(server), question(b"small"))).body == b"small"
    (connection,) = client.connections
    assert not connection._pending


async def test_a_closed_connection_refuses_requests(loopback: Loopback) -> None:
    server = await loopback.server(echo)
    client = loopback.client()
    connection = await client.connection(addr_of(server))
    connection.close("enough")
    with pytest.raises(ConnectionClosed, match="enough"):
        connection.send(question())
    with pytest.raises(ConnectionClosed, match="enough"):
        await connection.invoke(question(), 100)
    await until(lambda: connection.closed)
    assert (await client.invoke(addr_of(server), question(b"new"))).body == b"new"


@pytest.mark.parametrize(
    "addr", ["", "host", "host:", ":9876", "host:0", "host:65536", "host:9x", "host:-1", "h:\u0661"]
)
async def test_malformed_addresses(addr: str) -> None:
    with pytest.raises(ClientError, match="host:port"):
        await RemotingClient(name="client").invoke(addr, question())


def test_addresses() -> None:
    assert split_addr("127.0.0.1:9876") == ("127.0.0.1", 9876)
    assert split_addr("[::1]:9876") == ("::1", 9876)
    assert split_addr("::1:9876") == ("::1", 9876)
