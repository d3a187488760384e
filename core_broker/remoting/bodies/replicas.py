"""Bodies of controllers and replicas: sync-state sets, replicas of broker sets, epochs of a log.

Compatible with RocketMQ 5.3.3's SyncStateSet, ElectMasterResponseBody, BrokerMemberGroup,
BrokerReplicasInfo and EpochEntryCache.
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


class EpochEntryInfo(Struct, rename="camel", kw_only=True):
    """One epoch of a commit log; the open end of the last one is the largest 64-bit number."""

    epoch: Int
    start_offset: Long
    end_offset: Long


class EpochEntryCache(Struct, rename="camel", kw_only=True):
    """Answer to GET_BROKER_EPOCH_CACHE (1007): the epochs of a broker's commit log."""

    cluster_name: str
    broker_name: str
    broker_id: Long
    epoch_list: list[EpochEntryInfo] = []
    max_offset: Long
