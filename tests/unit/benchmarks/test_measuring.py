"""A run ends when consumers can read all sent messages, not with the last response."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import measuring
from benchmarks.load import SCENARIOS
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import Handler, ScriptedPeer, ok

MESSAGES, SECONDS = 1_000, 0.1
ASKED = RequestCode.GET_BROKER_RUNTIME_INFO


def behind(count: int) -> Handler:
    """A broker that reports a dispatch lag of `count` bytes."""

    def answer(_: RemotingCommand) -> RemotingCommand:
        return ok(body=encode_body(KVTable(table={measuring.BEHIND: str(count)})))

    return answer


async def measured(broker: ScriptedPeer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The metrics of a run in which the load generator sent 1,000 messages in 0.1 s."""
    load = {"messages": MESSAGES, "seconds": SECONDS, "rate": round(MESSAGES / SECONDS)}
    monkeypatch.setattr(measuring, "run", lambda *_, **__: dict(load))
    cpu = iter((1.0, 1.05))
    process = SimpleNamespace(cpu_seconds=lambda: next(cpu))
    cluster: Any = SimpleNamespace(
        broker=process,
        broker_addr=broker.addr,
        namesrv_addr=broker.addr,
        rpc_hooks=(),
        slave=None,
    )
    return await asyncio.to_thread(
        measuring.measure, cluster, SCENARIOS["batch-32"], seconds=SECONDS
    )


async def test_a_broker_without_backlog_is_polled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedPeer() as broker:
        broker.on(ASKED, behind(0))
        figures = await measured(broker, monkeypatch)
    assert len(broker.received(ASKED)) == 1
    assert figures["behind_seconds"] == 0
    assert figures["rate"] == figures["answered_rate"] == 10_000
    assert figures["broker_cpu_us_per_message"] == 50


async def test_the_run_includes_the_time_to_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedPeer() as broker:
        broker.on(ASKED, behind(0))
        broker.script(ASKED, map(behind, (4_000, 2_000, 1_000)))
        figures = await measured(broker, monkeypatch)
    assert len(broker.received(ASKED)) == 4
    assert figures["answered_rate"] == 10_000
    assert figures["behind_seconds"] >= 3 * measuring.POLL_SECONDS
    took = MESSAGES / figures["rate"]
    assert took == pytest.approx(SECONDS + figures["behind_seconds"], abs=0.01)


async def test_a_broker_that_never_catches_up_ends_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "CATCH_UP_SECONDS_MAX", 0.05)
    async with ScriptedPeer() as broker:
        broker.on(ASKED, behind(1))
        with pytest.raises(SystemExit, match="in no consume queue"):
            await measured(broker, monkeypatch)
