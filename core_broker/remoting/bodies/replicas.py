"""Bodies of the controller: sync-state sets and the replicas of broker sets.

Compatible with RocketMQ 5.3.3's SyncStateSet, ElectMasterResponseBody, BrokerMemberGroup and
BrokerReplicasInfo.
"""

from msgspec import Struct

from core_broker.remoting.ext_fields import Int, Long


class SyncStateSet(Struct, rename="camel", kw_only=True):
    """The brokers that have all acknowledged messages, and the epoch of that set."""

    sync_state_set: list[Long]
    sync_state_set_epoch: Int


class BrokerMemberGroup(Struct, rename="camel", kw_only=True):
    """The addresses of a broker set by id."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = {}


class ElectMasterResponseBody(Struct, rename="camel", kw_only=True):
    """The answer to an election: with a new master the members, too."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: list[Long]


class ReplicaIdentity(Struct, rename="camel", kw_only=True):
    """One replica of a broker set."""

    broker_name: str
    broker_id: Long
    broker_address: str
    alive: bool | None = None


class ReplicasEntry(Struct, rename="camel", kw_only=True):
    """Master, epochs and replicas of a broker set; RocketMQ's ReplicasInfo."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int
    sync_state_set_epoch: Int
    in_sync_replicas: list[ReplicaIdentity]
    not_in_sync_replicas: list[ReplicaIdentity]


class BrokerReplicasInfo(Struct, rename="camel", kw_only=True):
    """The replicas of broker sets by name."""

    replicas_info_table: dict[str, ReplicasEntry]
