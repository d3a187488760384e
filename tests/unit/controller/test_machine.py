"""The rules of the controllers' state machine, one by one."""

from itertools import count
from typing import Any

import pytest

from core_broker.controller.commands import (
    AlterSyncStateSet,
    AnyCommand,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    UnreadableState,
    UpdateBrokerAddress,
    decode_command,
    encode_command,
)
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.model import (
    BROKER_SETS_MAX,
    REPLICAS_MAX,
    BrokerSet,
    Candidate,
    Outcome,
)
from core_broker.remoting.codes import ResponseCode as Code

SET = "broker-a"


class Machine:
    """A machine with short calls for one broker set."""

    def __init__(self, brokers: int = 0) -> None:
        self.replicas = ReplicasInfo()
        for broker_id in range(1, brokers + 1):
            assert self.join(broker_id).code == Code.SUCCESS

    @property
    def set(self) -> BrokerSet:
        """The set of the test."""
        found = self.replicas.get(SET)
        assert found is not None
        return found

    def apply(self, command: AnyCommand) -> Outcome:
        """Apply a command as the log does."""
        return self.replicas.apply(encode_command(command))

    def join(self, broker_id: int, code: str = "", cluster: str = "c") -> Outcome:
        """Apply for a broker id."""
        code = code or f"10.0.0.{broker_id}:10911;1700000000{broker_id}"
        return self.apply(ApplyBrokerId(SET, cluster, broker_id, code))

    def elect(
        self,
        asking: int | None,
        *alive: int | Candidate,
        designated: bool = False,
        unclean: bool = False,
    ) -> Outcome:
        """Elect with the present version."""
        candidates = tuple(
            one if isinstance(one, Candidate) else Candidate(one, 0, 0) for one in alive
        )
        version = self.set.version
        return self.apply(ElectMaster(SET, asking, designated, candidates, unclean, version))

    def alter(self, *members: int, **changes: Any) -> Outcome:
        """Alter the sync-state set as the present master, all replicas alive."""
        fields = {
            "master_id": self.set.master_id,
            "master_epoch": self.set.master_epoch,
            "sync_state_set": members,
            "sync_state_set_epoch": self.set.sync_state_set_epoch,
            "alive": tuple(self.set.replicas),
        }
        return self.apply(AlterSyncStateSet(SET, **{**fields, **changes}))

    def clean(self, *ids: int, living: bool = False, alive: tuple[int, ...] = ()) -> Outcome:
        """Clean with the present version."""
        return self.apply(CleanBrokerData(SET, ids, living, alive, self.set.version))


def machine_in_sync(brokers: int = 3) -> Machine:
    machine = Machine(brokers)
    assert machine.elect(1, *range(1, brokers + 1)).code == Code.SUCCESS
    assert machine.alter(*range(1, brokers + 1)).code == Code.SUCCESS
    return machine


# ---- ids -----------------------------------------------------------------------------------------


def test_ids_are_assigned_one_after_the_other() -> None:
    machine = Machine()
    assert machine.replicas.get(SET) is None
    assert machine.replicas.next_broker_id(SET) == 1
    assert machine.join(2).code == Code.CONTROLLER_BROKER_ID_INVALID
    assert machine.join(1).code == Code.SUCCESS
    assert machine.set.replicas[1].address == "10.0.0.1:10911"
    assert machine.join(1, "other:1;2").code == Code.CONTROLLER_BROKER_ID_INVALID
    assert machine.join(3).code == Code.CONTROLLER_BROKER_ID_INVALID
    assert machine.join(1).code == Code.SUCCESS  # the same broker asks again
    assert machine.replicas.next_broker_id(SET) == 2


def test_an_id_is_never_assigned_again() -> None:
    machine = machine_in_sync(2)
    machine.alter(1)
    assert machine.clean(2).code == Code.SUCCESS
    assert machine.join(2).code == Code.CONTROLLER_BROKER_ID_INVALID
    assert machine.join(3).code == Code.SUCCESS


def test_a_set_belongs_to_one_cluster() -> None:
    machine = Machine(1)
    outcome = machine.join(2, cluster="other")
    assert (outcome.code, "belongs to cluster c" in outcome.remark) == (
        Code.CONTROLLER_BROKER_ID_INVALID,
        True,
    )


def test_brokers_and_sets_are_limited() -> None:
    machine = Machine(REPLICAS_MAX)
    assert machine.join(REPLICAS_MAX + 1).code == Code.CONTROLLER_BROKER_ID_INVALID
    names = count()
    while machine.apply(ApplyBrokerId(f"b{next(names)}", "c", 1, "h:1;1")).code == Code.SUCCESS:
        pass
    assert len(list(machine.replicas)) == BROKER_SETS_MAX


def test_an_address_changes_once() -> None:
    machine = Machine(1)
    move = UpdateBrokerAddress(SET, 1, "10.9.9.9:10911", machine.set.version)
    assert machine.apply(move).code == Code.SUCCESS
    assert machine.set.address(1) == "10.9.9.9:10911"
    back = UpdateBrokerAddress(SET, 1, "10.0.0.1:10911", move.version)
    assert machine.apply(back).is_stale
    assert machine.set.address(1) == "10.9.9.9:10911"
    unknown = UpdateBrokerAddress(SET, 2, "10.0.0.1:10911", machine.set.version)
    assert machine.apply(unknown).code == Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


# ---- the sync-state set --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "changes", "code"),
    [
        ((1, 2, 3), {}, Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED),
        ((1, 2), {"master_id": 2}, Code.CONTROLLER_INVALID_MASTER),
        ((1, 2), {"master_epoch": 0}, Code.CONTROLLER_FENCED_MASTER_EPOCH),
        ((1, 2), {"sync_state_set_epoch": 1}, Code.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH),
        ((1, 9), {}, Code.CONTROLLER_INVALID_REPLICAS),
        ((1, 2), {"alive": (1, 3)}, Code.CONTROLLER_BROKER_NOT_ALIVE),
        ((2, 3), {}, Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED),
        ((), {}, Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED),
        ((1, 2), {}, Code.SUCCESS),
    ],
)
def test_alterations_are_fenced(
    members: tuple[int, ...], changes: dict[str, Any], code: Code
) -> None:
    machine = machine_in_sync()
    before = machine.set
    outcome = machine.alter(*members, **changes)
    assert outcome.code == code
    if code == Code.SUCCESS:
        assert machine.set.sync_state_set == members
        assert machine.set.sync_state_set_epoch == before.sync_state_set_epoch + 1
    else:
        assert machine.set == before


def test_unknown_sets_are_refused_with_javas_codes() -> None:
    machine = Machine()
    alter = AlterSyncStateSet(SET, 1, 0, (1,), 0, (1,))
    assert machine.apply(alter).code == Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    elect = ElectMaster(SET, 1, False, (), False, 0)
    assert machine.apply(elect).code == Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
    clean = CleanBrokerData(SET, (), False, (), 0)
    assert machine.apply(clean).code == Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA


# ---- elections -----------------------------------------------------------------------------------


def test_the_asking_broker_becomes_the_first_master() -> None:
    machine = Machine(2)
    assert machine.elect(7, 1, 2).code == Code.CONTROLLER_ELECT_MASTER_FAILED
    assert machine.elect(None, 1, 2).code == Code.CONTROLLER_MASTER_NOT_AVAILABLE
    assert machine.elect(2, 1, designated=True).code == Code.CONTROLLER_ELECT_MASTER_FAILED
    assert machine.set.master_epoch == 0, "a failed first election changes nothing"
    assert machine.elect(2, 1).code == Code.SUCCESS
    assert (machine.set.master_id, machine.set.master_epoch) == (2, 1)
    assert (machine.set.sync_state_set, machine.set.sync_state_set_epoch) == ((2,), 1)
    assert machine.set.master_address == "10.0.0.2:10911"


def test_a_live_master_stays() -> None:
    machine = machine_in_sync()
    before = machine.set
    for asking in (None, 2):
        assert machine.elect(asking, 1, 2, 3).code == Code.CONTROLLER_MASTER_STILL_EXIST
    assert machine.elect(1, 1, 2, designated=True).code == Code.CONTROLLER_MASTER_STILL_EXIST
    assert machine.set == before


def test_the_best_log_wins_then_the_priority_then_the_id() -> None:
    high = 2**62  # Java's comparison overflows here
    orders = [
        ((Candidate(2, 3, 5, 0), Candidate(3, 4, 1, 9)), 3),
        ((Candidate(2, 3, 1, 0), Candidate(3, 3, high, 9)), 3),
        ((Candidate(2, 3, 5, 7), Candidate(3, 3, 5, 6)), 3),
        ((Candidate(3, 3, 5, 6), Candidate(2, 3, 5, 6)), 2),
    ]
    for candidates, expected in orders:
        machine = machine_in_sync()
        assert machine.elect(None, *candidates).code == Code.SUCCESS
        assert machine.set.master_id == expected
        assert machine.set.sync_state_set == (expected,)


def test_a_designated_broker_is_elected_or_nobody() -> None:
    machine = machine_in_sync()
    assert machine.elect(3, 1, 2, designated=True).code == Code.CONTROLLER_ELECT_MASTER_FAILED
    assert machine.set.master_id == 1
    assert machine.elect(3, 1, 2, 3, designated=True).code == Code.SUCCESS
    assert (machine.set.master_id, machine.set.master_epoch) == (3, 2)


def test_replicas_outside_of_the_sync_state_set_need_the_setting() -> None:
    machine = machine_in_sync()
    machine.alter(1)
    assert machine.elect(2, 2, 3).code == Code.CONTROLLER_ELECT_MASTER_FAILED
    assert machine.set.master_id == 1
    assert machine.elect(None, 2, 3).code == Code.CONTROLLER_MASTER_NOT_AVAILABLE
    assert (machine.set.master_id, machine.set.master_epoch) == (None, 2)
    assert machine.set.sync_state_set == (1,)
    again = machine.set
    assert machine.elect(None, 2, 3).code == Code.CONTROLLER_MASTER_NOT_AVAILABLE
    assert machine.set == again, "a set without master does not lose it twice"
    assert machine.elect(None, 2, 3, unclean=True).code == Code.SUCCESS
    assert (machine.set.master_id, machine.set.master_epoch) == (2, 3)


def test_an_election_for_an_old_state_of_the_set_changes_nothing() -> None:
    machine = machine_in_sync()
    old = ElectMaster(SET, 2, True, (Candidate(2),), False, machine.set.version)
    machine.elect(3, 2, 3, designated=True)
    before = machine.set
    assert machine.apply(old).is_stale
    assert machine.set == before


# ---- cleaning ------------------------------------------------------------------------------------


def test_living_brokers_are_cleaned_only_on_demand() -> None:
    machine = machine_in_sync()
    refused = Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert machine.clean(alive=(3,)).code == refused
    assert machine.clean(2, alive=(2,)).code == refused
    assert machine.clean(2, alive=(2,), living=True).code == Code.SUCCESS
    assert (tuple(machine.set.replicas), machine.set.sync_state_set) == ((1, 3), (1, 3))


def test_the_cleaned_master_leaves_a_set_without_master() -> None:
    machine = machine_in_sync()
    epoch = machine.set.master_epoch
    assert machine.clean(1).code == Code.SUCCESS
    assert (machine.set.master_id, machine.set.master_epoch) == (None, epoch + 1)
    assert machine.set.sync_state_set == (2, 3)


def test_the_last_replica_with_all_messages_is_not_cleaned_while_others_remain() -> None:
    machine = machine_in_sync()
    machine.alter(1)
    before = machine.set
    outcome = machine.clean(1)
    assert outcome.code == Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert "enableElectUncleanMaster" in outcome.remark
    assert machine.set == before


def test_counters_survive_the_cleaning_of_a_set() -> None:
    machine = machine_in_sync()
    before = machine.set
    assert machine.clean(living=True).code == Code.SUCCESS
    assert machine.replicas.get(SET) is None
    assert machine.replicas.next_broker_id(SET) == 4
    assert machine.join(1).code == Code.CONTROLLER_BROKER_ID_INVALID
    assert machine.join(4).code == Code.SUCCESS
    assert machine.elect(4).code == Code.SUCCESS
    assert machine.set.master_epoch > before.master_epoch
    assert machine.set.sync_state_set_epoch > before.sync_state_set_epoch


# ---- encoding ------------------------------------------------------------------------------------


def test_commands_are_read_as_written() -> None:
    commands: list[AnyCommand] = [
        ApplyBrokerId("b", "c", 1, "h:1;1"),
        UpdateBrokerAddress("b", 1, "h:2", 7),
        AlterSyncStateSet("b", 1, 2, (1, 2), 3, (1, 2, 3)),
        ElectMaster("b", None, False, (Candidate(1, 2, 3, 4),), True, 5),
        CleanBrokerData("b", (1,), True, (2,), 6),
    ]
    assert [decode_command(encode_command(command)) for command in commands] == commands


def test_the_encoding_of_version_1_does_not_change() -> None:
    command = ElectMaster("b", 2, True, (Candidate(2, 3, 4, 5),), False, 6)
    assert encode_command(command).hex() == (
        "0187a474797065ab456c6563744d6173746572ab62726f6b65725f6e616d65a162a962726f6b65725f696402"
        "ad69735f64657369676e61746564c3aa63616e646964617465739184a962726f6b65725f696402a565706f63"
        "6803aa6d61785f6f666673657404a87072696f7269747905ae616c6c6f77735f756e636c65616ec2a7766572"
        "73696f6e06"
    )


@pytest.mark.parametrize("data", [b"", b"\x02\x80", b"\x01", b"\x01\x80", b"\x01\xff", b"{}"])
def test_an_unreadable_command_or_snapshot_stops_the_node(data: bytes) -> None:
    machine = machine_in_sync()
    before = machine.replicas.snapshot()
    with pytest.raises(UnreadableState):
        machine.replicas.apply(data)
    with pytest.raises(UnreadableState):
        machine.replicas.restore(data)
    assert machine.replicas.snapshot() == before
