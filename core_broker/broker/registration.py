"""Registration of the broker and its topics at the name servers: codes 103, 104, 105 and 322.

Each name server has a separate link: an unreachable name server does not delay the registration at
other name servers. Compatible with RocketMQ's BrokerOuterAPI and
BrokerController.registerBrokerAll.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from core_broker.broker.namesrv_link import RETRY_MS, NamesrvLink
from core_broker.config import PERM_READ_WRITE, BrokerConfig
from core_broker.errors import GantryError, RequestRefused, TransportError
from core_broker.message.record import body_crc
from core_broker.remoting.bodies import (
    PERM_WRITE,
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicRouteData,
    decode_body,
    encode_body,
    encode_register_body,
    register_body_of,
)
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from core_broker.remoting.tls_client import ClientTls
from core_broker.state.topics import TopicTable

#: RocketMQ clips registerNameServerPeriod to these bounds.
PERIOD_MS_MIN, PERIOD_MS_MAX = 10_000, 60_000
#: Maximum wait of a topic change for all name servers before its response, seconds.
CHANGE_WAIT_S = 1.0
#: Further wait while no name server has answered, seconds: clients wait 3 s for the response, and
#: more for the commands of mqadmin. RocketMQ's broker waits up to 24 s.
FIRST_WAIT_S = 1.5
#: Timeout of the unregistration at one name server.
UNREGISTER_TIMEOUT_MS = 1_000
#: The setting to look at when a name server with access control refuses the broker.
REFUSED_HINT = " See innerClientAuthenticationCredentials: the name server needs a super user."


log = logging.getLogger(__name__)


class Registration:
    """Registers a broker with all name servers of its settings.

    `has_failed` returns whether the store accepts no messages until a restart. `order_changed` is
    called with the order table of each registration response.
    """

    def __init__(
        self,
        topics: TopicTable,
        settings: Callable[[], BrokerConfig],
        has_failed: Callable[[], bool],
        order_changed: Callable[[Mapping[str, str]], None],
        tls: ClientTls | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
    ) -> None:
        self._topics = topics
        self._settings = settings
        self._has_failed = has_failed
        self._order_changed = order_changed
        #: Set on a slave: called with HA address and address of the master after each
        #: registration, "" while no name server knows a master.
        self.master_found: Callable[[str, str], None] | None = None
        #: Name server → master in its last response to a slave.
        self._masters: dict[str, RegisterBrokerResponseHeader] = {}
        self._client = RemotingClient(
            name="broker-namesrv",
            on_close=self._connection_lost,
            tls=tls,
            rpc_hooks=rpc_hooks,
        )
        self._links: dict[str, NamesrvLink] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Port for slaves, in registrations; 0 without replication.
        self.ha_port = 0
        self._addr = ""
        self._is_stopping = False

    async def start(self, broker_addr: str) -> None:
        """Start the registration and wait for the first responses, as topics_changed does.

        Unreachable name servers do not fail the start.
        """
        self._addr = broker_addr
        self.all_changed()
        await self.topics_changed([])

    @property
    def problem(self) -> str:
        """Reasons why no registration succeeded; "" after a success or without name servers."""
        problems = [f"{link.addr}: {link.problem}" for link in self._links.values()]
        is_known = any(not link.problem for link in self._links.values())
        return "" if is_known else "; ".join(problems)

    def announce(self, topics: Iterable[TopicConfig]) -> None:
        """Register changed topics soon, in one request per name server for all changes."""
        changed = list(topics)
        for link in self._links.values():
            link.change(changed)

    def topics_changed(self, topics: Iterable[TopicConfig]) -> "asyncio.Future[None]":
        """Register changed topics; the future is done after every name server or CHANGE_WAIT_S.

        While no name server has answered by then, the future waits for the first one, up to
        FIRST_WAIT_S: a client may ask for the route of its new topic at once.
        """
        self.announce(topics)
        tried = [link.tried() for link in self._links.values()]
        return asyncio.ensure_future(_settled(tried))

    def all_changed(self) -> None:
        """Register all topics at the name servers of the current settings."""
        wanted = {part.strip() for part in self._settings().namesrv_addr.split(";") if part.strip()}
        for addr in self._links.keys() - wanted:
            del self._links[addr]
            self._tasks.pop(addr).cancel()
        for addr in sorted(wanted - self._links.keys()):
            link = self._links[addr] = NamesrvLink(addr, self._register)
            task = asyncio.get_running_loop().create_task(link.run(self._period_ms))
            self._tasks[addr] = task
        for link in self._links.values():
            link.renew()

    async def route(self, topic: str) -> TopicRouteData | None:
        """The topic's route at the first answering name server; None without a route.

        Registered name servers come first. Also None without name servers. Raises TransportError
        when no name server answers, and RequestRefused with the remark of a name server.
        """
        failure: TransportError | None = None
        command_timeout_ms = self._settings().register_broker_timeout_mills
        for link in sorted(self._links.values(), key=lambda link: bool(link.problem)):
            header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
            command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            try:
                answer = await self._client.invoke(link.addr, command, command_timeout_ms)
            except TransportError as error:
                failure = error
                continue
            if answer.code == ResponseCode.SUCCESS:
                return decode_body(TopicRouteData, answer.body)
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise RequestRefused(answer.code, f"name server {link.addr}: {answer.remark or ''}")
        if failure is not None:
            raise failure
        return None

    async def stop(self) -> None:
        """Unregister from all name servers and close the connections."""
        self._is_stopping = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(self._unregister(link) for link in self._links.values()))
        await self._client.close()

    async def _register(self, addr: str, topics: list[TopicConfig] | None) -> str:
        config = self._settings()
        try:
            # Only the response to a registration has the master's address.
            may_skip = not config.force_register and self.master_found is None
            if topics is None and may_skip and await self._is_known(addr):
                return ""
            answer = await self._client.invoke(
                addr, await self._registration(topics), config.register_broker_timeout_mills
            )
            if answer.code != ResponseCode.SUCCESS:
                hint = REFUSED_HINT if answer.code == ResponseCode.NO_PERMISSION else ""
                return f"the response is {answer.code} {answer.remark or ''}.{hint}"
            if self.master_found is not None:
                self._note_master(addr, answer.header(RegisterBrokerResponseHeader))
            elif answer.body:
                self._order_changed(decode_body(KVTable, answer.body).table)
        except GantryError as error:
            return str(error)
        return ""

    def _note_master(self, addr: str, response: RegisterBrokerResponseHeader) -> None:
        """Use the first name server that knows the master, as RocketMQ 5 does."""
        self._masters[addr] = response
        known = (self._masters[each] for each in self._links if each in self._masters)
        master = next((each for each in known if each.master_addr), response)
        if self.master_found is not None:
            self.master_found(master.ha_server_addr or "", master.master_addr or "")

    async def _is_known(self, addr: str) -> bool:
        """Return whether a name server has the current data version; also a heartbeat."""
        config = self._settings()
        header = QueryDataVersionRequestHeader(
            broker_name=config.broker_name,
            broker_addr=self._addr,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        version = encode_body(self._topics.version)
        command = RemotingCommand.request(RequestCode.QUERY_DATA_VERSION, header, version)
        answer = await self._client.invoke(addr, command, config.register_broker_timeout_mills)
        if answer.code != ResponseCode.SUCCESS:
            return False
        return not answer.header(QueryDataVersionResponseHeader).changed

    async def _registration(self, topics: list[TopicConfig] | None) -> RemotingCommand:
        config = self._settings()
        if topics is None:
            # A table with 100,000 topics has a body of 15 MB.
            body, crc = await asyncio.to_thread(self._encoder(config, None))
        else:
            body, crc = self._encoder(config, topics)()
        header = RegisterBrokerRequestHeader(
            broker_name=config.broker_name,
            broker_addr=self._addr,
            cluster_name=config.broker_cluster_name,
            ha_server_addr=f"{config.broker_ip2}:{self.ha_port}",
            broker_id=config.broker_id,
            compressed=config.compressed_register,
            body_crc32=crc,
        )
        return RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body)

    def _encoder(
        self, config: BrokerConfig, topics: list[TopicConfig] | None
    ) -> Callable[[], tuple[bytes, int]]:
        """Return the encoding of a registration of the present topics; any thread may call it."""
        permission = config.broker_permission
        if self._has_failed():
            permission &= ~PERM_WRITE  # producers choose other brokers, consumers continue
        is_restricted = permission & PERM_READ_WRITE != PERM_READ_WRITE
        if topics is None and not is_restricted and not config.compressed_register:
            return partial(_joined, self._topics.parts())
        listed = self._topics.configs if topics is None else topics
        return partial(
            _encoded,
            listed,
            permission,
            self._topics.version,
            compressed=config.compressed_register,
        )

    async def _unregister(self, link: NamesrvLink) -> None:
        if link.problem:
            return
        config = self._settings()
        header = UnRegisterBrokerRequestHeader(
            broker_name=config.broker_name,
            broker_addr=self._addr,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        command = RemotingCommand.request(RequestCode.UNREGISTER_BROKER, header)
        try:
            await self._client.invoke(link.addr, command, UNREGISTER_TIMEOUT_MS)
        except GantryError as error:
            log.warning("the broker could not unregister from name server %s: %s", link.addr, error)

    def _period_ms(self) -> int:
        return min(max(self._settings().register_name_server_period, PERIOD_MS_MIN), PERIOD_MS_MAX)

    def _connection_lost(self, connection: Connection) -> None:
        if not self._is_stopping:
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._renew_all)

    def _renew_all(self) -> None:
        for link in self._links.values():
            link.renew()


def _joined(wrapper: list[bytes]) -> tuple[bytes, int]:
    """Return the body with the encoded table, and its checksum."""
    body = register_body_of(wrapper)
    return body, body_crc(body)


def _encoded(
    topics: list[TopicConfig], permission: int, version: DataVersion, *, compressed: bool
) -> tuple[bytes, int]:
    """Return the body with the topics, limited by the broker's permission, and its checksum."""
    wrapper = TopicConfigSerializeWrapper(
        topic_config_table={topic.topic_name: _restricted(topic, permission) for topic in topics},
        data_version=version,
    )
    body = encode_register_body(
        RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), compressed=compressed
    )
    return body, body_crc(body)


def _restricted(topic: TopicConfig, broker_permission: int) -> TopicConfig:
    """Return the topic with its permission limited by brokerPermission."""
    if broker_permission & PERM_READ_WRITE == PERM_READ_WRITE:
        return topic
    return msgspec.structs.replace(topic, perm=topic.perm & broker_permission)


async def _settled(tried: list["asyncio.Future[None]"]) -> None:
    if tried:
        await asyncio.wait(tried, timeout=CHANGE_WAIT_S)
        await asyncio.wait(tried, timeout=FIRST_WAIT_S, return_when=asyncio.FIRST_COMPLETED)
