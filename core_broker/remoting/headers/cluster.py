"""Headers that a name server answers: registration, routes, key-value settings, permissions.

Compatible with the RocketMQ classes of the same names.
"""

from core_broker.remoting.ext_fields import Boolean, Header, Int, Long


class RegisterBrokerRequestHeader(Header):
    """Request of REGISTER_BROKER (103); a `body_crc32` of 0 is not checked."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: Boolean | None = None
    compressed: Boolean = False
    body_crc32: Int = 0


class RegisterBrokerResponseHeader(Header):
    """Answer to REGISTER_BROKER; contains the master's address for a slave."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(Header):
    """Request of UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class QueryDataVersionRequestHeader(Header):
    """Request of QUERY_DATA_VERSION (322)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class QueryDataVersionResponseHeader(Header):
    """Answer to QUERY_DATA_VERSION."""

    changed: Boolean


class GetRouteInfoRequestHeader(Header):
    """Request of GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: Boolean = False


class PutKVConfigRequestHeader(Header):
    """Request of PUT_KV_CONFIG (100)."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(Header):
    """Request of GET_KV_CONFIG (101)."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(Header):
    """Answer to GET_KV_CONFIG."""

    value: str | None = None


class DeleteKVConfigRequestHeader(Header):
    """Request of DELETE_KV_CONFIG (102)."""

    namespace: str
    key: str


class GetKVListByNamespaceRequestHeader(Header):
    """Request of GET_KVLIST_BY_NAMESPACE (219)."""

    namespace: str


class WipeWritePermOfBrokerRequestHeader(Header):
    """Request of WIPE_WRITE_PERM_OF_BROKER (205)."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(Header):
    """Answer to WIPE_WRITE_PERM_OF_BROKER."""

    wipe_topic_count: Int


class AddWritePermOfBrokerRequestHeader(Header):
    """Request of ADD_WRITE_PERM_OF_BROKER (327)."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(Header):
    """Answer to ADD_WRITE_PERM_OF_BROKER."""

    add_topic_count: Int


class DeleteTopicFromNamesrvRequestHeader(Header):
    """Request of DELETE_TOPIC_IN_NAMESRV (216)."""

    topic: str
    cluster_name: str | None = None


class GetTopicsByClusterRequestHeader(Header):
    """Request of GET_TOPICS_BY_CLUSTER (224)."""

    cluster: str
