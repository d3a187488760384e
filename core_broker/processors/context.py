"""What the processors work on: the parts of one broker, and the effects they may have outside.

All of it belongs to the event loop's thread. A handler runs to completion; what takes longer it
hands over with `answer_later` or `answer_when_saved` and returns None.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from core_broker.config import BrokerConfig
from core_broker.errors import GantryError, RequestRefused, StoreBusy
from core_broker.filter import BloomFilter, Sql92Filter, compile_filter
from core_broker.message.model import Host
from core_broker.remoting.bodies import TopicConfig
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
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

log = logging.getLogger(__name__)

#: Answers that wait for a task of their own; one more is refused with SYSTEM_BUSY.
TASKS_MAX = 1_000

Handler = Callable[[Connection, RemotingCommand], RemotingCommand | None]


class ConfigTable(StrEnum):
    """The tables kept as files under storePathRootDir/config."""

    TOPICS = "topics.json"
    GROUPS = "subscriptionGroup.json"
    OFFSETS = "consumerOffset.json"
    DELAYS = "delayOffset.json"
    FILTERS = "consumerFilter.json"


class UnsavedTopic(Exception):
    """A handler needs a topic that is not on disk yet; it is run again when it is.

    Without this a broker that is killed could come back with messages of a topic it does not know.
    """


class Saver(Protocol):
    """Writes tables to their files, off the event loop."""

    def save(
        self, table: ConfigTable, then: Callable[[Exception | None], None] | None = None
    ) -> None:
        """Write the table as it is now; `then` hears on the loop how that went."""

    def retry_failed(self) -> None:
        """Try once more to write what could not be written."""

    async def save_settings(self, content: bytes) -> None:
        """Write the settings file the broker was started with, if there was one."""


class Registrar(Protocol):
    """Keeps the name servers informed."""

    def topics_changed(self, topics: Iterable[TopicConfig]) -> "asyncio.Future[None]":
        """Tell them soon; the future is done when they know, or when the time for it is over."""

    def all_changed(self) -> None:
        """Register everything again soon."""


@dataclass(slots=True, eq=False)
class BrokerContext:
    """One broker, as its processors see it."""

    config: BrokerConfig
    store: MessageStore
    saver: Saver
    registrar: Registrar
    now_ms: Callable[[], int]
    #: Where records are said to be stored: the address behind brokerIP1, and the listen port.
    host: Host
    delay_levels: DelayLevels
    statistics: Statistics
    topics: TopicTable = field(default_factory=TopicTable)
    groups: GroupTable = field(default_factory=GroupTable)
    offsets: ConsumerOffsets = field(default_factory=ConsumerOffsets)
    filters: ConsumerFilters[Sql92Filter] = field(init=False)
    delay_progress: DelayProgress = field(default_factory=DelayProgress)
    consumers: ConsumerSessions = field(default_factory=ConsumerSessions)
    producers: ProducerSessions = field(default_factory=ProducerSessions)
    locks: QueueLocks = field(default_factory=QueueLocks)
    slow_groups: SlowGroups = field(default_factory=SlowGroups)
    day_totals: DayTotals = field(default_factory=DayTotals)
    vip_port: int = 0
    boot_ms: int = 0
    #: False while the broker stops: sends are refused, pulls are not held.
    is_accepting: bool = True
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    #: Topics made on first use that are not on disk yet.
    unsaved_topics: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        bloom = BloomFilter(
            self.config.max_error_rate_of_bloom_filter, self.config.expect_consumer_num_use_filter
        )
        self.filters = ConsumerFilters(compile_filter, bloom.data)

    @property
    def addr(self) -> str:
        """The address that clients use."""
        return f"{self.config.broker_ip1}:{self.host[1]}"

    def reconfigure(self, config: BrokerConfig) -> None:
        """Put new settings in force, for the store too."""
        self.config = self.store.config = config

    def topic_made(self, topic: TopicConfig) -> None:
        """Save a topic that was made on first use, and tell the name servers."""
        self.unsaved_topics.add(topic.topic_name)
        self._save_topics()
        self.registrar.topics_changed([topic])

    def require_saved(self, topic: str) -> None:
        """Raise UnsavedTopic unless the topic will be there after a crash, too."""
        if topic in self.unsaved_topics:
            raise UnsavedTopic(topic)

    def _save_topics(self, then: Callable[[Exception | None], None] | None = None) -> None:
        unsaved = set(self.unsaved_topics)

        def saved(error: Exception | None) -> None:
            if error is None:
                self.unsaved_topics -= unsaved
            if then is not None:
                then(error)

        self.saver.save(ConfigTable.TOPICS, saved)

    def answer_later(
        self,
        connection: Connection,
        request: RemotingCommand,
        work: Coroutine[Any, Any, RemotingCommand],
    ) -> None:
        """Answer a request with what `work` returns or raises."""
        if len(self.tasks) >= TASKS_MAX:
            work.close()
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, "too many requests wait for clients")
        task = asyncio.get_running_loop().create_task(_answered(connection, request, work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def saved(self, table: ConfigTable) -> None:
        """Wait until a changed table is on disk; raises RequestRefused when it cannot be."""
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
        """Answer a request with what `answer` returns, once a changed table is on disk."""

        def saved(error: Exception | None) -> None:
            if error is None:
                response = settled(answer, request)
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
        """Answer a request with what `answer` returns, once what it must read is in memory."""

        def warmed(error: Exception | None) -> None:
            response = settled(answer, request) if error is None else failure(error, request)
            if response is not None:
                connection.answer(request, response)

        self.store.cold.warm(cold, warmed)


def settled(
    answer: Callable[[], RemotingCommand | None], request: RemotingCommand
) -> RemotingCommand | None:
    """What a handler answers outside of the server's dispatch; what it raises becomes an answer."""
    try:
        return answer()
    except Exception as error:  # noqa: BLE001 - failure() logs what is not expected
        return failure(error, request)


def failure(error: Exception, request: RemotingCommand) -> RemotingCommand:
    """The answer to a request whose handling raised."""
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
    except Exception as error:  # noqa: BLE001 - failure() logs what is not expected
        response = failure(error, request)
    connection.answer(request, response)
