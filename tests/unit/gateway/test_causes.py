"""A broker that accepts no messages: its own reason takes the place of RocketMQ's general text."""

from collections.abc import AsyncIterator

import pytest

from console.gateway.engine.errors import Refused
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer, refuse

GENERAL = "service not available now. It may be caused by one of the following reasons: …"
REASON = "the disk of the commit log is full"


@pytest.fixture
async def session() -> AsyncIterator[ClusterSession]:
    found = ClusterSession("test", "192.0.2.1:9876")
    yield found
    await found.close()


@question(fresh_for_ms=0)
async def refused(_session: ClusterSession, code: int, addr: str) -> object:
    raise RequestRefused(code, GENERAL, addr)


async def text_of(session: ClusterSession, code: int, addr: str) -> str:
    with pytest.raises(Refused) as caught:
        await session.ask(refused, code, addr)
    assert caught.value.code == code
    return str(caught.value)


def table(**keys: str) -> RemotingCommand:
    return RemotingCommand.response(body=encode_body(KVTable(table=keys)))


async def test_a_broker_names_its_reason(session: ClusterSession) -> None:
    async with ScriptedPeer() as peer:
        peer.on(RequestCode.GET_BROKER_RUNTIME_INFO, lambda _: table(gantryReadOnlyReason=REASON))
        text = await text_of(session, ResponseCode.SERVICE_NOT_AVAILABLE, peer.addr)
        assert text == f"{peer.addr} refused with SERVICE_NOT_AVAILABLE (14): {REASON}"
        assert GENERAL in await text_of(session, ResponseCode.SYSTEM_BUSY, peer.addr)
        assert len(peer.requests) == 1, "other codes have remarks of their own"


@pytest.mark.parametrize("answer", [table(), refuse(ResponseCode.NO_PERMISSION, "no"), None])
async def test_the_general_text_stays_without_a_reason(
    session: ClusterSession, answer: RemotingCommand | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache's brokers have no reason; a broker may refuse the question or not answer at all."""
    monkeypatch.setattr("console.gateway.engine.causes.ASK_S_MAX", 0.2)
    async with ScriptedPeer() as peer:
        peer.on(RequestCode.GET_BROKER_RUNTIME_INFO, lambda _: answer)
        assert GENERAL in await text_of(session, ResponseCode.SERVICE_NOT_AVAILABLE, peer.addr)


async def test_a_broker_that_is_gone_has_no_reason(session: ClusterSession) -> None:
    text = await text_of(session, ResponseCode.SERVICE_NOT_AVAILABLE, "127.0.0.1:1")
    assert GENERAL in text
