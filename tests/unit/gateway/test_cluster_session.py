"""The cluster session: fan-out to brokers, failures by broker, deadlines, errors with a status."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from django.test import override_settings

from console.gateway.engine import session as sessions
from console.gateway.engine.answers import Partial
from console.gateway.engine.clusters import Gateway
from console.gateway.engine.errors import (
    ClusterUnreachable,
    GatewayError,
    Refused,
    TooSlow,
    UnknownCluster,
    Unusable,
)
from console.gateway.engine.liveness import PROBE_EVERY_MS
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.errors import (
    ClientError,
    ConnectFailed,
    ProtocolError,
    RequestRefused,
    RequestTimeout,
)

NAMESRV = "192.0.2.1:9876"
REFS = [BrokerRef(name, 0, f"{name}:10911") for name in ("a", "b", "c")]


@pytest.fixture
async def session() -> AsyncIterator[ClusterSession]:
    found = ClusterSession("test", NAMESRV)
    yield found
    await found.close()


async def test_the_answers_of_those_that_answer_are_kept(session: ClusterSession) -> None:
    async def ask(ref: BrokerRef) -> str:
        if ref.name == "b":
            raise ConnectFailed(ref.addr, "refused")
        return ref.name.upper()

    found, failures = await session.fan_out(REFS, ask)
    assert [found[ref] for ref in found] == ["A", "C"]
    assert [(one.broker, one.addr) for one in failures] == [("b", "b:10911")]
    assert "Cannot connect to b:10911" in failures[0].reason


async def test_brokers_are_asked_at_the_same_time(session: ClusterSession) -> None:
    gate = asyncio.Barrier(len(REFS))

    async def ask(ref: BrokerRef) -> None:
        await asyncio.wait_for(gate.wait(), 60)

    await session.fan_out(REFS, ask)


async def test_when_nobody_answers_the_cluster_cannot_be_reached(session: ClusterSession) -> None:
    async def ask(ref: BrokerRef) -> None:
        raise RequestTimeout(ref.addr, 28, 3000)

    with pytest.raises(ClusterUnreachable) as caught:
        await session.fan_out(REFS, ask)
    assert caught.value.status == 503
    assert len(caught.value.failures) == 3
    assert "a:10911" in str(caught.value.hint)


async def test_when_all_refuse_the_refusal_is_told(session: ClusterSession) -> None:
    async def ask(ref: BrokerRef) -> None:
        raise RequestRefused(17, "no topic", ref.addr)

    with pytest.raises(Refused) as caught:
        await session.fan_out(REFS, ask)
    assert (caught.value.status, caught.value.code) == (502, 17)


async def test_silence_can_be_an_answer(session: ClusterSession) -> None:
    async def ask(ref: BrokerRef) -> None:
        raise ConnectFailed(ref.addr)

    found, failures = await session.fan_out(REFS, ask, one_must_answer=False)
    assert not found
    assert len(failures) == 3


async def test_questions_do_not_wait_for_a_broker_that_is_down(
    session: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000
    monkeypatch.setattr(sessions, "now_ms", lambda: now)
    asked: list[str] = []
    probed = asyncio.Event()

    async def ask(ref: BrokerRef) -> str:
        asked.append(ref.name)
        if ref.name == "b" and not probed.is_set():
            raise ConnectFailed(ref.addr)
        return ref.name

    async def runtime_info(addr: str) -> dict[str, str]:
        assert addr == "b:10911"
        probed.set()
        return {}

    monkeypatch.setattr(session.admin, "runtime_info", runtime_info)
    for _ in range(2):
        _found, failures = await session.fan_out(REFS, ask)
        assert [one.broker for one in failures] == ["b"]
    assert asked.count("b") == 1
    now += PROBE_EVERY_MS
    _found, failures = await session.fan_out(REFS, ask)
    assert [one.broker for one in failures] == ["b"], "the probe runs in the background"
    await asyncio.wait_for(probed.wait(), 60)
    await asyncio.sleep(0)  # the end of the probe
    _found, failures = await session.fan_out(REFS, ask)
    assert not failures


async def test_a_command_tries_a_broker_that_is_down(session: ClusterSession) -> None:
    asked: list[str] = []

    async def ask(ref: BrokerRef) -> None:
        asked.append(ref.name)
        if len(asked) == 1:
            raise ConnectFailed(ref.addr)

    @command()
    async def change(session: ClusterSession) -> int:
        _found, failures = await session.fan_out(REFS[:1], ask)
        return len(failures)

    await session.fan_out(REFS[:1], ask, one_must_answer=False)
    assert await asyncio.create_task(session.do(change)) == 0


@question(deadline_ms=20)
async def slow(session: ClusterSession) -> Partial[None]:
    await asyncio.sleep(60)
    return Partial(None)


@question()
async def failing(session: ClusterSession, error: Exception) -> Partial[None]:
    raise error


async def test_a_question_ends_at_its_deadline(session: ClusterSession) -> None:
    with pytest.raises(TooSlow, match=r"test_cluster_session\.slow") as caught:
        await session.ask(slow)
    assert caught.value.status == 504


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (RequestRefused(16, "no"), Refused, 502),
        (ConnectFailed("x:1"), ClusterUnreachable, 503),
        (ProtocolError("not the protocol"), GatewayError, 502),
        (ClientError("illegal"), Unusable, 400),
    ],
)
async def test_what_the_client_raises_gets_a_status(
    session: ClusterSession, error: Exception, kind: type[GatewayError], status: int
) -> None:
    with pytest.raises(GatewayError) as caught:
        await session.ask(failing, error)
    assert type(caught.value) is kind
    assert caught.value.status == status


async def test_a_dead_name_server_names_the_setting(session: ClusterSession) -> None:
    with pytest.raises(ClusterUnreachable) as caught:
        await session.ask(failing, ConnectFailed(NAMESRV))
    assert "NAMESRV_ADDR" in str(caught.value.hint)


async def test_a_change_drops_what_was_known(session: ClusterSession) -> None:
    counts = {"asked": 0}

    @question(fresh_for_ms=60_000)
    async def count(session: ClusterSession) -> Partial[int]:
        counts["asked"] += 1
        return Partial(counts["asked"])

    @command()
    async def change(session: ClusterSession) -> str:
        return "done"

    assert (await session.ask(count)).value == 1
    assert (await session.ask(count)).value == 1
    assert await session.do(change) == "done"
    assert (await session.ask(count)).value == 2


def test_threads_and_other_loops_ask_through_the_gateway() -> None:
    @question()
    async def double(session: ClusterSession, number: int) -> Partial[int]:
        return Partial(number * 2)

    gateway = Gateway()
    try:
        with override_settings(CONSOLE_CLUSTERS={"one": NAMESRV}):
            cluster = gateway.cluster("one")
            assert cluster.ask(double, 21).value == 42
            assert asyncio.run(cluster.ask_async(double, 4)).value == 8
            with pytest.raises(UnknownCluster) as caught:
                gateway.cluster("two")
            assert "one" in str(caught.value.hint)
            with pytest.raises(TooSlow):
                cluster.ask(slow)
    finally:
        gateway.close()


def test_the_gateway_can_be_used_again_after_it_was_closed() -> None:
    @question()
    async def one(session: ClusterSession) -> Partial[int]:
        return Partial(1)

    gateway = Gateway()
    with override_settings(CONSOLE_CLUSTERS={"one": NAMESRV}):
        for _ in range(2):
            assert gateway.cluster("one").ask(one).value == 1
            gateway.close()
    gateway.close()
