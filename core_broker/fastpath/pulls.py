"""Usual pulls and commits, straight from the read buffer: the shell around their kernels.

The kernel of pulls (core_broker/kernel/pulls.py) asks once a turn whether it may. Which messages a
group may have of a queue is decided once, by the code of the plain path (pull.py), and kept until
anything changes that this depends on. Whatever is unusual goes the plain way: not in memory,
damaged, filtered by properties, refused.
"""

from typing import Any

from core_broker.config import BrokerConfig
from core_broker.errors import RequestRefused
from core_broker.message.sysflag import PULL_SUBSCRIPTION
from core_broker.message.topics import RETRY_PREFIX
from core_broker.processors.admission import check_foreign_group, check_topic_name
from core_broker.processors.context import BrokerContext
from core_broker.processors.flow_control import FlowControl
from core_broker.processors.pull import PullProcessor, Question, answer_of
from core_broker.remoting.bodies import PERM_READ
from core_broker.remoting.codes import ResponseCode, SerializeType
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import PullMessageRequestHeader
from core_broker.store import GetResult, GetStatus
from core_broker.store.log_reader import LIGHT_QUEUE_PREFIX
from core_broker.store.stats import Counters

try:
    from core_broker.kernel.commits import CompiledCommits
    from core_broker.kernel.pulls import CompiledPulls
    from core_broker.kernel.sources import PullSource
except ImportError:
    CompiledPulls = None

#: Answers with more messages and filters by more tags are left to the plain path.
COUNT_MAX = 512
TAGS_MAX = 64
#: Sources that are kept; one more, and all are made anew.
SOURCES_MAX = 20_000
#: What stands for the numbers of an answer while it is cut into parts.
OPAQUE_MARK = 1_111_111_111
_MARKS = (OPAQUE_MARK, 22_222_222, 3_333_333_333, 4_444_444_444, 5_555_555_555)

#: Group, topic, queue id, whether the subscription is in the request, its version, text and type.
_Key = tuple[str, str, int, int, int, str | None, str | None]
#: Group, topic and queue id.
Target = tuple[str, str, int]
#: What a pull that is held is known by: code, opaque, offset, count, system flag, committed offset,
#: how long it may wait in ms, version of the subscription, size, subscription and its type.
_Asked = tuple[int, int, int, int, int, int, int, int, int | None, str | None, str | None]
#: From where to where the log may be given out, how long a pull may have waited in ms, and the port
#: on which there are none.
Bounds = tuple[int, int, float, int]


class FastPulls:
    """Pulls and commits of one server that need no second look."""

    def __init__(self, ctx: BrokerContext, pulls: PullProcessor, flow: FlowControl) -> None:
        self.kernel: Any = CompiledPulls(self)
        self.commits: Any = CompiledCommits(self, cut(RemotingCommand.response(), OPAQUE_MARK))
        #: Finds the piece of the log that holds a record.
        self.mapping = ctx.store.fast_reads.mapping
        self._ctx = ctx
        self._pulls = pulls
        self._flow = flow
        self._config: BrokerConfig | None = None
        self._is_closed = True
        self._seen: tuple[object, ...] = ()
        self._sources: dict[_Key, PullSource] = {}
        #: Pulls, messages and misses of the kernel that the store's counters have.
        self._supplied = (0, 0, 0)
        ctx.statistics.suppliers.append(self._supply_counts)
        ctx.store.fast_reads.suppliers.append(self._supply_reads)
        pulls.gatherer = self

    # -- what the kernels ask for --

    def begin(self) -> Bounds | None:
        """What may be pulled in this turn; None when all pulls need a second look."""
        ctx = self._ctx
        config = ctx.config
        if config is not self._config:
            self._configure(config)
        if self._is_closed or self._flow.holds_too_many:
            return None
        seen = (
            ctx.topics.version,
            ctx.groups.version,
            ctx.consumers.changes,
            ctx.store.fast_reads.queue_removals,
        )
        if seen != self._seen:
            self.forget_sources()
            self._seen = seen
        return *ctx.store.fast_reads.range, config.wait_time_mills_in_pull_queue, ctx.vip_port

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
            self.kernel.configure(_answer_parts(), *limits)

    def source(
        self,
        group: str,
        topic: str,
        queue_id: int,
        sys_flag: int,
        sub_version: int,
        subscription: str | None,
        expression_type: str | None,
    ) -> "PullSource | None":
        """The queue for a group and subscription, when pulling from it needs no second look."""
        flag = sys_flag & PULL_SUBSCRIPTION
        key = (group, topic, queue_id, flag, sub_version, subscription, expression_type)
        source = self._sources.get(key)
        if source is None:
            source = self._made(_header(*key))
            if source is not None:
                if len(self._sources) >= SOURCES_MAX:
                    self.forget_sources()
                self._sources[key] = source
        return source

    def _made(self, header: PullMessageRequestHeader) -> "PullSource | None":
        if self._ctx.groups.get(header.consumer_group) is None:
            return None
        try:
            check_foreign_group(header.consumer_group)
            group, wanted = self._pulls.admitted(header, "")
        except RequestRefused:
            return None
        codes = wanted.codes
        if not wanted.is_by_tag or (codes is not None and len(codes) > TAGS_MAX):
            return None
        if self._ctx.config.filter_support_retry and header.topic.startswith(RETRY_PREFIX):
            return None
        queue = self._ctx.store.fast_reads.queue(header.topic, header.queue_id)
        if queue is None or header.topic.startswith(LIGHT_QUEUE_PREFIX):
            return None
        suggested = self._pulls.suggested(group, is_slow=False)
        units = self._ctx.store.fast_reads.units
        return PullSource(queue, units, header.consumer_group, codes, suggested)

    def target(self, group: str, topic: str, queue_id: int) -> Target | None:
        """What an offset is committed for, when that needs no second look."""
        try:
            check_topic_name(topic)
            check_topic_name(group)
            check_foreign_group(group)
        except RequestRefused:
            return None
        return group, topic, queue_id

    def commit(self, target: Target, offset: int) -> bool:
        """Commit an offset; False when there is no room for it, which the plain path tells."""
        if not self._ctx.config.kernel_enable:
            return False
        return self._ctx.offsets.commit(*target, offset)

    def forget_sources(self) -> None:
        """Let the kernel ask again for every source."""
        self._supply_counts()
        self.kernel.forget()
        self._sources.clear()

    # -- pulls that are held --

    def hold(self, source: "PullSource", connection: Any, asked: _Asked) -> bool:
        """Hold a pull at the end of a queue as the plain path does; False when it must look."""
        if self._flow.holds_too_many or connection.held >= connection.limits.in_flight_max:
            return False
        code, opaque, offset, count, flags, commit, wait_ms, version, size, wanted, kind = asked
        group, topic, queue_id = source.target
        header = PullMessageRequestHeader(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=flags,
            commit_offset=commit,
            suspend_timeout_millis=wait_ms,
            sub_version=version,
            subscription=wanted,
            expression_type=kind,
            max_msg_bytes=size,
        )
        request = RemotingCommand(code, None, b"", opaque=opaque)
        low, high = source.queue.min_offset, source.queue.max_offset
        found = GetResult(GetStatus.OFFSET_OVERFLOW_ONE, (), offset, low, high)
        question = Question(connection, request, header, offset)
        if not self._pulls.hold(question, found, source.accept):
            return False
        connection.hold(request)
        return True

    def begin_gathering(self) -> None:
        """Find out what may be pulled now."""
        self.kernel.begin()

    def gathered(self, question: Question) -> bytes | None:
        """The answer to a pull that was held, as a frame; None when it is for the processor."""
        header, request = question.header, question.request
        if not self.kernel.is_open or request.serialize_type != SerializeType.JSON:
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
        answer: bytes | None = self.kernel.gather(
            source, question.offset, header.max_msg_nums, size, request.opaque
        )
        return answer

    # -- what the kernel counted --

    def _supply_reads(self, counters: Counters) -> None:
        kernel = self.kernel
        pulls, messages, missed = kernel.pulls, kernel.messages, kernel.missed
        counters.get_found += pulls - self._supplied[0]
        counters.get_messages += messages - self._supplied[1]
        counters.get_missed += missed - self._supplied[2]
        self._supplied = (pulls, messages, missed)

    def _supply_counts(self) -> None:
        for source in self._sources.values():
            group, topic, queue_id = source.target
            pulls, messages, size = source.take_counts()
            if pulls:
                self._ctx.statistics.got(group, topic, queue_id, messages, size, 0, pulls=pulls)


def _header(
    group: str,
    topic: str,
    queue_id: int,
    sys_flag: int,
    sub_version: int,
    subscription: str | None,
    expression_type: str | None,
) -> PullMessageRequestHeader:
    """What of a pull decides which messages it may have."""
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


def _answer_parts() -> tuple[tuple[bytes, ...], ...]:
    """Answers of the plain path, cut where their numbers stand."""
    opaque, suggested, after, low, high = _MARKS
    kinds = (
        (ResponseCode.SUCCESS, GetStatus.FOUND),
        (ResponseCode.PULL_NOT_FOUND, GetStatus.OFFSET_OVERFLOW_ONE),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, GetStatus.NO_MATCHED_MESSAGE),
    )
    answers = (
        answer_of(code, GetResult(status, (), after, low, high), suggested)
        for code, status in kinds
    )
    return tuple(cut(each, opaque, suggested, after, low, high) for each in answers)


def cut(answer: RemotingCommand, opaque: int, *numbers: int) -> tuple[bytes, ...]:
    """The head of an answer behind its lengths, cut where these numbers stand in this order."""
    answer.opaque = opaque
    rest = answer.encode_head()[8:]
    parts = []
    for number in (opaque, *numbers):
        part, _, rest = rest.partition(str(number).encode())
        parts.append(part)
    return (*parts, rest)
