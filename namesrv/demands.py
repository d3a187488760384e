"""The resources and actions that the name server's request codes need.

RocketMQ 5.3.3 has no access control on the name server; the actions are those of a broker's similar
codes. The cluster of administration is that of brokerClusterName: key-value settings and the name
server's own settings concern all clusters. A registration replaces routes of any topic, so that
only super users register brokers: innerClientAuthenticationCredentials.
"""

from collections.abc import Callable
from typing import Final

from core_broker.auth.acl2.demands import Demand, Mode, Unreadable, topic_demand
from core_broker.auth.contracts import Action, Request, ResourceKind
from core_broker.message.topics import AUTO_CREATE_TOPIC
from core_broker.remoting.codes import RequestCode as Code

_USES: Final = (Action.PUB, Action.SUB, Action.GET)


def demands_of(request: Request, cluster: str, mode: Mode) -> tuple[Demand, ...] | None:
    """Return the demands of a request; None means that the code needs a super user.

    Raises Unreadable.
    """
    read = _DEMANDS.get(request.code)
    return None if read is None else read(request, cluster)


_Read = Callable[[Request, str], tuple[Demand, ...]]


def _route(request: Request, cluster: str) -> tuple[Demand, ...]:
    topic = _required(request, "topic")
    # Producers derive the route of a topic that does not exist yet from the route of this topic.
    return () if topic == AUTO_CREATE_TOPIC else (topic_demand(topic, _USES),)


def _deleted_topic(request: Request, cluster: str) -> tuple[Demand, ...]:
    return (topic_demand(_required(request, "topic"), (Action.DELETE,)),)


def _named_cluster(request: Request, cluster: str) -> tuple[Demand, ...]:
    return (Demand(ResourceKind.CLUSTER, _required(request, "cluster"), (Action.GET,)),)


def _cluster(action: Action) -> _Read:
    def read(request: Request, cluster: str) -> tuple[Demand, ...]:
        return (Demand(ResourceKind.CLUSTER, cluster, (action,)),)

    return read


def _required(request: Request, field: str) -> str:
    value = request.ext_fields.get(field)
    if not value:
        raise Unreadable(f"the field {field} is missing")
    return value


#: Codes without a row need a super user: 103, 104 and 322, which also renews a registration.
_DEMANDS: Final[dict[int, _Read]] = {
    Code.GET_ROUTEINFO_BY_TOPIC: _route,
    Code.DELETE_TOPIC_IN_NAMESRV: _deleted_topic,
    Code.GET_TOPICS_BY_CLUSTER: _named_cluster,
    **dict.fromkeys(
        (
            Code.GET_KV_CONFIG,
            Code.GET_KVLIST_BY_NAMESPACE,
            Code.GET_NAMESRV_CONFIG,
            Code.GET_BROKER_CLUSTER_INFO,
            Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            Code.GET_UNIT_TOPIC_LIST,
            Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
            Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            Code.AUTH_GET_USER,
            Code.AUTH_LIST_USER,
            Code.AUTH_GET_ACL,
            Code.AUTH_LIST_ACL,
        ),
        _cluster(Action.GET),
    ),
    **dict.fromkeys(
        (
            Code.PUT_KV_CONFIG,
            Code.DELETE_KV_CONFIG,
            Code.UPDATE_NAMESRV_CONFIG,
            Code.WIPE_WRITE_PERM_OF_BROKER,
            Code.ADD_WRITE_PERM_OF_BROKER,
            Code.AUTH_CREATE_USER,
            Code.AUTH_UPDATE_USER,
            Code.AUTH_DELETE_USER,
            Code.AUTH_CREATE_ACL,
            Code.AUTH_UPDATE_ACL,
            Code.AUTH_DELETE_ACL,
        ),
        _cluster(Action.UPDATE),
    ),
}
