"""Replica sets from answers of brokers and controllers; causes and picture of role changes."""

from dataclasses import replace
from typing import Any

import pytest

from console.gateway.engine.errors import NotFound
from console.gateway.engine.known_brokers import BrokerRef, KnownBroker
from console.gateway.replicas.building import (
    EPOCHS_KEPT_MAX,
    REPLICAS_MAX,
    Answers,
    build_set,
    confirm_offset,
    members_of,
)
from console.gateway.replicas.controllers import (
    CONTROLLERS_MAX,
    GROUPS_MAX,
    addrs_in,
    controller,
    controllers_in,
    groups_in,
    name_in,
)
from console.gateway.replicas.electing import plan_election
from console.gateway.replicas.model import ControllerGroup, ReplicaSet, ReplicaSets
from console.services.replicas.causes import Seen, cause_of, is_change, seen_in
from console.services.replicas.models import Cause
from console.services.replicas.timeline import BAR_WIDTH_MIN, ROWS_MAX, WIDTH, draw
from console.services.replicas.views import epoch_lines
from core_broker.remoting.bodies import HARuntimeInfo
from core_broker.remoting.bodies.replicas import (
    EpochEntryCache,
    EpochEntryInfo,
    ReplicaIdentity,
    ReplicasEntry,
)
from core_broker.remoting.bodies.stats import HAConnectionRuntimeInfo
from core_broker.remoting.headers.controller import GetMetaDataResponseHeader

A, B, C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
OPEN_END = 2**63 - 1


def known(broker_id: int, addr: str, *, registered: bool = True) -> KnownBroker:
    return KnownBroker(BrokerRef("broker-a", broker_id, addr), "C1", 1, 1, registered)


def identity(number: int, addr: str, alive: bool | None = True) -> ReplicaIdentity:
    return ReplicaIdentity(
        broker_name="broker-a", broker_id=number, broker_address=addr, alive=alive
    )


def entry(**more: Any) -> ReplicasEntry:
    fields: dict[str, Any] = {
        "master_broker_id": 2,
        "master_address": B,
        "master_epoch": 4,
        "sync_state_set_epoch": 9,
        "in_sync_replicas": [identity(2, B), identity(3, C)],
        "not_in_sync_replicas": [identity(1, A, alive=False)],
    }
    return ReplicasEntry(**{**fields, **more})


def epochs_of(number: int, *starts: int, end: int) -> EpochEntryCache:
    ends = [*starts[1:], OPEN_END]
    return EpochEntryCache(
        cluster_name="C1",
        broker_name="broker-a",
        broker_id=number,
        max_offset=end,
        epoch_list=[
            EpochEntryInfo(epoch=epoch, start_offset=start, end_offset=stop)
            for epoch, (start, stop) in enumerate(zip(starts, ends, strict=True), 1)
        ],
    )


def answers(**more: Any) -> Answers:
    ends = {B: "1000", C: "900"}
    fields: dict[str, Any] = {
        "runtimes": {
            addr: {"commitLogMaxOffset": end, "bootTimestamp": "50"} for addr, end in ends.items()
        },
        "ha": {
            B: HARuntimeInfo(
                ha_connection_info=[HAConnectionRuntimeInfo(addr="x:1", slave_ack_offset=890)]
            )
        },
        "epochs": {B: epochs_of(2, 0, 700, end=1000), C: epochs_of(3, 0, 700, end=900)},
        "reasons": {A: "no answer"},
        "down": {A},
    }
    return Answers(**{**fields, **more})


def controlled(**more: Any) -> ReplicaSet:
    found = entry(**more)
    members = members_of("broker-a", [known(0, B), known(3, C)], found)
    return build_set("broker-a", "C1", members, found, answers(), has_controllers=True)


def state(found: ReplicaSet, *, leader: bool = True) -> ReplicaSets:
    metadata = GetMetaDataResponseHeader(
        group="g", controller_leader_address="c:1" if leader else "", is_leader=leader, peers=""
    )
    group = ControllerGroup((controller("c:1", metadata, None),), ("broker-a",))
    return ReplicaSets((group,), (found,))


def test_the_controllers_decide_about_roles_and_name_a_replica_that_is_down() -> None:
    found = controlled()
    assert [(one.number, one.role, one.state) for one in found.replicas] == [
        (2, "master", "up"),
        (1, "slave", "down"),
        (3, "slave", "up"),
    ]
    master, lost, slave = found.replicas
    assert master.ref.is_master, "registered under id 0"
    assert (lost.is_alive, lost.is_in_sync, lost.lag_bytes, lost.reason) == (
        *(False, False, None),
        "no answer",
    )
    assert (slave.lag_bytes, slave.lag_ms) == (100, None)
    assert (found.master_epoch, found.sync_state_set_epoch, found.mode) == (4, 9, "controllers")
    assert (found.confirm_offset, found.connected) == (890, 1)
    assert [each.end_offset for each in slave.epochs or ()] == [700, 900]


def test_without_controllers_the_broker_id_is_the_role() -> None:
    members = members_of("broker-a", [known(1, C), known(0, B, registered=False)], None)
    found = build_set("broker-a", "C1", members, None, answers(), has_controllers=False)
    assert [(one.role, one.state) for one in found.replicas] == [
        ("master", "unregistered"),
        ("slave", "up"),
    ]
    assert (found.mode, found.master_epoch, found.confirm_offset) == ("fixed", None, None)
    assert found.has_master
    lost = build_set(*("broker-a", "C1", members, None), answers(down={B}), has_controllers=False)
    assert not lost.has_master
    single = build_set("broker-a", "C1", members[:1], None, answers(), has_controllers=False)
    assert single.mode == "single"


def test_an_unknown_process_and_a_set_without_master_are_no_masters() -> None:
    found = members_of("broker-a", [known(0, "10.0.0.9:1")], entry(master_broker_id=None))
    assert [one.role for one in found] == ["slave", "slave", "slave", "unknown"]


@pytest.mark.parametrize(
    ("end", "acks", "in_sync", "expected"),
    [
        (None, [], 1, None),
        (10, [], 0, None),
        (10, [], 1, 10),
        (10, [7, 9], 3, 7),
        (10, [12], 2, 10),
        (10, [7], 3, None),
        (10, [7, 8, 9], 3, None),
    ],
)
def test_the_confirm_offset_is_known_only_when_each_connection_is_a_member(
    end: int | None, acks: list[int], in_sync: int, expected: int | None
) -> None:
    assert confirm_offset(end, acks, in_sync) == expected


def test_answers_beyond_the_limits_are_cut() -> None:
    many = [identity(number, f"10.0.0.1:{number}") for number in range(1, 1_000)]
    members = members_of("broker-a", [], entry(in_sync_replicas=many))
    assert len(members) == REPLICAS_MAX
    starts = tuple(range(100))
    of_b = answers(epochs={B: epochs_of(2, *starts, end=1000)})
    found = build_set(
        *("broker-a", "C1", members_of("broker-a", [], entry()), entry(), of_b),
        has_controllers=True,
    )
    assert len(found.replicas[0].epochs or ()) == EPOCHS_KEPT_MAX


@pytest.mark.parametrize(
    ("text", "addrs"),
    [
        ("", ()),
        (" b:2 ; a:1;a:1;", ("a:1", "b:2")),
        ("[::1]:9878", ("[::1]:9878",)),
        ("no port;http://x:1;a b:1;x:123456;:1;a:-1", ()),
        (";".join(f"h{n}:1" for n in range(99)), None),
    ],
)
def test_addresses_of_controllers(text: str, addrs: tuple[str, ...] | None) -> None:
    found = addrs_in(text)
    assert len(found) == CONTROLLERS_MAX if addrs is None else found == addrs


def test_groups_of_controllers_by_the_settings_of_brokers() -> None:
    def config(addr: str, mode: str = "true") -> dict[str, str]:
        return {"enableControllerMode": mode, "controllerAddr": addr}

    groups = groups_in(
        {
            BrokerRef("broker-a", 0, A): config("c:1;c:2"),
            BrokerRef("broker-a", 2, B): config("other:1"),
            BrokerRef("broker-b", 0, C): config("c:2;c:1"),
            BrokerRef("broker-c", 0, "x:1"): config("c:1;c:2", "false"),
            BrokerRef("broker-d", 0, "x:2"): {},
        }
    )
    assert groups == {("c:1", "c:2"): ("broker-a", "broker-b")}
    many = {BrokerRef(f"b{n}", 0, f"x:{n}"): config(f"c:{n}") for n in range(1, 60)}
    assert len(groups_in(many)) == GROUPS_MAX


def test_a_controller_is_what_it_answers() -> None:
    peers = "n0:c:1;n1:c:2;garbage;;"
    leader = GetMetaDataResponseHeader(group="g", is_leader=True, peers=peers)
    assert (controller("c:2", leader, None).name, controller("c:2", leader, None).role) == (
        "n1",
        "leader",
    )
    lost = controller("c:1", None, "refused")
    assert (lost.role, lost.failure, lost.is_up) == ("unknown", "refused", False)
    assert name_in(peers, "c:9") is None
    both = controllers_in(("c:1", "c:2"), {"c:2": leader}, {"c:1": "refused"})
    assert [(each.name, each.is_up) for each in both] == [("n0", False), ("n1", True)]
    assert controllers_in(("c:1",), {}, {})[0].name is None


def test_an_election_needs_a_living_member_of_the_sync_state_set() -> None:
    found = controlled()
    assert plan_election(state(found), "broker-a", 3).obstacle is None
    for number, word in ((2, "is the master"), (1, "heartbeats")):
        assert word in str(plan_election(state(found), "broker-a", number).obstacle)
    outside = controlled(in_sync_replicas=[identity(2, B)], not_in_sync_replicas=[identity(3, C)])
    assert "sync-state set" in str(plan_election(state(outside), "broker-a", 3).obstacle)
    no_leader = plan_election(state(found, leader=False), "broker-a", 3)
    assert "majority" in str(no_leader.obstacle)
    plain = replace(found, mode="fixed")
    assert "no controllers" in str(plan_election(state(plain), "broker-a", 3).obstacle)
    for name, number in (("broker-z", 3), ("broker-a", 9)):
        with pytest.raises(NotFound):
            plan_election(state(found), name, number)


def test_epochs_of_replicas_side_by_side() -> None:
    first, second = epoch_lines(controlled())
    assert (first.number, first.start_offset, first.differs) == (2, 700, False)
    assert [cell and cell.end_offset for cell in first.cells] == [1000, None, 900]
    assert second.number == 1


def seen(addr: str, epoch: int | None = 4, last: str = "") -> Seen:
    return Seen(addr, None, epoch, last or addr, None)


def test_causes_of_role_changes() -> None:
    found = controlled()  # B is the master, A is down, C runs since 50

    def cause(before: Seen | None, now: Seen, seen_ms: int = 100, **more: bool) -> Cause:
        return cause_of(before, now, found, seen_ms, is_resumed=more.get("is_resumed", False))

    assert cause(None, seen(B)) is Cause.FIRST
    assert cause(seen(A), seen(B)) is Cause.MASTER_LOST
    assert cause(seen("gone:1"), seen(B)) is Cause.MASTER_LOST
    assert cause(seen(C), seen(B)) is Cause.HANDED_OVER
    assert cause(seen(C), seen(B), 49) is Cause.MASTER_RESTARTED
    assert cause(seen(C), seen(B), is_resumed=True) is Cause.UNWATCHED
    assert cause(seen(B), seen("", last=B)) is Cause.LOST
    assert cause(seen("", last=B), seen(B)) is Cause.RETURNED
    assert cause(seen("", last=C), seen(B)) is Cause.MASTER_LOST
    assert cause(seen(B, 3), seen(B, 4)) is Cause.ELECTED_AGAIN


def test_only_another_master_or_epoch_is_a_change() -> None:
    assert is_change(None, seen(A))
    assert is_change(seen(A), seen(B))
    assert is_change(seen(A, 1), seen(A, 2))
    assert not is_change(seen(A, 1), seen(A, 1))
    assert not is_change(seen(A, None), seen(A, 1)), "an unknown epoch differs from none"
    assert not is_change(seen("", 1, A), seen("", 2, A))
    assert seen_in(controlled(master_broker_id=1), seen(B)) == Seen("", None, 4, B, None)


class Change:
    def __init__(self, at_ms: int, addr: str) -> None:
        self.at_ms, self.addr, self.epoch = at_ms, addr, 1


def test_the_picture_has_a_row_per_master_and_the_times_without_observations() -> None:
    changes = [Change(0, A), Change(400, ""), Change(500, B)]
    picture = draw(changes, [(0, 600), (800, 1_000)], 100, 1_100, [A, B, C])
    rows = {row.addr: [(bar.x, bar.width) for bar in row.bars] for row in picture.rows}
    assert rows == {
        A: [(0.0, 300.0)],
        B: [(400.0, 100.0), (700.0, 200.0)],
        C: [],
        "": [(300.0, 100.0)],
    }
    assert [(bar.x, bar.width) for bar in picture.unwatched] == [(500.0, 200.0), (900.0, 100.0)]
    assert {row.addr: row.total_ms for row in picture.rows} == {A: 300, B: 300, C: 0, "": 100}


def test_the_picture_is_bounded_and_stays_inside() -> None:
    changes = [Change(n * 10, f"10.0.0.{n}:1") for n in range(100)]
    picture = draw(changes, [(0, 1_000_000)], 0, 1_000_000, [])
    assert len(picture.rows) == ROWS_MAX
    for row in picture.rows:
        for bar in row.bars:
            assert bar.width >= BAR_WIDTH_MIN
            assert 0 <= bar.x <= WIDTH - bar.width
    empty = draw([], [], 5, 5, [A])
    assert [row.bars for row in empty.rows] == [()]
