"""The load generator sends valid requests, and counts confirmed messages."""

import asyncio
import shutil
import threading
from collections.abc import Iterator

import pytest

from benchmarks.load import Scenario, compile_generator, run
from benchmarks.requests import (
    ACCOUNT,
    BODY_BYTES,
    PULL_COUNT,
    SECRET,
    TOPIC,
    batch_template,
    pull_template,
    send_template,
    signed_send_template,
)
from core_broker.auth.signature import ACCESS_KEY, SIGNATURE, SigningKey
from core_broker.config.tls import TlsSettings
from core_broker.message.batch import decode_batch
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.consume import PullMessageRequestHeader, PullMessageResponseHeader
from core_broker.remoting.headers.produce import SendMessageRequestHeaderV2
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_server import ServerTls

BACKLOG = 100


class FakeBroker:
    """Accepts every message and holds a backlog of 100; runs on an event loop in a separate
    thread.
    """

    def __init__(self) -> None:
        self.port = 0
        self.received: list[RemotingCommand] = []
        self.answer_code = 0
        self.tls_opened = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))
        self._thread.start()
        assert self._ready.wait(60)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    async def _run(self) -> None:
        # TLS begins with the first byte of a connection; other connections are as without TLS.
        tls = ServerTls(TlsSettings(), "fake")
        server = RemotingServer(self._dispatch, name="fake", tls=tls)
        self.port = await server.listen("127.0.0.1", 0)
        self._ready.set()
        await self._stop.wait()
        self.tls_opened = server.counters.tls_opened
        await server.close()

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.received.append(request)
        if request.code != 11:
            return RemotingCommand.response(self.answer_code)
        offset = request.header(PullMessageRequestHeader).queue_offset
        to = min(BACKLOG, offset + PULL_COUNT)
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=to, min_offset=0, max_offset=BACKLOG
        )
        return RemotingCommand.response(0 if offset < BACKLOG else 19, None, header)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    fake = FakeBroker()
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def _needs_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("the load generator needs a C compiler")


def addr_of(broker: FakeBroker) -> str:
    return f"127.0.0.1:{broker.port}"


def test_sends_are_whole_requests_with_unique_keys(broker: FakeBroker) -> None:
    figures = run(Scenario(3, 2, send_template), addr_of(broker), seconds=10, messages_max=50)
    assert figures["messages"] == figures["requests"] == len(broker.received) >= 50
    headers = [each.header(SendMessageRequestHeaderV2) for each in broker.received]
    assert {each.topic for each in headers} == {TOPIC}
    assert {len(each.body) for each in broker.received} == {BODY_BYTES}
    assert len({each.properties for each in headers}) == len(headers)


def test_signatures_are_right_for_each_request(broker: FakeBroker) -> None:
    scenario = Scenario(2, 2, signed_send_template)
    figures = run(scenario, addr_of(broker), seconds=10, messages_max=50)
    assert figures["messages"] == len(broker.received) >= 50
    key = SigningKey(SECRET)
    assert all(key.accepts(each.ext_fields, each.body) for each in broker.received)
    assert {each.ext_fields[ACCESS_KEY] for each in broker.received} == {ACCOUNT}
    signatures = {each.ext_fields[SIGNATURE] for each in broker.received}
    assert len(signatures) == len(broker.received)


@pytest.mark.parametrize("body_bytes", range(64))
def test_signatures_of_every_length_modulo_the_block(broker: FakeBroker, body_bytes: int) -> None:
    scenario = Scenario(1, 1, lambda number: signed_send_template(number, body_bytes))
    run(scenario, addr_of(broker), seconds=10, messages_max=1)
    (request,) = broker.received
    assert SigningKey(SECRET).accepts(request.ext_fields, request.body)


@pytest.mark.parametrize(("connections", "in_flight"), [(8, 1), (1, 64)])
def test_sends_with_tls(broker: FakeBroker, connections: int, in_flight: int) -> None:
    try:
        compile_generator(tls=True)
    except SystemExit:
        pytest.skip("a load with TLS needs OpenSSL's headers")
    if shutil.which("openssl") is None:
        pytest.skip("the certificate of the test mode needs the program openssl")
    scenario = Scenario(connections, in_flight, signed_send_template, tls=True)
    figures = run(scenario, addr_of(broker), seconds=60, messages_max=300)
    assert figures["messages"] == len(broker.received) >= 300
    key = SigningKey(SECRET)
    assert all(key.accepts(each.ext_fields, each.body) for each in broker.received)
    broker.close()
    assert broker.tls_opened == connections


def test_batches_count_their_messages(broker: FakeBroker) -> None:
    scenario = Scenario(1, 1, lambda number: batch_template(number, 4))
    figures = run(scenario, addr_of(broker), seconds=10, messages_max=9)
    assert figures["messages"] == 12
    batch = decode_batch(broker.received[0].body)
    assert [len(each.body) for each in batch] == [BODY_BYTES] * 4
    assert len({each.properties["UNIQ_KEY"] for each in batch}) == 4


def test_pulls_without_a_duration_read_to_the_end_of_the_queue(broker: FakeBroker) -> None:
    figures = run(Scenario(2, 1, pull_template), addr_of(broker), seconds=0)
    assert figures["messages"] == 2 * BACKLOG


def test_pulls_with_a_duration_restart(broker: FakeBroker) -> None:
    figures = run(Scenario(1, 1, pull_template), addr_of(broker), seconds=10, messages_max=250)
    assert figures["messages"] >= 250


def test_an_open_loop_keeps_the_requested_rate(broker: FakeBroker) -> None:
    scenario = Scenario(4, 8, send_template)
    figures = run(scenario, addr_of(broker), seconds=0.5, rate=400)
    assert 0 < figures["messages"] <= 200
    assert figures["latency_us"]["p50"] <= figures["latency_us"]["max"]


def test_an_error_of_the_broker_ends_the_run(broker: FakeBroker) -> None:
    broker.answer_code = 14
    with pytest.raises(SystemExit, match="refused"):
        run(Scenario(1, 1, send_template), addr_of(broker), seconds=1, messages_max=1)
