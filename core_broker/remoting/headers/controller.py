"""Headers between brokers, administration and controllers.

Compatible with the RocketMQ 5.3.3 classes of the same names.
"""

from core_broker.remoting.ext_fields import Boolean, Header, Int, Long


class BrokerHeartbeatRequestHeader(Header):
    """Request of BROKER_HEARTBEAT (904)."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: Int | None = None


class AlterSyncStateSetRequestHeader(Header):
    """Request of CONTROLLER_ALTER_SYNC_STATE_SET (1001)."""

    broker_name: str
    master_broker_id: Long
    master_epoch: Int


class AlterSyncStateSetResponseHeader(Header):
    """Response of CONTROLLER_ALTER_SYNC_STATE_SET (1001)."""

    new_sync_state_set_epoch: Int


class ElectMasterRequestHeader(Header):
    """Request of CONTROLLER_ELECT_MASTER (1002); -1 is no broker."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: Long = -1
    designate_elect: Boolean = False


class ElectMasterResponseHeader(Header):
    """Response of CONTROLLER_ELECT_MASTER (1002)."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


class RegisterBrokerToControllerRequestHeader(Header):
    """Request of CONTROLLER_REGISTER_BROKER (1003)."""

    cluster_name: str
    broker_name: str
    broker_id: Long
    broker_address: str


class RegisterBrokerToControllerResponseHeader(Header):
    """Response of CONTROLLER_REGISTER_BROKER (1003); without a live master no master fields."""

    cluster_name: str
    broker_name: str
    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


class GetReplicaInfoRequestHeader(Header):
    """Request of CONTROLLER_GET_REPLICA_INFO (1004)."""

    broker_name: str


class GetReplicaInfoResponseHeader(Header):
    """Response of CONTROLLER_GET_REPLICA_INFO (1004)."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None


class GetMetaDataResponseHeader(Header):
    """Response of CONTROLLER_GET_METADATA_INFO (1005); peers are `id:host:port;` each."""

    group: str
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: Boolean = False
    peers: str = ""


class NotifyBrokerRoleChangedRequestHeader(Header):
    """Request of NOTIFY_BROKER_ROLE_CHANGED (1008)."""

    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None
    master_broker_id: Long | None = None


class CleanControllerBrokerDataRequestHeader(Header):
    """Request of CLEAN_BROKER_DATA (1011); the ids are joined by semicolons."""

    broker_name: str
    cluster_name: str | None = None
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: Boolean = False


class GetNextBrokerIdRequestHeader(Header):
    """Request of CONTROLLER_GET_NEXT_BROKER_ID (1012)."""

    cluster_name: str
    broker_name: str


class GetNextBrokerIdResponseHeader(Header):
    """Response of CONTROLLER_GET_NEXT_BROKER_ID (1012)."""

    cluster_name: str
    broker_name: str
    next_broker_id: Long


class ApplyBrokerIdRequestHeader(Header):
    """Request of CONTROLLER_APPLY_BROKER_ID (1013)."""

    cluster_name: str
    broker_name: str
    applied_broker_id: Long
    register_check_code: str


class ApplyBrokerIdResponseHeader(Header):
    """Response of CONTROLLER_APPLY_BROKER_ID (1013)."""

    cluster_name: str
    broker_name: str


class ResetMasterFlushOffsetHeader(Header):
    """Request of RESET_MASTER_FLUSH_OFFSET (908)."""

    master_flush_offset: Long


class ExchangeHAInfoRequestHeader(Header):
    """Request of EXCHANGE_BROKER_HA_INFO (906); without an address it is a question."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class ExchangeHAInfoResponseHeader(Header):
    """Response of EXCHANGE_BROKER_HA_INFO (906); empty unless a master answers."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None
