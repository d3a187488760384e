"""The replicas of all broker sets: the state machine behind the controllers' log.

Pure and deterministic. Compatible with RocketMQ 5.3.3's ReplicasInfoManager in codes, remarks and
the order of checks. Different, because Java loses data or the set there:

- an id is never assigned twice, and only the next id is assigned;
- counters survive the cleaning of a set, so epochs never begin again;
- a set that never had a master keeps that state when a controller finds no candidate;
- the first master is a registered broker;
- cleaning does not remove the last broker with all acknowledged messages while others remain;
- a whole set is cleaned when none of its brokers lives, also when a master is recorded.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from core_broker.controller.commands import (
    ENCODING_VERSION,
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    UnreadableState,
    UpdateBrokerAddress,
    check_version,
    decode_command,
)
from core_broker.controller.election import choose_master
from core_broker.controller.model import (
    BROKER_SETS_MAX,
    REPLICAS_MAX,
    BrokerSet,
    Outcome,
    Replica,
)
from core_broker.remoting.codes import ResponseCode as Code

_snapshot_decoder: msgspec.msgpack.Decoder[list[BrokerSet]] = msgspec.msgpack.Decoder(
    list[BrokerSet]
)


class ReplicasInfo:
    """All broker sets by name. `apply`, `snapshot` and `restore` are those of a StateMachine."""

    def __init__(self) -> None:
        self._sets: dict[str, BrokerSet] = {}
        self._handlers: dict[type, Callable[[Any], Outcome]] = {
            ApplyBrokerId: self._apply_broker_id,
            UpdateBrokerAddress: self._update_address,
            AlterSyncStateSet: self._alter_sync_state_set,
            ElectMaster: self._elect_master,
            CleanBrokerData: self._clean,
        }

    # -- questions --

    def get(self, name: str) -> BrokerSet | None:
        """Return a set with registered brokers, None for an unknown name."""
        found = self._sets.get(name)
        return found if found is not None and found.is_known else None

    def next_broker_id(self, name: str) -> int:
        """Return the id that a new broker of the set must apply for."""
        return (self._sets.get(name) or BrokerSet(name=name, cluster="")).next_broker_id

    def __iter__(self) -> Iterator[BrokerSet]:
        """Iterate over the sets with registered brokers."""
        return (found for found in self._sets.values() if found.is_known)

    # -- the state machine --

    def apply(self, command: bytes) -> Outcome:
        """Execute a committed command; raises UnreadableState, and then the node must stop."""
        decoded = decode_command(command)
        return self._handlers[type(decoded)](decoded)

    def snapshot(self) -> bytes:
        """Return the whole state: version byte and MessagePack, sorted by name."""
        sets = [
            replace(found, replicas=dict(sorted(found.replicas.items())))
            for _, found in sorted(self._sets.items())
        ]
        return bytes((ENCODING_VERSION,)) + msgspec.msgpack.encode(sets)

    def restore(self, data: bytes) -> None:
        """Replace the whole state; raises UnreadableState and then keeps the present state."""
        check_version("snapshot", data)
        try:
            sets = _snapshot_decoder.decode(memoryview(data)[1:])
        except (msgspec.MsgspecError, RecursionError, ValueError) as fault:
            raise UnreadableState("snapshot", str(fault)) from None
        self._sets = {found.name: found for found in sets}

    # -- commands --

    def _apply_broker_id(self, command: ApplyBrokerId) -> Outcome:
        known = self._sets.get(command.broker_name)
        if known is None and len(self._sets) >= BROKER_SETS_MAX:
            return Outcome(
                Code.CONTROLLER_BROKER_ID_INVALID, f"{BROKER_SETS_MAX} broker sets are known"
            )
        found = known or BrokerSet(name=command.broker_name, cluster=command.cluster_name)
        replica = found.replicas.get(command.broker_id)
        if replica is not None and replica.check_code == command.check_code:
            return Outcome(broker_set=found)
        if remark := _id_problem(found, command):
            return Outcome(Code.CONTROLLER_BROKER_ID_INVALID, remark)
        added = Replica(command.check_code.partition(";")[0], command.check_code)
        return self._put(
            replace(
                found,
                cluster=command.cluster_name,
                next_broker_id=command.broker_id + 1,
                replicas={**found.replicas, command.broker_id: added},
            )
        )

    def _update_address(self, command: UpdateBrokerAddress) -> Outcome:
        found = self.get(command.broker_name)
        replica = None if found is None else found.replicas.get(command.broker_id)
        if found is None or replica is None:
            return Outcome(
                Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
                f"BrokerId: {command.broker_id} hasn't been registered in broker-set: "
                f"{command.broker_name}",
            )
        if replica.address == command.address:
            return Outcome(broker_set=found)
        if found.version != command.version:
            return Outcome(broker_set=found, is_stale=True)
        moved = Replica(command.address, replica.check_code)
        return self._put(replace(found, replicas={**found.replicas, command.broker_id: moved}))

    def _alter_sync_state_set(self, command: AlterSyncStateSet) -> Outcome:
        found = self.get(command.broker_name)
        if found is None:
            return Outcome(
                Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "Broker metadata is not existed"
            )
        if refused := _refused_alteration(found, command):
            return refused
        members = tuple(sorted(set(command.sync_state_set)))
        epoch = found.sync_state_set_epoch + 1
        return self._put(replace(found, sync_state_set=members, sync_state_set_epoch=epoch))

    def _elect_master(self, command: ElectMaster) -> Outcome:
        found = self.get(command.broker_name)
        if found is None:
            return Outcome(
                Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, "Broker hasn't been registered"
            )
        if found.version != command.version:
            return Outcome(broker_set=found, is_stale=True)
        chosen = _chosen(found, command)
        if chosen is None:
            return self._elect_nobody(found, command)
        if chosen == found.master_id:
            return Outcome(
                Code.CONTROLLER_MASTER_STILL_EXIST,
                f"The old master {chosen} is still alive, not need to elect new master for broker "
                f"{found.name}",
                found,
            )
        return self._put(
            replace(
                found,
                master_id=chosen,
                master_epoch=found.master_epoch + 1,
                sync_state_set=(chosen,),
                sync_state_set_epoch=found.sync_state_set_epoch + 1,
            )
        )

    def _elect_nobody(self, found: BrokerSet, command: ElectMaster) -> Outcome:
        if command.broker_id is not None:
            return Outcome(
                Code.CONTROLLER_ELECT_MASTER_FAILED, "Failed to elect a new master", found
            )
        if found.master_id is not None:
            # The sync-state set stays: its members alone may become master again.
            self._put(replace(found, master_id=None, master_epoch=found.master_epoch + 1))
        return Outcome(
            Code.CONTROLLER_MASTER_NOT_AVAILABLE,
            "Old master has down and failed to elect a new broker master",
            self._sets[found.name],
        )

    def _clean(self, command: CleanBrokerData) -> Outcome:
        found = self.get(command.broker_name)
        if found is not None and found.version != command.version:
            return Outcome(broker_set=found, is_stale=True)
        if remark := _cleaning_problem(found, command):
            return Outcome(Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, remark, found)
        assert found is not None  # an unknown set is a problem
        removed = set(command.broker_ids or found.replicas)
        replicas = {key: value for key, value in found.replicas.items() if key not in removed}
        if len(replicas) == len(found.replicas):
            return Outcome(broker_set=found)
        members = tuple(member for member in found.sync_state_set if member not in removed)
        loses_master = found.master_id in removed
        return self._put(
            replace(
                found,
                replicas=replicas,
                master_id=None if loses_master else found.master_id,
                master_epoch=found.master_epoch + loses_master,
                sync_state_set=members,
                sync_state_set_epoch=found.sync_state_set_epoch + (members != found.sync_state_set),
            )
        )

    def _put(self, changed: BrokerSet) -> Outcome:
        changed = replace(changed, version=changed.version + 1)
        self._sets[changed.name] = changed
        return Outcome(broker_set=changed)


def _id_problem(found: BrokerSet, command: ApplyBrokerId) -> str:
    """Return why the set does not assign the id, "" when it does."""
    if not found.is_known and command.broker_id != found.next_broker_id:
        return (
            f"Broker-set: {found.name} hasn't been registered in controller, but broker try to "
            f"apply brokerId: {command.broker_id}"
        )
    if found.is_known and found.cluster != command.cluster_name:
        return f"Broker-set: {found.name} belongs to cluster {found.cluster}"
    if len(found.replicas) >= REPLICAS_MAX:
        return f"Broker-set: {found.name} has {REPLICAS_MAX} brokers, the limit of a set"
    if command.broker_id != found.next_broker_id:
        return f"Fail to apply brokerId: {command.broker_id} in broker-set: {found.name}"
    return ""


def _refused_alteration(found: BrokerSet, command: AlterSyncStateSet) -> Outcome | None:
    members = set(command.sync_state_set)
    rejecting = "Rejecting alter syncStateSet request because the"
    if members == set(found.sync_state_set):
        return Outcome(
            Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
            "The newSyncStateSet is equal with oldSyncStateSet, no needed to update syncStateSet",
        )
    if found.master_id is None or found.master_id != command.master_id:
        return Outcome(
            Code.CONTROLLER_INVALID_MASTER,
            f"{rejecting} current leader is:{{{found.master_id}}}, not {{{command.master_id}}}",
        )
    if found.master_epoch != command.master_epoch:
        return Outcome(
            Code.CONTROLLER_FENCED_MASTER_EPOCH,
            f"{rejecting} current master epoch is:{{{found.master_epoch}}}, "
            f"not {{{command.master_epoch}}}",
        )
    if found.sync_state_set_epoch != command.sync_state_set_epoch:
        return Outcome(
            Code.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
            f"{rejecting} current syncStateSet epoch is:{{{found.sync_state_set_epoch}}}, "
            f"not {{{command.sync_state_set_epoch}}}",
        )
    for member in sorted(members):
        if member not in found.replicas:
            return Outcome(
                Code.CONTROLLER_INVALID_REPLICAS, f"{rejecting} replicas {{{member}}} don't exist"
            )
        if member not in command.alive:
            return Outcome(
                Code.CONTROLLER_BROKER_NOT_ALIVE, f"{rejecting} replicas {{{member}}} don't alive"
            )
    if found.master_id not in members:
        return Outcome(
            Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
            f"{rejecting} newSyncStateSet don't contains origin leader {{{found.master_id}}}",
        )
    return None


def _chosen(found: BrokerSet, command: ElectMaster) -> int | None:
    """Return the master that the command makes, None for nobody."""
    asking = command.broker_id
    alive = {candidate.broker_id for candidate in command.candidates}
    if not found.sync_state_set:
        # No broker has acknowledged messages of this set: the asking broker becomes the first
        # master, a designated one only when it lives.
        is_eligible = asking in found.replicas and (asking in alive or not command.is_designated)
        return asking if is_eligible else None
    return choose_master(
        found,
        command.candidates,
        asking if command.is_designated else None,
        allows_unclean=command.allows_unclean,
    )


def _cleaning_problem(found: BrokerSet | None, command: CleanBrokerData) -> str:
    """Return why nothing is cleaned, "" when it is."""
    name = command.broker_name
    if not command.cleans_living:
        if not command.broker_ids and command.alive:
            return f"Broker {name} is still alive, clean up failure"
        for broker_id in command.broker_ids:
            if broker_id in command.alive:
                return f"Broker [{name},  {broker_id}] is still alive, clean up failure"
    if found is None:
        return f"Broker {name} is not existed,clean broker data failure."
    removed = set(command.broker_ids or found.replicas)
    if (
        found.replicas.keys() - removed
        and found.sync_state_set
        and (removed.issuperset(found.sync_state_set))
    ):
        return (
            f"Broker {name} would keep no member of its sync-state set {list(found.sync_state_set)}"
            ", clean up failure; clean the whole set, or let enableElectUncleanMaster elect one "
            "of the others first"
        )
    return ""
