"""Values of the controller: the brokers of one brokerName, their master, and candidates.

Compatible in meaning with RocketMQ's BrokerReplicaInfo, SyncStateInfo and BrokerLiveInfo. All
values are immutable: a change of the state machine replaces a BrokerSet.
"""

from msgspec import Struct

from core_broker.remoting.codes import ResponseCode

#: The first broker id that a controller assigns in a set.
FIRST_BROKER_ID = 1
#: Brokers of one set.
REPLICAS_MAX = 64
#: Broker sets of all clusters, including the counters of sets that were cleaned.
BROKER_SETS_MAX = 10_000
#: Characters of a cluster or broker name, of an address, and of a check code.
NAME_CHARS_MAX = 255
ADDRESS_CHARS_MAX = 255
CHECK_CODE_CHARS_MAX = 512


class Replica(Struct, frozen=True):
    """A broker of a set: its address, and the code that proves whose id it is."""

    address: str
    check_code: str


class BrokerSet(Struct, frozen=True, kw_only=True):
    """The brokers of one brokerName. Without replicas the set is unknown, its counters remain.

    The counters survive a cleaning, because brokers keep epochs on disk: a name that begins again
    with epoch 1 would have two masters of one epoch.
    """

    name: str
    cluster: str
    next_broker_id: int = FIRST_BROKER_ID
    replicas: dict[int, Replica] = {}
    master_id: int | None = None
    master_epoch: int = 0
    sync_state_set: tuple[int, ...] = ()
    sync_state_set_epoch: int = 0
    #: Increases with every change of the set; a command that names an older version is stale.
    version: int = 0

    @property
    def is_known(self) -> bool:
        """Whether a broker of the set is registered."""
        return bool(self.replicas)

    @property
    def master_address(self) -> str | None:
        """Address of the master, None without a master."""
        return None if self.master_id is None else self.address(self.master_id)

    def address(self, broker_id: int) -> str | None:
        """Return the address of a replica, None for an unknown id."""
        replica = self.replicas.get(broker_id)
        return None if replica is None else replica.address


class Candidate(Struct, frozen=True):
    """A live broker, with what its last heartbeat said about its log."""

    broker_id: int
    epoch: int = -1
    max_offset: int = -1
    #: A lower number is preferred.
    priority: int = 2**31 - 1


class Outcome(Struct, frozen=True):
    """The result of a command: RocketMQ's code and remark, and the set behind it.

    A stale command named an old version of the set and changed nothing: the caller looks again.
    """

    code: int = ResponseCode.SUCCESS
    remark: str = ""
    broker_set: BrokerSet | None = None
    is_stale: bool = False
