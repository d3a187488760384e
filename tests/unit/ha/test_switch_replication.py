"""The master's side of replication under controllers: when a send is confirmed."""

from pathlib import Path

import pytest

from core_broker.ha.switch_replication import SwitchReplication
from core_broker.ha.sync_states import SyncStates
from core_broker.remoting.codes import ResponseCode
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
