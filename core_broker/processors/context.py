"""The parts of one broker that processors share, and the interfaces to files and name servers.

Only the event loop's thread uses them. A handler runs to completion. For longer work a handler
calls `answer_later`, `answer_after_saving` or `answer_when_warm` and returns None.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from core_broker.auth.contracts import Request
from core_broker.auth.gate import Gate
from core_broker.config import BrokerConfig
from core_broker.errors import GantryError, RequestRefused, StoreBusy
from core_broker.filter import BloomFilter, compile_filter
from core_broker.message.model import Host
from core_broker.processors.durability import Replicas
from core_broker.remoting.bodies import HAClientRuntimeInfo, TopicConfig, TopicRouteData
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.loop_watchdog import REQUEST, LoopWatchdog
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.tls_server import ServerTls
from core_broker.state.consumer_filters import ConsumerFilters
from core_broker.state.consumer_offsets import ConsumerOffsets
from core_broker.state.consumers import ConsumerSessions
from core_broker.state.day_totals import DayTotals
from core_broker.state.delay_levels import DelayLevels
from core_broker.state.delay_progress import DelayProgress
from core_broker.state.groups import GroupTable
from core_broker.state.producers import ProducerSessions
from core_broker.state.queue_locks import QueueLocks
from core_broker.state.slow_groups import SlowGroups
from core_broker.state.statistics import Statistics
from core_broker.state.topics import TopicTable
from core_broker.store import ColdRead, MessageStore

if TYPE_CHECKING:
    from core_broker.auth.acl1.files import Acl1Files
    from core_broker.auth.acl2.owner import AccessOwner
    from core_broker.filter.sql92 import Sql92Filter

log = logging.getLogger(__name__)

#: Maximum asynchronous tasks. Further requests with a task are refused with SYSTEM_BUSY.
TASKS_MAX = 1_000

Handler = Callable[[Connection, RemotingCommand], RemotingCommand | None]


def _always() -> bool:
    return True


class ConfigTable(StrEnum):
    """Tables stored as files under storePathRootDir/config."""

    TOPICS = "topics.json"
    GROUPS = "subscriptionGroup.json"
    OFFSETS = "consumerOffset.json"
    DELAYS = "delayOffset.json"
    FILTERS = "consumerFilter.json"


class UnsavedTopic(Exception):
    """A handler needs a topic that is not on disk yet. The handler runs again once it is saved.

    Otherwise a killed broker could restart with messages of an unknown topic.
    """


class Saver(Protocol):
    """Writes tables to their files, off the event loop."""

    def save(
        self, table: ConfigTable, then: Callable[[Exception | None], None] | None = None
    ) -> None:
        """Write a snapshot of the table; `then` is called on the loop with the error or None."""

    def retry_failed(self) -> None:
        """Retry failed writes once."""


class Registrar(Protocol):
    """Registers the broker at the name servers."""

    def announce(self, topics: Iterable[TopicConfig]) -> None:
        """Register the topics soon."""

    def topics_changed(self, topics: Iterable[TopicConfig]) -> "asyncio.Future[None]":
        """Register the topics soon; the future is done after the answers or the timeout."""

    def all_changed(self) -> None:
        """Register the broker with all topics soon."""

    async def route(self, topic: str) -> TopicRouteData | None:
        """The topic's route at the first answering name server; None without a route.

        Also None without name servers. Raises TransportError when no name server answers.
        """


@dataclass(slots=True, eq=False)
class BrokerContext:
    """The parts of one broker for its processors."""

    config: BrokerConfig
    store: MessageStore
    saver: Saver
    registrar: Registrar
    now_ms: Callable[[], int]
    #: Store host of records: the address of brokerIP1 and the listen port.
    host: Host
    delay_levels: DelayLevels
    statistics: Statistics
    topics: TopicTable = field(default_factory=TopicTable)
    groups: GroupTable = field(default_factory=GroupTable)
    offsets: ConsumerOffsets = field(default_factory=ConsumerOffsets)
    filters: "ConsumerFilters[Sql92Filter]" = field(init=False)
    delay_progress: DelayProgress = field(default_factory=DelayProgress)
    consumers: ConsumerSessions = field(default_factory=ConsumerSessions)
    producers: ProducerSessions = field(default_factory=ProducerSessions)
    locks: QueueLocks = field(default_factory=QueueLocks)
    slow_groups: SlowGroups = field(default_factory=SlowGroups)
    day_totals: DayTotals = field(default_factory=DayTotals)
    #: Admits requests; None without access control. Set before the first request.
    gate: Gate | None = None
    #: The files of ACL 1.0; None with aclEnable=false.
    acl1: "Acl1Files | None" = None
    #: Users and lists of ACL 2.0 with their file; None without authenticationEnabled.
    users: "AccessOwner | None" = None
    users_file: SavedFile | None = None
    #: The file of the -c option, which request code 25 rewrites; None without the option.
    settings_file: SavedFile | None = None
    #: The copies of the log on slaves; None before the start.
    replicas: Replicas | None = None
    #: The progress of a slave for request code 907; None on a master.
    ha_client_info: Callable[[], HAClientRuntimeInfo] | None = None
    #: The address of the port for slaves; "" before the start.
    ha_addr: str = ""
    #: Called when the controllers may have another master; None without enableControllerMode.
    role_notice: Callable[[], None] | None = None
    #: Whether the sync-state set has minInSyncReplicas members; else sends are refused.
    has_enough_members: Callable[[], bool] = _always
    vip_port: int = 0
    boot_ms: int = 0
    #: The server's TLS settings and certificate; None for a server without sockets.
    tls: ServerTls | None = None
    #: The watchdog of the server's event loop.
    watchdog: LoopWatchdog = field(default_factory=lambda: LoopWatchdog("broker"))
    #: False while the broker stops: sends are refused and pulls are not held.
    is_accepting: bool = True
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    #: Topics created on first use and not on disk yet, in order, with their numbers.
    unsaved_topics: dict[str, int] = field(default_factory=dict)
    #: Number of topics created on first use.
    topics_created: int = 0

    def __post_init__(self) -> None:
        bloom = BloomFilter(
            self.config.max_error_rate_of_bloom_filter, self.config.expect_consumer_num_use_filter
        )
        self.filters = ConsumerFilters(compile_filter, bloom.data)

    @property
    def addr(self) -> str:
        """The broker's address for clients."""
        return f"{self.config.broker_ip1}:{self.host[1]}"

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply new settings, also to the store."""
        self.config = self.store.config = config

    @property
    def is_slave(self) -> bool:
        """True when the broker's log is a copy of its master's log."""
        return self.config.broker_role == "SLAVE"

    def check_stored(self, connection: Connection, request: RemotingCommand, topic: str) -> None:
        """Check that the sender may use a stored message of the topic; raises Refusal."""
        if self.gate is not None:
            self.gate.check_stored(connection.peer_host, Request.of(request), topic)

    def visible_record(self, offset: int) -> bytes:
        """Return the record at an offset of the log; raises RequestRefused without a visible one.

        A record that pulls hide, since a failover may drop it, is hidden here too (read_gate.py).
        """
        record = self.store.read_at(offset)
        if record is None or not self.store.gate.shows(offset + len(record)):
            remark = f"can not find message by the offset, {offset}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        return record

    def settings_text(self) -> bytes:
        """Return all settings as `key=value` lines, with secrets: the content of the file."""
        return self.config.to_properties().encode()

    def topic_created(self, topic: TopicConfig) -> None:
        """Save a topic that was created on first use, and register it at the name servers."""
        self.topics_created += 1
        self.unsaved_topics[topic.topic_name] = self.topics_created
        self._save_topics()
        self.registrar.announce([topic])

    def require_saved(self, topic: str) -> None:
        """Raise UnsavedTopic unless the topic is on disk and so survives a crash."""
        if topic in self.unsaved_topics:
            raise UnsavedTopic(topic)

    def _save_topics(self, then: Callable[[Exception | None], None] | None = None) -> None:
        newest = self.topics_created

        def saved(error: Exception | None) -> None:
            if error is None:
                self._topics_saved(newest)
            if then is not None:
                then(error)

        self.saver.save(ConfigTable.TOPICS, saved)

    def _topics_saved(self, newest: int) -> None:
        """Note that topics.json contains the topics up to a number."""
        unsaved = self.unsaved_topics
        while unsaved and unsaved[name := next(iter(unsaved))] <= newest:
            del unsaved[name]

    def retry_saves(self) -> None:
        """Write the tables whose last write failed."""
        if self.unsaved_topics:
            self._save_topics()
        self.saver.retry_failed()

    def answer_later(
        self,
        connection: Connection,
        request: RemotingCommand,
        work: Coroutine[Any, Any, RemotingCommand],
    ) -> None:
        """Run `work` in a task, and answer the request with its response or error."""
        if len(self.tasks) >= TASKS_MAX:
            work.close()
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, "too many requests wait for clients")
        task = asyncio.get_running_loop().create_task(_answered(connection, request, work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def saved(self, table: ConfigTable) -> None:
        """Wait until a changed table is on disk; raises RequestRefused when the write failed."""
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        def written(error: Exception | None) -> None:
            if not done.done():
                done.set_result(error)

        self.saver.save(table, written)
        error = await done
        if error is not None:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, _unwritten(table, error))

    def answer_after_saving(
        self,
        table: ConfigTable,
        connection: Connection,
        request: RemotingCommand,
        answer: Callable[[], RemotingCommand | None],
    ) -> None:
        """Call `answer` once a changed table is on disk, and send its response."""

        def saved(error: Exception | None) -> None:
            if error is None:
                response = self._response_of(answer, connection, request)
            else:
                response = RemotingCommand.response(
                    ResponseCode.SYSTEM_ERROR, _unwritten(table, error)
                )
            if response is not None:
                connection.answer(request, response)

        if table is ConfigTable.TOPICS:
            self._save_topics(saved)
        else:
            self.saver.save(table, saved)

    def answer_when_warm(
        self,
        cold: ColdRead,
        connection: Connection,
        request: RemotingCommand,
        answer: Callable[[], RemotingCommand | None],
    ) -> None:
        """Call `answer` once the data of `cold` is in memory, and send its response."""

        def warmed(error: Exception | None) -> None:
            if error is None:
                response = self._response_of(answer, connection, request)
            else:
                response = failure(error, request)
            if response is not None:
                connection.answer(request, response)

        self.store.cold_reads.warm(cold, warmed)

    def _response_of(
        self,
        answer: Callable[[], RemotingCommand | None],
        connection: Connection,
        request: RemotingCommand,
    ) -> RemotingCommand | None:
        """Run a handler again; the watchdog counts the request."""
        begin = self.watchdog.begin()
        response = response_of(answer, request)
        self.watchdog.end(begin, REQUEST, request.code, connection.peer)
        return response


def response_of(
    answer: Callable[[], RemotingCommand | None], request: RemotingCommand
) -> RemotingCommand | None:
    """The response of a handler outside of the server's dispatch; an error becomes a response."""
    try:
        return answer()
    except Exception as error:  # noqa: BLE001 - failure() logs unexpected errors
        return failure(error, request)


def failure(error: Exception, request: RemotingCommand) -> RemotingCommand:
    """The response to a request whose handler raised an error."""
    if isinstance(error, RequestRefused):
        return RemotingCommand.response(error.code, error.remark)
    if isinstance(error, StoreBusy):
        return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, str(error))
    if not isinstance(error, GantryError):
        log.error("%s failed", request, exc_info=error)
    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


def _unwritten(table: ConfigTable, error: Exception) -> str:
    return f"{table.value} could not be written: {error}"


async def _answered(
    connection: Connection, request: RemotingCommand, work: Coroutine[Any, Any, RemotingCommand]
) -> None:
    try:
        response = await work
    except Exception as error:  # noqa: BLE001 - failure() logs unexpected errors
        response = failure(error, request)
    connection.answer(request, response)
