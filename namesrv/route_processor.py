"""Request codes about routes: registration, look-up, topic lists, write permission.

Responses are equal to those of RocketMQ 4.9.8's DefaultRequestProcessor, including remarks. A route
is encoded once per change and form; later responses use the encoded bytes. Requests of RocketMQ 5
get the member `enableActingMaster` of 5.x, without which the Rust client drops a route.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from hashlib import blake2b

from msgspec.structs import replace as replace_members

from core_broker.config import NamesrvConfig
from core_broker.errors import RequestRefused
from core_broker.limits import FRAME_BYTES_MAX
from core_broker.message.record import body_crc
from core_broker.remoting.bodies import (
    BrokerData,
    DataVersion,
    Dialect,
    KVTable,
    RegisterBrokerBody,
    RegistrationSummary,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    decode_register_body,
    decode_request,
    encode_body,
)
from core_broker.remoting.bodies.register import REGISTERED_OBJECTS_MAX
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.cluster import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from core_broker.remoting.versions import VERSION_5
from namesrv.kv import ORDER_TOPIC_NAMESPACE, KeyValues
from namesrv.routes import UNIT, UNIT_SUBSCRIPTION, BrokerIdentity, LiveBroker, RouteTable

log = logging.getLogger(__name__)

Handler = Callable[[Connection, RemotingCommand], RemotingCommand | None]

#: Size of the digest of a registration.
DIGEST_BYTES = 16
#: MQVersion.V3_0_11_SNAPSHOT, the first broker version that registers filter servers, too.
VERSION_WITH_FILTER_SERVERS = 36
#: MQVersion.V4_9_4, the first client version that reads routes as standard JSON.
VERSION_WITH_STANDARD_JSON = 401

NO_ROUTE = (
    "No topic route info in name server for the topic: {}\n"
    "See http://rocketmq.apache.org/docs/faq/ for further details."
)


class RouteForm(Enum):
    """The form of a route in a response, by the version of the requesting client."""

    FASTJSON = "fastjson"
    STANDARD = "standard"
    WITH_ACTING_MASTERS = "with acting masters"


class RouteProcessor:
    """Handles requests with one route table; `handlers` maps request codes to methods."""

    def __init__(
        self,
        routes: RouteTable,
        key_values: KeyValues,
        settings: Callable[[], NamesrvConfig],
        clock_ms: Callable[[], int],
    ) -> None:
        self._routes = routes
        self._key_values = key_values
        self._settings = settings
        self._clock_ms = clock_ms
        self._encoded: dict[tuple[str, RouteForm], bytes] = {}
        self.handlers: dict[int, Handler] = {
            RequestCode.REGISTER_BROKER: self.register_broker,
            RequestCode.UNREGISTER_BROKER: self.unregister_broker,
            RequestCode.QUERY_DATA_VERSION: self.query_data_version,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.get_route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self.get_cluster_info,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self.wipe_write_perm,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self.add_write_perm,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.all_topics,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self.delete_topic,
            RequestCode.GET_TOPICS_BY_CLUSTER: self.topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self.system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self.unit_topics,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self.unit_subscription_topics,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self.unit_subscription_only_topics,
        }

    def register_broker(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """103: add or refresh a broker; the response to a slave has the master."""
        header = request.header(RegisterBrokerRequestHeader)
        # A checksum of 0 means that the broker did not compute one.
        if header.body_crc32 and header.body_crc32 != body_crc(request.body):
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        identity = BrokerIdentity(
            header.cluster_name, header.broker_name, header.broker_id, header.broker_addr
        )
        live, topics = self._live_broker(connection, request, header, identity)
        master = self._routes.register(identity, live, topics)
        return RemotingCommand.response(
            header=RegisterBrokerResponseHeader(
                ha_server_addr=master.ha_server_addr, master_addr=master.master_addr
            ),
            body=self._order_topics(),
        )

    def unregister_broker(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """104: remove a broker that shuts down."""
        header = request.header(UnRegisterBrokerRequestHeader)
        log.info("broker %s (%s) unregisters", header.broker_name, header.broker_addr)
        self._routes.unregister(
            BrokerIdentity(
                header.cluster_name, header.broker_name, header.broker_id, header.broker_addr
            )
        )
        return RemotingCommand.response()

    def query_data_version(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """322: return whether a broker must register its topics again; also a heartbeat."""
        header = request.header(QueryDataVersionRequestHeader)
        sent = decode_request(DataVersion, request.body) if request.body else None
        known = self._routes.data_version(header.broker_addr)
        changed = known is None or known != sent
        if not changed:
            self._routes.refresh(header.broker_addr, self._clock_ms())
        return RemotingCommand.response(
            header=QueryDataVersionResponseHeader(changed=changed),
            body=b"" if known is None else encode_body(known),
        )

    def get_route(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """105: the brokers and queues of a topic, in the client's form."""
        header = request.header(GetRouteInfoRequestHeader)
        body = self._route_body(header.topic, _route_form(request, header))
        if body is None:
            return RemotingCommand.response(
                ResponseCode.TOPIC_NOT_EXIST, NO_ROUTE.format(header.topic)
            )
        return RemotingCommand.response(body=body)

    def get_cluster_info(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """106: all brokers and clusters."""
        info = self._routes.cluster_info()
        if request.version >= VERSION_5:
            info.broker_addr_table = {
                name: _without_acting_master(broker)
                for name, broker in info.broker_addr_table.items()
            }
        return RemotingCommand.response(body=encode_body(info))

    def wipe_write_perm(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """205: remove the write permission of a broker, until its topics change."""
        broker = request.header(WipeWritePermOfBrokerRequestHeader).broker_name
        count = self._routes.wipe_write_perm(broker)
        log.info("%s wiped the write permission of %s (%d topics)", connection.peer, broker, count)
        return RemotingCommand.response(
            header=WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count)
        )

    def add_write_perm(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """327: undo 205."""
        broker = request.header(AddWritePermOfBrokerRequestHeader).broker_name
        count = self._routes.add_write_perm(broker)
        log.info("%s added the write permission of %s (%d topics)", connection.peer, broker, count)
        return RemotingCommand.response(
            header=AddWritePermOfBrokerResponseHeader(add_topic_count=count)
        )

    def all_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """206: every topic with a route."""
        return _topic_list(list(self._routes.topics))

    def delete_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """216: delete the route of a topic, in one cluster or in all clusters."""
        header = request.header(DeleteTopicFromNamesrvRequestHeader)
        log.info("%s deleted the route of %s", connection.peer, header.topic)
        self._routes.delete_topic(header.topic, header.cluster_name or None)
        return RemotingCommand.response()

    def topics_by_cluster(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """224: the topics of one cluster."""
        cluster = request.header(GetTopicsByClusterRequestHeader).cluster
        return _topic_list(self._routes.topics_of_cluster(cluster))

    def system_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """304: cluster and broker names, and a broker address for the other system topics."""
        return _topic_list(*self._routes.system_topics())

    def unit_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """311: topics with the unit bit."""
        return _topic_list(self._routes.topics_by_flag(lambda flag: bool(flag & UNIT)))

    def unit_subscription_topics(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """312: topics with the unit subscription bit."""
        return _topic_list(self._routes.topics_by_flag(lambda flag: bool(flag & UNIT_SUBSCRIPTION)))

    def unit_subscription_only_topics(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand:
        """313: topics with the unit subscription bit and without the unit bit."""
        both = UNIT | UNIT_SUBSCRIPTION
        return _topic_list(
            self._routes.topics_by_flag(lambda flag: flag & both == UNIT_SUBSCRIPTION)
        )

    def _live_broker(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: RegisterBrokerRequestHeader,
        identity: BrokerIdentity,
    ) -> tuple[LiveBroker, Iterable[TopicConfig]]:
        """Return the registered broker and its topics.

        Brokers register every 30 s; a registration with the digest of the last registration is not
        decoded again.
        """
        now_ms, ha_addr = self._clock_ms(), header.ha_server_addr
        digest = _digest(request, header)
        known = self._routes.live.get(header.broker_addr)
        is_in_place = self._routes.is_in_place(identity)
        if known is not None and known.digest == digest and is_in_place:
            return replace(
                known, connection=connection, last_update_ms=now_ms, ha_server_addr=ha_addr
            ), ()
        if known is not None and is_in_place and not header.compressed and request.body:
            # Topics of an unchanged version are not read: a large table takes 100 ms and more.
            summary = decode_request(RegistrationSummary, request.body, FRAME_BYTES_MAX)
            if summary.version == known.data_version:
                return replace(
                    known,
                    connection=connection,
                    last_update_ms=now_ms,
                    ha_server_addr=ha_addr,
                    filter_servers=summary.filter_server_list,
                    digest=digest,
                ), ()
        body = _registration(request, compressed=header.compressed)
        topics = body.topic_config_serialize_wrapper
        if known is None:
            log.info("broker %s registered as %s", header.broker_name, header.broker_addr)
        live = LiveBroker(
            header.broker_name,
            connection,
            now_ms,
            topics.data_version,
            ha_addr,
            body.filter_server_list,
            digest,
        )
        return live, topics.topic_config_table.values()

    def _route_body(self, topic: str, form: RouteForm) -> bytes | None:
        for changed in self._routes.take_changed():
            for known in RouteForm:
                self._encoded.pop((changed, known), None)
        body = self._encoded.get((topic, form))
        if body is None:
            route = self._routes.route(topic)
            if route is None:
                return None
            if self._settings().order_message_enable:
                route.order_topic_conf = self._key_values.get(ORDER_TOPIC_NAMESPACE, topic)
            if form is RouteForm.WITH_ACTING_MASTERS:
                route.broker_datas = [_without_acting_master(data) for data in route.broker_datas]
            dialect = Dialect.FASTJSON if form is RouteForm.FASTJSON else Dialect.STANDARD
            body = encode_body(route, dialect)
            self._encoded[topic, form] = body
        return body

    def _order_topics(self) -> bytes:
        if not self._settings().return_order_topic_config_to_broker:
            return b""
        table = self._key_values.namespace(ORDER_TOPIC_NAMESPACE)
        return b"" if table is None else encode_body(KVTable(table=table))


def _without_acting_master(broker: BrokerData) -> BrokerData:
    """Return the broker as RocketMQ 5 writes a broker without slaves that act as master."""
    return replace_members(broker, enable_acting_master=False)


def _route_form(request: RemotingCommand, header: GetRouteInfoRequestHeader) -> RouteForm:
    if request.version >= VERSION_5:
        return RouteForm.WITH_ACTING_MASTERS
    if request.version >= VERSION_WITH_STANDARD_JSON or header.accept_standard_json_only:
        return RouteForm.STANDARD
    return RouteForm.FASTJSON


def _digest(request: RemotingCommand, header: RegisterBrokerRequestHeader) -> bytes:
    """Return the digest of body and identity; a slave that became master has a new digest."""
    identity = (header.broker_name, header.cluster_name, header.broker_id, header.compressed)
    digest = blake2b(repr((request.version, *identity)).encode(), digest_size=DIGEST_BYTES)
    digest.update(request.body)
    return digest.digest()


def _registration(request: RemotingCommand, *, compressed: bool) -> RegisterBrokerBody:
    if request.version >= VERSION_WITH_FILTER_SERVERS or not request.body:
        return decode_register_body(request.body, compressed=compressed)
    wrapper = decode_request(
        TopicConfigSerializeWrapper, request.body, FRAME_BYTES_MAX, REGISTERED_OBJECTS_MAX
    )
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)


def _topic_list(topics: list[str], broker_addr: str | None = None) -> RemotingCommand:
    return RemotingCommand.response(
        body=encode_body(TopicList(topic_list=topics, broker_addr=broker_addr))
    )
