"""Queue locks: granted, refused, renewed, expired, lost."""

from collections.abc import AsyncIterator
from time import monotonic

import pytest

from core_broker.client.consumer import queue_locks as module
from core_broker.client.consumer.queue_locks import QueueLocks
from core_broker.client.instance import ClientInstance
from core_broker.errors import ClientError, GantryError
from core_broker.remoting.bodies import (
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.scripted_peer import ScriptedPeer, ok, refuse

LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ
Q0, Q1 = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
AWAY = MessageQueue("T", "away", 0)


class Grants(ScriptedPeer):
    """A broker granting all locks except locks of other members."""

    def __init__(self) -> None:
        super().__init__()
        self.others: set[MessageQueue] = set()
        self.on(LOCK, self._lock)

    def _lock(self, request: RemotingCommand) -> RemotingCommand:
        request_body = decode_body(LockBatchRequestBody, request.body)
        assert (request_body.consumer_group, request_body.client_id[-2:]) == ("G", "me")
        granted = [queue for queue in request_body.mq_set if queue not in self.others]
        return ok(body=encode_body(LockBatchResponseBody(lock_ok_mq_set=granted)))


@pytest.fixture
async def peer() -> AsyncIterator[Grants]:
    async with Grants() as scripted:
        scripted.serve_route(["T"], {"b": scripted.addr, "away": "127.0.0.1:1"})
        yield scripted


@pytest.fixture
async def locks(peer: Grants) -> AsyncIterator[QueueLocks]:
    instance = ClientInstance(
        peer.addr,
        name="test",
        instance_name="me",
        heartbeat=lambda client_id: HeartbeatData(client_id=client_id),
    )
    await instance.routes.route("T")
    yield QueueLocks(instance, "G")
    await instance.stop()


async def test_a_lock_is_held_when_it_is_granted(peer: Grants, locks: QueueLocks) -> None:
    peer.others.add(Q1)
    assert await locks.lock(Q0)
    assert not await locks.lock(Q1)
    assert (locks.holds(Q0), locks.holds(Q1)) == (True, False)
    assert locks.locked_ms(Q0) > 0
    assert locks.locked_ms(Q1) == 0


async def test_a_lock_is_not_trusted_for_ever(
    locks: QueueLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await locks.lock(Q0)
    later = monotonic() + module.LOCK_TRUST_S
    monkeypatch.setattr(module, "monotonic", lambda: later)
    assert not locks.holds(Q0)
    # Renewed after the expiry: another member may have held the lock in between.
    assert await locks.renew([Q0]) == {Q0}


async def test_renewing_returns_the_lost_locks(peer: Grants, locks: QueueLocks) -> None:
    for queue in (Q0, Q1):
        await locks.lock(queue)
    assert await locks.renew([Q0, Q1]) == set()
    peer.others.add(Q1)
    assert await locks.renew([Q0, Q1]) == {Q1}
    assert (locks.holds(Q0), locks.holds(Q1)) == (True, False)


async def test_a_broker_that_is_away_takes_no_lock_by_itself(
    peer: Grants, locks: QueueLocks, caplog: pytest.LogCaptureFixture
) -> None:
    await locks.lock(Q0)
    with pytest.raises(GantryError):
        await locks.lock(AWAY)
    peer.on(LOCK, lambda _: refuse(1, "no"))
    assert await locks.renew([Q0, AWAY]) == set()
    assert locks.holds(Q0)
    assert "were not renewed" in caplog.text


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"lockOKMQSet":7}'])
async def test_rubbish_locks_nothing(peer: Grants, locks: QueueLocks, body: bytes) -> None:
    peer.on(LOCK, lambda _: ok(body=body))
    with pytest.raises(GantryError):
        await locks.lock(Q0)
    assert not locks.holds(Q0)


async def test_a_lock_that_nobody_asked_for_is_not_held(peer: Grants, locks: QueueLocks) -> None:
    body = encode_body(LockBatchResponseBody(lock_ok_mq_set=[Q0, Q1]))
    peer.on(LOCK, lambda _: ok(body=body))
    await locks.lock(Q0)
    assert not locks.holds(Q1)


async def test_unlocking_asks_only_for_what_is_locked(peer: Grants, locks: QueueLocks) -> None:
    await locks.lock(Q0)
    await locks.unlock([Q0, Q1])
    (request,) = peer.received(UNLOCK)
    assert decode_body(UnlockBatchRequestBody, request.body).mq_set == [Q0]
    assert not locks.holds(Q0)


async def test_locks_move_with_the_master_and_are_never_those_of_a_slave(
    peer: Grants, locks: QueueLocks
) -> None:
    """The master `away` is lost, then only a slave is left, then the slave is the master."""
    with pytest.raises(GantryError):
        await locks.lock(AWAY)
    peer.serve_route(["T"], {"away": peer.addr}, broker_id=2)
    with pytest.raises(ClientError, match="has no master"):
        await locks.lock(AWAY)
    assert not peer.received(LOCK)
    locks._instance.routes.mark_stale("T")  # the next poll of the name server
    peer.serve_route(["T"], {"away": peer.addr})
    assert await locks.lock(AWAY)
