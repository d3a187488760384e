"""The master's side of replication under controllers: when a send is confirmed."""

import asyncio
from pathlib import Path

import pytest

from core_broker.ha.switch_frames import SlaveHandshake, encode_report, encode_slave_handshake
from core_broker.ha.switch_replication import ATTEMPTS_MAX, SwitchReplication
from core_broker.ha.sync_states import SyncStates
from core_broker.remoting.codes import ResponseCode
from tests.support.eventually import eventually
from tests.support.stores import Bench, message


@pytest.mark.parametrize(
    ("members_min", "answer"),
    [(1, ResponseCode.SUCCESS), (2, ResponseCode.SERVICE_NOT_AVAILABLE)],
)
async def test_a_set_that_became_too_small_confirms_no_send(
    tmp_path: Path, members_min: int, answer: ResponseCode
) -> None:
    """A send was accepted by two members; one is lost, and the controllers accept the other."""
    bench = Bench(
        tmp_path,
        broker_role="SYNC_MASTER",
        enable_controller_mode=True,
        all_ack_in_sync_state_set=True,
        min_in_sync_replicas=members_min,
    ).open()
    store = bench.store
    replication = SwitchReplication(store, lambda: store.config)
    states = SyncStates(1, 1, frozenset({1, 2}))
    replication.lead(states)
    assert replication.has_enough_members
    bench.put(message())
    codes: list[ResponseCode] = []
    replication.when_replicated(store.max_offset_physical, codes.append)
    assert codes == []
    states.leave(2)
    states.begin_report()
    assert states.adopt(2, frozenset({1}))
    replication.changed()
    assert store.gate.confirmed == store.max_offset_physical
    assert replication.has_enough_members is (members_min == 1)
    replication.resign()
    assert codes == [answer]
    await replication.stop()
    store.close()


async def test_a_member_that_lost_its_log_leaves(tmp_path: Path) -> None:
    """A slave reconnects with less than it has acknowledged: elected, it would lose messages."""
    bench = Bench(
        tmp_path,
        listen_port=0,
        broker_role="SYNC_MASTER",
        enable_controller_mode=True,
        all_ack_in_sync_state_set=True,
    ).open()
    store = bench.store
    assert store.epochs.begin(1, 0)
    replication = SwitchReplication(store, lambda: store.config)
    await replication.start(0)
    states = SyncStates(1, 1, frozenset({1, 2}))
    replication.lead(states)
    bench.put(message())
    end = store.max_offset_physical

    async def connected(acknowledged: int) -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection("127.0.0.1", replication.port)
        writer.write(encode_slave_handshake(SlaveHandshake(2)) + encode_report(acknowledged))
        await eventually(
            lambda: [link.acknowledged for link in replication.slaves] == [acknowledged]
        )
        return writer

    async def closed(writer: asyncio.StreamWriter) -> None:
        writer.close()
        await eventually(lambda: not replication.slaves)

    whole = await connected(end)
    assert store.gate.confirmed == end
    await closed(whole)
    assert states.is_leaving(2)
    empty = await connected(0)
    assert states.is_leaving(2)
    assert states.wanted == {1}
    await closed(empty)
    whole = await connected(end)
    assert not states.is_leaving(2)
    await closed(whole)
    replication.resign()
    await replication.stop()
    store.close()


async def test_invented_ids_take_no_memory(tmp_path: Path) -> None:
    """A peer that connects under one id after the other gets no more room than others."""
    bench = Bench(
        tmp_path,
        listen_port=0,
        broker_role="SYNC_MASTER",
        enable_controller_mode=True,
        all_ack_in_sync_state_set=True,
    ).open()
    store = bench.store
    assert store.epochs.begin(1, 0)
    bench.put(message())
    replication = SwitchReplication(store, lambda: store.config)
    await replication.start(0)
    replication.lead(SyncStates(1, 1, frozenset({1})))
    for broker_id in range(2, 2 + 2 * ATTEMPTS_MAX):
        _, writer = await asyncio.open_connection("127.0.0.1", replication.port)
        handshake = encode_slave_handshake(SlaveHandshake(broker_id))
        writer.write(handshake + encode_report(store.max_offset_physical))
        await eventually(lambda: bool(replication.slaves))
        writer.close()
        await eventually(lambda: not replication.slaves)
    assert len(replication._attempts) == ATTEMPTS_MAX
    replication.resign()
    await replication.stop()
    store.close()
