"""The command that sends messages of every type, and the question of a send form's choices.

    normal        to any queue or a selected one
    delay         by one of the broker's levels; at a time only when every broker is 5.x
    fifo          to the queue of its message group, the same as a Java producer's
    transaction   a half message, then the selected outcome

A call starts and stops a producer, so the brokers have the messages when the call returns. Sending
never creates a topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import masters
from console.gateway.brokers.runtime import version
from console.gateway.engine.answers import Partial
from console.gateway.engine.errors import ClusterUnreachable, NotAllowedNow, NotFound, Unusable
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.queue_slices import MASTER_ID
from console.gateway.topics.permission import perm_words
from console.gateway.topics.routes import reading_route
from core_broker.client import (
    LocalTransactionState,
    Message,
    MessageQueue,
    Producer,
    ProducerSettings,
    SendResult,
    TransactionProducer,
)
from core_broker.errors import RequestRefused
from core_broker.message.properties import PROPERTY_SHARDING_KEY, PROPERTY_TIMER_DELIVER_MS
from core_broker.remoting.bodies import PERM_WRITE, TopicRouteData
from core_broker.remoting.codes import ResponseCode
from trace.hooks import TraceHook

COUNT_MAX = 1_000
BATCH_MESSAGES = 100
BODY_BYTES_MAX = 2 * 1024 * 1024
#: Maximum size of all bodies of one call, bytes.
TOTAL_BYTES_MAX = 64 * 1024 * 1024
PROPERTIES_MAX = 100
SEND_DEADLINE_MS = 30_000
PRODUCER_GROUP = "console_producer"
DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"


class MessageType(StrEnum):
    NORMAL = "normal"
    DELAY = "delay"
    FIFO = "fifo"
    TRANSACTION = "transaction"


class TransactionOutcome(StrEnum):
    """The outcome of the local transaction."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    #: No outcome: the broker asks producers of the group, and discards after its last check.
    UNKNOWN = "unknown"


_STATES = {
    TransactionOutcome.COMMIT: LocalTransactionState.COMMIT_MESSAGE,
    TransactionOutcome.ROLLBACK: LocalTransactionState.ROLLBACK_MESSAGE,
    TransactionOutcome.UNKNOWN: LocalTransactionState.UNKNOW,
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to send `count` times."""

    topic: str
    body: bytes
    type: MessageType = MessageType.NORMAL
    tags: str = ""
    keys: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    #: `broker-a:3`; empty: the producer selects a queue.
    queue: str = ""
    delay_level: int = 0
    deliver_ms: int | None = None
    message_group: str = ""
    outcome: TransactionOutcome = TransactionOutcome.COMMIT
    producer_group: str = PRODUCER_GROUP
    count: int = 1
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored message. The broker first stores a delayed or transactional message in a system
    topic, so consumers receive another offset message id."""

    msg_id: str
    offset_msg_id: str
    queue: str
    queue_offset: int
    status: str


@dataclass(frozen=True, slots=True)
class SendChoices:
    """The choices of a send form: writable queues and delay levels."""

    queues: tuple[str, ...]
    delay_levels: tuple[str, ...]


@question(fresh_for_ms=5_000)
async def send_choices(session: ClusterSession, topic: str) -> Partial[SendChoices]:
    """The queues and delay levels of a topic; NotAllowedNow without write permission."""
    route = await _route(session, topic)
    queues = tuple(str(queue).removeprefix(f"{topic}@") for queue in _writable(topic, route))
    refs = [ref for ref in await masters(session) if any(ref.name in each for each in queues)]

    async def levels_of(ref: BrokerRef) -> str:
        return (await session.admin.broker_config(ref.addr)).get("messageDelayLevel", "")

    found, failures = await session.fan_out(refs[:1], levels_of, one_must_answer=False)
    levels = next(iter(found.values()), "") or DEFAULT_LEVELS
    return Partial(SendChoices(queues, tuple(levels.split())), failures)


@command(deadline_ms=SEND_DEADLINE_MS)
async def send(session: ClusterSession, draft: Draft, *, dry_run: bool = False) -> tuple[Sent, ...]:
    """Send the messages; return one entry each. After an error, earlier messages are stored.

    With `dry_run`, the command only checks the draft against the topic, and returns no entry.
    """
    check(draft)
    queues = _writable(draft.topic, await _route(session, draft.topic))
    queue = _chosen(draft, queues)
    if draft.deliver_ms is not None:
        await _check_timer(session, queues)
    if dry_run:
        message_of(draft)
        return ()
    traces = TraceHook(rpc_hooks=session.rpc_hooks, tls=session.tls)
    hooks = [traces] if draft.trace else []
    settings = ProducerSettings(retry_times=0)  # a retry could store the message twice
    if draft.type is MessageType.TRANSACTION:
        state = _STATES[draft.outcome]
        transactions = TransactionProducer(
            draft.producer_group,
            session.namesrv_addr,
            hooks,
            execute=_always(state),
            check=_always(LocalTransactionState.UNKNOW),
            settings=settings,
            rpc_hooks=session.rpc_hooks,
            tls=session.tls,
        )
        async with transactions:
            results: list[SendResult] = [
                await transactions.send_in_transaction(message_of(draft))
                for _number in range(draft.count)
            ]
    else:
        async with Producer(
            draft.producer_group,
            session.namesrv_addr,
            hooks,
            settings=settings,
            rpc_hooks=session.rpc_hooks,
            tls=session.tls,
        ) as p:
            results = await _send_plain(p, draft, queue)
    return tuple(sent for result in results for sent in _sent(result))


def check(draft: Draft) -> None:
    """Raise Unusable with the exceeded limit for an invalid draft."""
    if not 1 <= draft.count <= COUNT_MAX:
        raise Unusable(format_lazy(_("Send between 1 and {most} messages."), most=COUNT_MAX))
    if len(draft.body) > BODY_BYTES_MAX:
        raise Unusable(
            format_lazy(_("A body may have at most {most} bytes here."), most=BODY_BYTES_MAX)
        )
    if len(draft.body) * draft.count > TOTAL_BYTES_MAX:
        raise Unusable(
            format_lazy(_("All bodies together may have {most} bytes."), most=TOTAL_BYTES_MAX)
        )
    if len(draft.properties) > PROPERTIES_MAX:
        raise Unusable(format_lazy(_("At most {most} properties."), most=PROPERTIES_MAX))
    if draft.type is MessageType.DELAY and draft.delay_level < 1 and draft.deliver_ms is None:
        raise Unusable(_("Choose a delay level, or a moment."))
    if draft.type is MessageType.FIFO and not draft.message_group and not draft.queue:
        raise Unusable(_("A message in order needs a message group, or a queue."))
    if draft.type is MessageType.TRANSACTION and draft.queue:
        raise Unusable(_("The broker chooses where a transaction's message is kept."))


def message_of(draft: Draft) -> Message:
    """Return the message to send; raise ClientError for an invalid property."""
    is_delayed = draft.type is MessageType.DELAY
    message = Message(
        draft.topic,
        draft.body,
        tags=draft.tags or None,
        keys=draft.keys,
        delay_level=draft.delay_level if is_delayed and draft.deliver_ms is None else 0,
    )
    for name, value in draft.properties:
        message.put_user_property(name, value)
    if draft.type is MessageType.FIFO and draft.message_group:
        message.properties[PROPERTY_SHARDING_KEY] = draft.message_group
    if is_delayed and draft.deliver_ms is not None:
        message.properties[PROPERTY_TIMER_DELIVER_MS] = str(draft.deliver_ms)
    return message


async def _send_plain(
    producer: Producer, draft: Draft, queue: MessageQueue | None
) -> list[SendResult]:
    messages = [message_of(draft) for _number in range(draft.count)]
    if queue is not None:
        return [await producer.send_to(each, queue) for each in messages]
    if draft.type is MessageType.FIFO:
        return [await producer.send_ordered(each, draft.message_group) for each in messages]
    if draft.type is MessageType.NORMAL and draft.count > 1:
        parts = [
            messages[start : start + BATCH_MESSAGES]
            for start in range(0, len(messages), BATCH_MESSAGES)
        ]
        return [result for part in parts for result in await producer.send_batches(part)]
    return [await producer.send(each) for each in messages]


def _sent(result: SendResult) -> list[Sent]:
    """Read one send result; a batch's result lists the ids of its messages in order."""
    ids, offset_ids = result.msg_id.split(","), result.offset_msg_id.split(",")
    offset_ids += [""] * (len(ids) - len(offset_ids))
    queue = f"{result.queue.broker_name}:{result.queue.queue_id}"
    return [
        Sent(msg_id, offset_id, queue, result.queue_offset + number, str(result.status))
        for number, (msg_id, offset_id) in enumerate(zip(ids, offset_ids, strict=False))
    ]


async def _route(session: ClusterSession, topic: str) -> TopicRouteData:
    try:
        return await session.admin.topic_route(topic)
    except RequestRefused as refusal:
        if refusal.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        await reading_route(session, topic)  # raises NotFound for an unknown topic
        raise ClusterUnreachable(
            format_lazy(_("No broker of the topic “{topic}” is registered."), topic=topic),
            hint=_("The brokers of the topic are down; see the list of brokers."),
        ) from refusal


def _writable(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return the writable queues; raise NotAllowedNow when the topic has none."""
    up = {each.broker_name for each in route.broker_datas if MASTER_ID in each.broker_addrs}
    queues = [
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=queue_id)
        for data in route.queue_datas
        if data.perm & PERM_WRITE and data.broker_name in up
        for queue_id in range(data.write_queue_nums)
    ]
    if queues:
        return sorted(queues)
    perms = {words.words for data in route.queue_datas if (words := perm_words(data.perm))}
    raise NotAllowedNow(
        format_lazy(
            _("Topic “{topic}” takes no messages: its permission is {perm}."),
            topic=topic,
            perm=", ".join(sorted(perms)) or "—",
        ),
        hint=_("Edit the topic to allow writing, or choose another one."),
    )


def _chosen(draft: Draft, queues: Sequence[MessageQueue]) -> MessageQueue | None:
    if not draft.queue:
        return None
    for queue in queues:
        if draft.queue == f"{queue.broker_name}:{queue.queue_id}":
            return queue
    raise NotFound(
        format_lazy(_("The topic has no queue “{queue}” to write to."), queue=draft.queue)
    )


async def _check_timer(session: ClusterSession, queues: Sequence[MessageQueue]) -> None:
    """Raise NotAllowedNow when a broker of the topic (4.x) would deliver the message at once."""
    names = {queue.broker_name for queue in queues}
    refs = [ref for ref in await masters(session) if ref.name in names]
    tables, _failures = await session.fan_out(
        refs, lambda ref: session.admin.runtime_info(ref.addr)
    )
    versions: dict[str, Any] = {ref.name: version(table) for ref, table in tables.items()}
    old = sorted(name for name, each in versions.items() if not str(each or "").startswith("5."))
    if old:
        raise NotAllowedNow(
            format_lazy(
                _("Broker {names} knows delay levels, not moments (RocketMQ 5 does)."),
                names=", ".join(old),
            ),
            hint=_("Choose a delay level instead."),
        )


def _always(state: LocalTransactionState) -> Any:
    async def say(*_args: object) -> LocalTransactionState:
        return state

    return say
