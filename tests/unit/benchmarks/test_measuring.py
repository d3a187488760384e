"""A run ends when consumers can have what was sent, not when the last answer has come."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import measuring
from benchmarks.load import SCENARIOS
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.server import RemotingServer

MESSAGES, SECONDS = 1_000, 0.1


@contextmanager
def broker_behind(behind: list[int]) -> Iterator[str]:
    """A broker that is so many bytes behind from question to question, and stays at the last."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready: list[int] = []
    is_ready = threading.Event()

    def answer(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        assert request.code == RequestCode.GET_BROKER_RUNTIME_INFO
        now = behind.pop(0) if len(behind) > 1 else behind[0]
        response = RemotingCommand.response(0)
        response.body = encode_body(KVTable(table={measuring.BEHIND: str(now)}))
        return response

    async def serve() -> None:
        server = RemotingServer(answer, name="behind")
        ready.append(await server.listen("127.0.0.1", 0))
        is_ready.set()
        await stop.wait()
        await server.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert is_ready.wait(10)
    try:
        yield f"127.0.0.1:{ready[0]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def measured(addr: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    load = {"messages": MESSAGES, "seconds": SECONDS, "rate": round(MESSAGES / SECONDS)}
    monkeypatch.setattr(measuring, "run", lambda *_, **__: dict(load))
    cpu = iter((1.0, 1.05))
    broker = SimpleNamespace(cpu_seconds=lambda: next(cpu))
    cluster: Any = SimpleNamespace(broker=broker, broker_addr=addr, namesrv_addr="127.0.0.1:1")
    return measuring.measure(cluster, SCENARIOS["batch-32"], seconds=SECONDS)


def test_a_broker_that_is_up_to_date_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with broker_behind([0]) as addr:
        figures = measured(addr, monkeypatch)
    assert figures["behind_seconds"] == 0
    assert figures["rate"] == figures["answered_rate"] == 10_000
    assert figures["broker_cpu_us_per_message"] == 50


def test_the_time_to_catch_up_belongs_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with broker_behind([4_000, 2_000, 1_000, 0]) as addr:
        figures = measured(addr, monkeypatch)
    assert figures["answered_rate"] == 10_000
    # Three looks came before the last one.
    assert figures["behind_seconds"] >= 3 * measuring.LOOK_SECONDS
    took = MESSAGES / figures["rate"]
    assert took == pytest.approx(SECONDS + figures["behind_seconds"], abs=0.01)


def test_a_broker_that_never_catches_up_ends_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "CATCH_UP_SECONDS_MAX", 0.05)
    with (
        broker_behind([1]) as addr,
        pytest.raises(SystemExit, match="in no consume queue"),
    ):
        measured(addr, monkeypatch)
