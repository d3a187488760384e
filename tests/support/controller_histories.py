"""Random histories of the controllers' state machine, and what must hold after every command."""

import random

from core_broker.controller.commands import (
    AlterSyncStateSet,
    AnyCommand,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    UpdateBrokerAddress,
    encode_command,
)
from core_broker.controller.machine import ReplicasInfo
from core_broker.controller.model import BrokerSet, Candidate

NAMES = ("broker-a", "broker-b")


class Invariants:
    """What must hold over the whole history of a state machine."""

    def __init__(self) -> None:
        self.masters: dict[tuple[str, int], int] = {}
        self.owners: dict[tuple[str, int], str] = {}
        self.last: dict[str, BrokerSet] = {}

    def check(self, machine: ReplicasInfo) -> None:
        """Check the present state against itself and against all earlier states."""
        for found in machine:
            self._check_set(found)
            before = self.last.get(found.name)
            if before is not None:
                assert found.version >= before.version
                assert found.master_epoch >= before.master_epoch
                assert found.sync_state_set_epoch >= before.sync_state_set_epoch
                assert found.next_broker_id >= before.next_broker_id
                if found.master_id != before.master_id:
                    assert found.master_epoch > before.master_epoch
                if found.sync_state_set != before.sync_state_set:
                    assert found.sync_state_set_epoch > before.sync_state_set_epoch
                if found != before:
                    assert found.version > before.version
            self.last[found.name] = found

    def _check_set(self, found: BrokerSet) -> None:
        if found.master_id is not None:
            assert found.master_id in found.sync_state_set
            only = self.masters.setdefault((found.name, found.master_epoch), found.master_id)
            assert only == found.master_id, "two masters of one epoch"
        assert set(found.sync_state_set) <= found.replicas.keys()
        assert found.next_broker_id > max(found.replicas)
        for broker_id, replica in found.replicas.items():
            owner = self.owners.setdefault((found.name, broker_id), replica.check_code)
            assert owner == replica.check_code, "one id for two brokers"


class Script:
    """Chooses the next command, usually one that fits the state."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def next_command(self, machine: ReplicasInfo) -> AnyCommand:
        """Return a command for one of a few broker sets."""
        self.count += 1
        name = self.random.choice(NAMES)
        found = machine.get(name) or BrokerSet(name=name, cluster="c")
        choose = self.random.choice(
            (
                self.apply_id,
                self.address,
                self.alter,
                self.alter,
                self.elect,
                self.elect,
                self.clean,
            )
        )
        return choose(machine, found)

    def _alive(self, found: BrokerSet) -> tuple[int, ...]:
        return tuple(key for key in sorted(found.replicas) if self.random.random() < 0.7)

    def _some_id(self, found: BrokerSet) -> int:
        return self.random.choice([*found.replicas, self.random.randint(-1, 5)])

    def _near(self, value: int) -> int:
        return value + self.random.choice((0, 0, 0, 0, -1, 1))

    def apply_id(self, machine: ReplicasInfo, found: BrokerSet) -> AnyCommand:
        """A new broker, or a broker that did not hear the answer."""
        broker_id = self._near(machine.next_broker_id(found.name))
        code = f"10.0.0.{broker_id}:10911;{self.count}"
        if found.replicas and self.random.random() < 0.3:
            broker_id = self._some_id(found)
            code = found.replicas[broker_id].check_code if broker_id in found.replicas else code
        return ApplyBrokerId(found.name, "c", broker_id, code)

    def address(self, machine: ReplicasInfo, found: BrokerSet) -> AnyCommand:
        """A broker that moved."""
        address = f"10.0.1.{self.count % 250}:10911"
        return UpdateBrokerAddress(
            found.name, self._some_id(found), address, self._near(found.version)
        )

    def alter(self, machine: ReplicasInfo, found: BrokerSet) -> AnyCommand:
        """A master, or an old one, that reports its replicas."""
        master = found.master_id if self.random.random() < 0.9 else self._some_id(found)
        members = {*self._alive(found), master} if self.random.random() < 0.9 else {2, 9}
        return AlterSyncStateSet(
            found.name,
            master or 0,
            self._near(found.master_epoch),
            tuple(member or 0 for member in members),
            self._near(found.sync_state_set_epoch),
            tuple(found.replicas) if self.random.random() < 0.7 else self._alive(found),
        )

    def elect(self, machine: ReplicasInfo, found: BrokerSet) -> AnyCommand:
        """A broker, an administrator or the controller that asks for an election."""
        asking = self.random.choice((None, self._some_id(found)))
        candidates = tuple(
            Candidate(key, self.random.randint(0, 3), self.random.randint(0, 3))
            for key in self._alive(found)
        )
        return ElectMaster(
            found.name,
            asking,
            asking is not None and self.random.random() < 0.5,
            candidates,
            self.random.random() < 0.2,
            self._near(found.version),
        )

    def clean(self, machine: ReplicasInfo, found: BrokerSet) -> AnyCommand:
        """An administrator who removes brokers; rarely the whole set."""
        ids = () if self.random.random() < 0.2 else (self._some_id(found),)
        return CleanBrokerData(
            found.name,
            ids,
            self.random.random() < 0.3,
            self._alive(found),
            self._near(found.version),
        )


def encoded_history(seed: int, length: int) -> list[bytes]:
    """Return the commands of a random history, and check the invariants along the way."""
    script, machine, invariants = Script(seed), ReplicasInfo(), Invariants()
    history: list[bytes] = []
    for _ in range(length):
        if history and script.random.random() < 0.1:
            command = script.random.choice(history)  # a proposal that is repeated later
        else:
            command = encode_command(script.next_command(machine))
        machine.apply(command)
        history.append(command)
        invariants.check(machine)
    return history
