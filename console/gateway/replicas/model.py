"""Read models of replica sets and controllers. None: unknown."""

from dataclasses import dataclass
from typing import Literal

from console.gateway.engine.known_brokers import BrokerRef

#: Name of a failed controller among the failures of an answer.
CONTROLLER = "controller"

#: `controllers`: controllers choose the master. `fixed`: no controllers; the brokers'
#: settings or a DLedger group do. `single`: one process without controllers.
Mode = Literal["controllers", "fixed", "single"]
Role = Literal["master", "slave", "unknown"]
#: `unregistered`: the broker answers, and no name server lists it.
ReplicaState = Literal["up", "down", "unregistered"]


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller; `leader_addr` is the leader as this controller knows it."""

    addr: str
    name: str | None
    role: Literal["leader", "follower", "unknown"]
    leader_addr: str | None
    #: Reason of a missing answer.
    failure: str | None

    @property
    def is_up(self) -> bool:
        return self.failure is None


@dataclass(frozen=True, slots=True)
class ControllerGroup:
    """The controllers that the settings of some brokers name."""

    controllers: tuple[Controller, ...]
    #: Names of the replica sets.
    broker_names: tuple[str, ...]

    @property
    def leader(self) -> Controller | None:
        """The controller that calls itself the leader: only a majority makes one."""
        return next((one for one in self.controllers if one.role == "leader"), None)

    @property
    def addrs(self) -> tuple[str, ...]:
        return tuple(one.addr for one in self.controllers)

    @property
    def name(self) -> str:
        return ";".join(self.addrs)

    @property
    def down(self) -> tuple[Controller, ...]:
        return tuple(one for one in self.controllers if not one.is_up)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of a commit log. `began_ms`: time of the first message of the epoch."""

    number: int
    start_offset: int
    end_offset: int
    began_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Replica:
    """A broker process of a set.

    `number` is the id at the controllers, without controllers the broker id. `end_offset` is the
    end of the commit log; `lag_bytes` are the bytes of the master's log behind it, an upper bound,
    and `lag_ms` is the age of the oldest message that the slave lacks.
    """

    ref: BrokerRef
    number: int | None
    role: Role
    state: ReplicaState
    reason: str | None
    version: str | None
    started_ms: int | None
    #: Whether the controllers receive heartbeats.
    is_alive: bool | None
    is_in_sync: bool | None
    end_offset: int | None
    lag_bytes: int | None = None
    lag_ms: int | None = None
    epochs: tuple[Epoch, ...] | None = None

    @property
    def addr(self) -> str:
        return self.ref.addr

    @property
    def last_epoch(self) -> Epoch | None:
        return self.epochs[-1] if self.epochs else None


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """The processes of one broker name, the master first."""

    name: str
    cluster_name: str
    mode: Mode
    replicas: tuple[Replica, ...]
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    #: End of the messages that the whole sync-state set has.
    confirm_offset: int | None = None
    #: Connections of slaves to the master.
    connected: int | None = None
    #: True when a controller has answered about the set.
    is_known: bool = False

    @property
    def master(self) -> Replica | None:
        return next((one for one in self.replicas if one.role == "master"), None)

    @property
    def in_sync(self) -> tuple[Replica, ...]:
        members = (one for one in self.replicas if one.is_in_sync)
        return tuple(sorted(members, key=lambda one: one.number or 0))

    @property
    def has_master(self) -> bool:
        """Whether a master answers."""
        return self.master is not None and self.master.state != "down"

    @property
    def etag(self) -> str:
        return f"{self.master_epoch}-{self.sync_state_set_epoch}"


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """All replica sets of a cluster, and their controllers."""

    groups: tuple[ControllerGroup, ...]
    sets: tuple[ReplicaSet, ...]

    @property
    def replicas(self) -> list[Replica]:
        """The processes of all sets."""
        return [replica for each in self.sets for replica in each.replicas]

    def get(self, name: str) -> ReplicaSet | None:
        return next((one for one in self.sets if one.name == name), None)

    def group_of(self, name: str) -> ControllerGroup | None:
        return next((one for one in self.groups if name in one.broker_names), None)
