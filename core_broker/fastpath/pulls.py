"""The shell around the kernel's takers of pulls and offset commits (kernel/pulls.py, commits.py).

The taker of pulls calls `begin` once per iteration. The code of the slow path (processors/pull.py)
decides on the permission and the filter of a group on a queue; the decision is kept as a PullSource
until topics, groups, consumers or queues change. Pulls of damaged messages or of messages outside
of memory, filters by properties, and refusals are for the slow path.
"""

from core_broker.config import BrokerConfig
from core_broker.errors import RequestRefused
from core_broker.fastpath.contracts import (
    CommitTarget,
    PullRequest,
    PullSource,
    PullTaker,
    PullWindow,
)
from core_broker.fastpath.templates import pull_templates, success_template
from core_broker.kernel.commits import CompiledCommits
from core_broker.kernel.pulls import CompiledPulls
from core_broker.kernel.sources import PullSource as CompiledPullSource
from core_broker.message.sysflag import PULL_SUBSCRIPTION
from core_broker.message.topics import RETRY_PREFIX, TOOLS_CONSUMER_GROUP
from core_broker.processors.admission import check_foreign_group, check_topic_name
from core_broker.processors.context import BrokerContext
from core_broker.processors.flow_control import FlowControl
from core_broker.processors.pull import PullProcessor, PullQuery
from core_broker.remoting.bodies import PERM_READ
from core_broker.remoting.codes import SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.store import GetResult, GetStatus
from core_broker.store.stats import Counters
from core_broker.store.unit_layout import LIGHT_QUEUE_PREFIX

#: Maximum messages of an answer, and maximum tags of a filter; more are for the slow path.
COUNT_MAX = 512
TAGS_MAX = 64
#: Maximum number of kept sources; at the maximum, a new source drops all kept sources.
SOURCES_MAX = 20_000

#: Group, topic, queue id, subscription flag, version, text and type of the subscription.
_Key = tuple[str, str, int, int, int, str | None, str | None]


class FastPulls:
    """Common-case pulls and offset commits of a server: a PullFastPath."""

    def __init__(self, ctx: BrokerContext, pulls: PullProcessor, flow: FlowControl) -> None:
        self.taker: PullTaker = CompiledPulls(self)
        self.commits = CompiledCommits(self, success_template())
        #: Finds the mapped piece of the commit log for an offset.
        self.mapping = ctx.store.fast_reads.mapping
        self._ctx = ctx
        self._pulls = pulls
        self._flow = flow
        self._config: BrokerConfig | None = None
        self._is_closed = True
        #: Versions of the tables at the last check of the kept sources.
        self._checked_versions: tuple[object, ...] = ()
        self._sources: dict[_Key, PullSource] = {}
        #: Pulls, messages and misses of the taker at the last supply of the store's counters,
        #: without pulls of tools.
        self._supplied = (0, 0, 0)
        #: Sources of tools, and their pulls and messages before the last `forget_sources`.
        self._tool_sources: list[PullSource] = []
        self._tool_pulls = self._tool_messages = 0
        ctx.statistics.suppliers.append(self._supply_counts)
        ctx.store.fast_reads.suppliers.append(self._supply_reads)

    # Called by the takers

    def begin(self) -> PullWindow | None:
        """Return the window of the iteration; None when the slow path must take all pulls."""
        ctx = self._ctx
        config = ctx.config
        if config is not self._config:
            self._configure(config)
        if self._is_closed or self._flow.holds_too_many:
            return None
        versions = (
            ctx.topics.replacements,
            ctx.groups.replacements,
            ctx.consumers.changes,
            ctx.store.fast_reads.queue_changes,
        )
        if versions != self._checked_versions:
            self.forget_sources()
            self._checked_versions = versions
        log_from, log_end = ctx.store.fast_reads.range
        return PullWindow(log_from, log_end, config.wait_time_mills_in_pull_queue, ctx.vip_port)

    def _configure(self, config: BrokerConfig) -> None:
        self.forget_sources()
        self._config = config
        limits = self._ctx.store.fast_reads.limits()
        self._is_closed = (
            not config.kernel_enable
            or not config.broker_permission & PERM_READ
            or config.disable_consume_if_consumer_read_slowly
            or limits.count_max > COUNT_MAX
        )
        if not self._is_closed:
            self.taker.configure(pull_templates(), *limits)

    def source(
        self,
        group: str,
        topic: str,
        queue_id: int,
        sys_flag: int,
        sub_version: int,
        subscription: str | None,
        expression_type: str | None,
    ) -> PullSource | None:
        """Return a queue for a group and subscription; None for pulls of the slow path."""
        flag = sys_flag & PULL_SUBSCRIPTION
        key = (group, topic, queue_id, flag, sub_version, subscription, expression_type)
        source = self._sources.get(key)
        if source is None:
            source = self._new_source(_header(*key))
            if source is not None:
                if len(self._sources) >= SOURCES_MAX:
                    self.forget_sources()
                self._sources[key] = source
                if group == TOOLS_CONSUMER_GROUP:
                    self._tool_sources.append(source)
        return source

    def _new_source(self, header: PullMessageRequestHeader) -> PullSource | None:
        if self._ctx.groups.get(header.consumer_group) is None:
            return None
        try:
            check_foreign_group(header.consumer_group)
            group, msg_filter = self._pulls.admitted(header, "")
        except RequestRefused:
            return None
        codes = msg_filter.codes
        if not msg_filter.is_by_tag or (codes is not None and len(codes) > TAGS_MAX):
            return None
        if self._ctx.config.filter_support_retry and header.topic.startswith(RETRY_PREFIX):
            return None
        queue = self._ctx.store.fast_reads.queue(header.topic, header.queue_id)
        if queue is None or header.topic.startswith(LIGHT_QUEUE_PREFIX):
            return None
        suggested = self._pulls.suggested(group, is_slow=False)
        target = CommitTarget(header.consumer_group, header.topic, header.queue_id)
        source: PullSource = CompiledPullSource(
            queue, self._ctx.store.fast_reads.units, target, codes, suggested
        )
        return source

    def target(self, group: str, topic: str, queue_id: int) -> CommitTarget | None:
        """Return the target of an offset commit; None when the slow path must refuse the commit."""
        try:
            check_topic_name(topic)
            check_topic_name(group)
            check_foreign_group(group)
        except RequestRefused:
            return None
        return CommitTarget(group, topic, queue_id)

    def commit(self, target: CommitTarget, offset: int) -> bool:
        """Commit an offset; False when the table is full: the slow path refuses the commit."""
        if not self._ctx.config.kernel_enable:
            return False
        return self._ctx.offsets.commit(*target, offset)

    def hold(self, source: PullSource, connection: Connection, request: PullRequest) -> bool:
        """Hold a pull at the end of a queue; False when the slow path must decide."""
        if self._flow.holds_too_many or connection.held >= connection.limits.in_flight_max:
            return False
        group, topic, queue_id = source.target
        header = PullMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=request.offset,
            max_msg_nums=request.count_max,
            sys_flag=request.sys_flag,
            commit_offset=request.commit_offset,
            suspend_timeout_millis=request.suspend_ms,
            sub_version=request.sub_version,
            subscription=request.subscription,
            expression_type=request.expression_type,
            max_msg_bytes=request.bytes_max,
        )
        command = RemotingCommand(request.code, None, b"", opaque=request.opaque)
        low, high = source.queue.min_offset, source.queue.max_offset
        result = GetResult(GetStatus.OFFSET_OVERFLOW_ONE, (), request.offset, low, high)
        query = PullQuery(connection, command, header, request.offset)
        if not self._pulls.hold(query, result, source.accept):
            return False
        connection.hold(command)
        return True

    # Called by PullProcessor, for held pulls after the arrival of messages

    def begin_wake(self) -> None:
        """Open the window of the iteration."""
        self.taker.begin()

    def answer_held(self, query: PullQuery) -> bytes | None:
        """Return the answer to a held pull as a frame; None when the slow path must answer."""
        header, request = query.header, query.request
        if not self.taker.is_open or request.serialize_type != SerializeType.JSON:
            return None
        source = self.source(
            header.consumer_group,
            header.topic,
            header.queue_id,
            header.sys_flag,
            header.sub_version,
            header.subscription,
            header.expression_type,
        )
        if source is None:
            return None
        size = -1 if header.max_msg_bytes is None else header.max_msg_bytes
        if header.max_msg_bytes is not None and size < 0:
            return None
        return self.taker.gather(source, query.offset, header.max_msg_nums, size, request.opaque)

    # From the taker to statistics and store

    def forget_sources(self) -> None:
        """Drop all sources of shell and taker; the counters go to the statistics."""
        self._supply_counts()
        self.taker.forget()
        self._sources.clear()
        self._tool_sources.clear()

    def _supply_reads(self, counters: Counters) -> None:
        """Add the taker's counts; messages for tools are no consumption."""
        taker = self.taker
        tools = self._tool_sources
        pulls = taker.pulls - self._tool_pulls - sum(each.pulls for each in tools)
        messages = taker.messages - self._tool_messages - sum(each.messages for each in tools)
        missed = taker.missed
        counters.get_found += pulls - self._supplied[0]
        counters.get_messages += messages - self._supplied[1]
        counters.get_missed += missed - self._supplied[2]
        self._supplied = (pulls, messages, missed)

    def _supply_counts(self) -> None:
        for source in self._tool_sources:
            self._tool_pulls += source.pulls
            self._tool_messages += source.messages
        for source in self._sources.values():
            if source.pulls:
                self._ctx.statistics.got(
                    *source.target, source.messages, source.stored_bytes, 0, pulls=source.pulls
                )
                source.forget_counts()


def _header(
    group: str,
    topic: str,
    queue_id: int,
    sys_flag: int,
    sub_version: int,
    subscription: str | None,
    expression_type: str | None,
) -> PullMessageRequestHeader:
    """Return a header with the fields of permission and filter."""
    return PullMessageRequestHeader(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=0,
        max_msg_nums=0,
        sys_flag=sys_flag,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=sub_version,
        subscription=subscription,
        expression_type=expression_type,
    )
