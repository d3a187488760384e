"""Half messages of transactions: pending ones with their checks, and discarded ones.

A broker stores a half message in RMQ_SYS_TRANS_HALF_TOPIC, and an op message in
RMQ_SYS_TRANS_OP_HALF_TOPIC when the transaction ends. Pending are the half messages from the
committed offset of CID_RMQ_SYS_TRANS on that no op message names. The offsets of the group are
RocketMQ's progress, so the list works on every broker by pulls. Each check stores the half message
again; RocketMQ leaves the old copy until the end of the round, and the list shows the newest copy.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers import runtime
from console.gateway.clients import producer_groups
from console.gateway.engine.answers import Partial, merge_failures
from console.gateway.engine.errors import GatewayError, NotFound, Unusable
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.queue_slices import QueueRef, brokers_of, read_slice, topic_queues
from console.gateway.messages.stored import MessageRef, message_at
from console.gateway.messages.windows import stored_windows
from console.gateway.pending.delayed import broker_configs
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.model import MessageExt
from core_broker.message.properties import (
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
)
from core_broker.message.topics import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANSACTION_GROUP,
)
from core_broker.message.transactions import (
    ended_halves,
    moved_to,
    times_checked,
    whole_number,
)

#: Maximum number of op messages read from one broker.
OPS_READ_MAX = 20_000
#: Maximum number of half messages read from one broker.
HALVES_READ_MAX = 2_000
#: Number of op messages of one read.
OPS_PER_READ = 256
#: Maximum number of unneeded half messages read between two pending ones.
GAP_MESSAGES_MAX = 16
#: Maximum number of reads at the same time, for one broker.
READS_AT_ONCE_MAX = 8
#: Maximum number of discarded half messages resumed by one request.
RESUMED_MAX = 100


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """The broker's settings of transaction checks; None where the broker does not report them."""

    interval_ms: int | None
    timeout_ms: int | None
    checks_max: int | None


@dataclass(frozen=True, slots=True)
class HalfMessage:
    """A pending half message. `producers` counts connected producers of its group; None: unknown.

    `next_check_ms` is the earliest time of the next check: the first round of the broker after
    it sends the check. None: the broker does not report its settings.
    """

    ref: MessageRef
    checks: int
    checks_max: int | None
    next_check_ms: int | None
    producers: int | None

    @property
    def name(self) -> str:
        return self.ref.message.msg_id

    @property
    def topic(self) -> str:
        return self.ref.message.properties.get(PROPERTY_REAL_TOPIC, "")

    @property
    def producer_group(self) -> str:
        return self.ref.message.properties.get(PROPERTY_PRODUCER_GROUP, "")

    @property
    def is_last(self) -> bool:
        """True when the broker discards the message instead of a further check."""
        return self.checks_max is not None and self.checks >= self.checks_max


@dataclass(frozen=True, slots=True)
class HalfMessages:
    """Pending half messages, oldest first. `left_out` counts unread ones.

    Not `is_exact`: unread op messages may have ended some of the messages.
    """

    rows: tuple[HalfMessage, ...]
    left_out: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Resumption:
    """The outcome of one message: resumed, planned (a dry run) or failed with an error."""

    id: str
    result: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """Pending half messages of one broker."""

    messages: tuple[MessageExt, ...]
    left_out: int
    is_exact: bool


@question(fresh_for_ms=2_000, deadline_ms=20_000, costly=True)
async def half_messages(session: ClusterSession, mask: Mask = NO_MASK) -> Partial[HalfMessages]:
    """The pending half messages of all brokers."""
    halves = await _queues(session, TRANS_HALF_TOPIC)
    ops = {queue.broker.name: queue for queue in await _queues(session, TRANS_OP_HALF_TOPIC)}
    by_broker = {queue.broker: queue for queue in halves}
    found, failures = await session.fan_out(
        brokers_of(halves),
        lambda ref: _pending(session, by_broker[ref], ops.get(ref.name)),
        one_must_answer=False,
    )
    configs = await session.ask(broker_configs)
    groups = await _producers(session)
    settings = {ref.name: check_settings(table) for ref, table in configs.value.items()}
    rows = [
        _row(
            MessageRef(ref, message).seen_through(mask),
            settings.get(ref.name, check_settings({})),
            groups,
        )
        for ref, part in found.items()
        for message in part.messages
    ]
    rows.sort(key=lambda row: (row.ref.message.born_timestamp, row.name))
    return Partial(
        HalfMessages(
            tuple(rows),
            sum(part.left_out for part in found.values()),
            all(part.is_exact for part in found.values()),
        ),
        merge_failures(failures, configs.failures),
    )


@command(deadline_ms=60_000)
async def resume_checks(
    session: ClusterSession, ids: Sequence[str], *, dry_run: bool = False
) -> tuple[Resumption, ...]:
    """Put discarded half messages back with 0 checks (RESUME_CHECK_HALF_MESSAGE, code 323).

    One outcome per id; a dry run only finds the messages. Raises Unusable for too many ids.
    """
    unique = list(dict.fromkeys(each.upper() for each in ids))
    if not 0 < len(unique) <= RESUMED_MAX:
        raise Unusable(format_lazy(_("Select 1 to {most} messages."), most=RESUMED_MAX))
    return tuple([await _resume(session, each, dry_run) for each in unique])


def check_settings(table: Mapping[str, str]) -> CheckSettings:
    return CheckSettings(
        runtime.whole(table, "transactionCheckInterval"),
        runtime.whole(table, "transactionTimeOut"),
        runtime.whole(table, "transactionCheckMax"),
    )


async def _resume(session: ClusterSession, offset_msg_id: str, dry_run: bool) -> Resumption:
    try:
        ref, failures = await message_at(session, offset_msg_id)
        if ref is None:
            reasons = "; ".join(failure.reason for failure in failures)
            missing = reasons or str(_("No broker has this message."))
            return Resumption(offset_msg_id, "failed", missing)
        if ref.message.topic != TRANS_CHECK_MAX_TIME_TOPIC:
            other = str(_("The message is not a discarded half message."))
            return Resumption(offset_msg_id, "failed", other)
        if not dry_run:
            await session.admin.resume_check_half_message(
                ref.broker.addr, offset_msg_id, TRANS_CHECK_MAX_TIME_TOPIC
            )
    except (GantryError, GatewayError) as failure:
        return Resumption(offset_msg_id, "failed", str(failure))
    return Resumption(offset_msg_id, "planned" if dry_run else "resumed")


async def _queues(session: ClusterSession, topic: str) -> list[QueueRef]:
    """The queue 0 of a system topic on each broker; empty before the first transaction."""
    try:
        return [each for each in await topic_queues(session, topic) if each.queue_id == 0]
    except NotFound:
        return []


class Settled:
    """Queue offsets of half messages that op messages name: ended, or stored again."""

    def __init__(self) -> None:
        self._named: set[int] = set()
        self._ended: set[int] = set()
        #: Old offset -> new offset of half messages stored again.
        self._moved: dict[int, int] = {}

    def read_op(self, op: MessageExt) -> None:
        """Apply the next op message, in order."""
        target = moved_to(op)
        for half in ended_halves(op):
            self._named.add(half)
            if target is None:
                self._ended.add(half)
                self._named.add(self._newest(half))
            elif half < target:
                self._moved[half] = target

    def is_pending(self, half: int, first: int | None) -> bool:
        """False for an ended transaction and for an old copy; `first` is the queue offset by which
        the producer ends the transaction, where the copy names one."""
        return half not in self._named and first not in self._ended

    def pending(self, begin: int, end: int, most: int) -> tuple[list[int], int]:
        """Return the first `most` pending offsets of [begin, end), and the number of the others.

        The range may have millions of offsets: it is not walked to its end.
        """
        known = sum(begin <= each < end for each in self._named)
        found = list(islice((each for each in range(begin, end) if each not in self._named), most))
        return found, max(0, end - begin - known - len(found))

    def _newest(self, half: int) -> int:
        while (target := self._moved.get(half)) is not None:
            half = target
        return half


async def _pending(session: ClusterSession, half: QueueRef, op: QueueRef | None) -> _Found:
    windows = await stored_windows(session, [half])
    if not windows:
        return _Found((), 0, is_exact=True)
    begin = max(await _committed(session, half), windows[0].begin)
    settled = Settled()
    is_exact = op is None or await _read_ops(session, op, settled)
    wanted, left_out = settled.pending(begin, windows[0].end, HALVES_READ_MAX)
    kept: dict[str, MessageExt] = {}
    for message in await _read_halves(session, half, wanted):
        first = message.properties.get(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET)
        if settled.is_pending(message.queue_offset, whole_number(first)):
            kept[message.msg_id] = message  # the newest copy: reads are in order of offsets
    return _Found(tuple(kept.values()), left_out, is_exact)


async def _committed(session: ClusterSession, queue: QueueRef) -> int:
    offset = await session.admin.query_consumer_offset(
        queue.broker.addr, TRANSACTION_GROUP, queue.topic, queue.queue_id
    )
    return max(0, offset or 0)


async def _read_ops(session: ClusterSession, op: QueueRef, settled: Settled) -> bool:
    """Apply the op messages that the broker needs; False when some were not read."""
    windows = await stored_windows(session, [op])
    if not windows:
        return True
    begin = max(windows[0].begin, await _committed(session, op))
    last = min(windows[0].end, begin + OPS_READ_MAX)
    for start in range(begin, last, OPS_PER_READ):
        piece = await read_slice(session, op, start, min(start + OPS_PER_READ, last))
        for message in piece.messages:
            settled.read_op(message)
    return last == windows[0].end


async def _read_halves(
    session: ClusterSession, queue: QueueRef, offsets: Sequence[int]
) -> list[MessageExt]:
    """The half messages at these offsets, in order."""
    gate = asyncio.Semaphore(READS_AT_ONCE_MAX)

    async def read(begin: int, end: int) -> list[MessageExt]:
        async with gate:
            return list((await read_slice(session, queue, begin, end)).messages)

    needed = set(offsets)
    parts = await asyncio.gather(*(read(begin, end) for begin, end in runs(offsets)))
    return [each for part in parts for each in part if each.queue_offset in needed]


def runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges [begin, end) that cover sorted offsets, with gaps of at most GAP_MESSAGES_MAX."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and offset - found[-1][1] <= GAP_MESSAGES_MAX:
            found[-1] = found[-1][0], offset + 1
        else:
            found.append((offset, offset + 1))
    return found


async def _producers(session: ClusterSession) -> Mapping[str, int] | None:
    """Connected producers by group; None where the brokers cannot list producers."""
    try:
        answer = await session.ask(producer_groups)
    except (GatewayError, RequestRefused):
        return None
    return {group.name: group.clients for group in answer.value}


def _row(ref: MessageRef, settings: CheckSettings, groups: Mapping[str, int] | None) -> HalfMessage:
    message = ref.message
    checks = times_checked(message.properties)
    group = message.properties.get(PROPERTY_PRODUCER_GROUP, "")
    return HalfMessage(
        ref,
        checks,
        settings.checks_max,
        next_check_ms(message, checks, settings),
        None if groups is None else groups.get(group, 0),
    )


def next_check_ms(message: MessageExt, checks: int, settings: CheckSettings) -> int | None:
    """The earliest time of the next check: after the immunity time, and an interval after the
    last check, which stored this copy."""
    immunity_s = whole_number(message.properties.get(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS))
    wait_ms = settings.timeout_ms if immunity_s is None else immunity_s * 1000
    if wait_ms is None or settings.interval_ms is None:
        return None
    first_ms = message.born_timestamp + wait_ms
    return max(first_ms, message.store_timestamp + settings.interval_ms) if checks else first_ms
