"""The command that resends dead letters.

A dead letter stays in its `%DLQ%` topic after a resend, because the topic is a log. The ledger of
dead letters (`console.areas.deadletters.ledger`) records each resend with time and user.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Any, TypeVar

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.dead_letters.edits import NO_EDIT, Edit, checked
from console.gateway.engine.errors import GatewayError, NotFound, Unusable
from console.gateway.engine.questions import command
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.queue_slices import MASTER_ID
from console.gateway.messages.stored import MessageRef, view
from core_broker.client import SendStatus
from core_broker.errors import (
    ClientError,
    ConnectionClosed,
    GantryError,
    RequestRefused,
    RequestTimeout,
)
from core_broker.message import properties as names
from core_broker.message.model import Message, MessageExt
from core_broker.message.topics import (
    DLQ_PREFIX,
    SEND_FORBIDDEN_TOPICS,
    dlq_topic,
    retry_topic,
    validate_topic,
)
from core_broker.remoting.bodies import PERM_WRITE, TopicRouteData

T = TypeVar("T")

RESEND_MESSAGES_MAX = 1_000
RESENDS_AT_ONCE_MAX = 8
#: Time budget of one command, seconds. Messages not started by then fail, so that the
#: command returns an outcome per message before the deadline.
RESEND_BUDGET_S = 40.0
RESEND_DEADLINE_MS = 60_000

#: Property of a resent message: the offset message id of the dead letter.
PROPERTY_RESENT_FROM = "RESENT_FROM"

#: Properties of the failed delivery; brokers set new ones.
_PROPERTIES_OF_THE_JOURNEY = frozenset(
    {
        names.PROPERTY_CLUSTER,
        names.PROPERTY_CONSUME_START_TIMESTAMP,
        names.PROPERTY_DELAY_TIME_LEVEL,
        names.PROPERTY_MAX_OFFSET,
        names.PROPERTY_MAX_RECONSUME_TIMES,
        names.PROPERTY_MIN_OFFSET,
        names.PROPERTY_PRODUCER_GROUP,
        names.PROPERTY_REAL_QUEUE_ID,
        names.PROPERTY_REAL_TOPIC,
        names.PROPERTY_RECONSUME_TIME,
        names.PROPERTY_RETRY_TOPIC,
        names.PROPERTY_TRANSACTION_PREPARED,
        names.PROPERTY_WAIT_STORE_MSG_OK,
        *names.TIMER_PROPERTIES,
    }
)


class Target(StrEnum):
    """The target topic of a resend."""

    #: The group's retry topic: only this group receives the messages.
    RETRY = "retry"
    #: The original topic: every group of the topic receives the messages.
    ORIGIN = "origin"
    #: A named topic: every group of the topic receives the messages.
    TOPIC = "topic"


class Result(StrEnum):
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"
    #: Dry run: the message would be sent.
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Plan:
    """Target and edit of a resend. A dry run checks each dead letter and sends nothing."""

    target: Target = Target.RETRY
    #: The topic of Target.TOPIC.
    topic: str = ""
    edit: Edit = NO_EDIT
    dry_run: bool = False
    #: Fields that the user may not see: such a message goes to no topic that would show them.
    mask: Mask = NO_MASK

    def checked(self) -> "Plan":
        """Return the plan; raise Unusable for a topic that clients cannot send to."""
        checked(self.edit)
        if self.target is Target.TOPIC:
            try:
                validate_topic(self.topic)
            except ClientError as fault:
                raise Unusable(str(fault)) from None
            if self.topic in SEND_FORBIDDEN_TOPICS or self.topic.startswith(DLQ_PREFIX):
                raise Unusable(
                    format_lazy(
                        _("Only brokers write to “{topic}”; choose another topic."),
                        topic=self.topic,
                    )
                )
        return self


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one dead letter. `died_ms` is its store time."""

    id: str
    result: Result
    reason: Any = ""
    msg_id: str = ""
    topic: str = ""
    new_offset_msg_id: str = ""
    died_ms: int | None = None


@command(deadline_ms=RESEND_DEADLINE_MS)
async def resend(
    session: ClusterSession, group: str, ids: tuple[str, ...], plan: "Plan"
) -> tuple[Outcome, ...]:
    """Resend dead letters of a group; return one outcome per id, in the order of `ids`.

    A failure does not stop the other messages. A message keeps its unique key: traces join both
    journeys, and consumers can detect duplicates.
    """
    if len(ids) > RESEND_MESSAGES_MAX:
        raise Unusable(
            format_lazy(
                _("At most {most} dead letters can be sent again at once."),
                most=RESEND_MESSAGES_MAX,
            )
        )
    return await _all_of(_Sender(session, group, plan.checked()).named, ids, lambda each: each)


@command(deadline_ms=RESEND_DEADLINE_MS)
async def resend_messages(
    session: ClusterSession, group: str, refs: tuple[MessageRef, ...], plan: "Plan"
) -> tuple[Outcome, ...]:
    """Resend dead letters of the group that the caller has already read."""
    sender = _Sender(session, group, plan.checked())
    return await _all_of(sender.read, refs, lambda ref: ref.message.offset_msg_id)


async def _all_of(
    send: Callable[[T], Awaitable[Outcome]], letters: Iterable[T], id_of: Callable[[T], str]
) -> tuple[Outcome, ...]:
    """Return an outcome for each dead letter; a failed outcome has a reason."""
    gate = asyncio.Semaphore(RESENDS_AT_ONCE_MAX)
    out_of_time = monotonic() + RESEND_BUDGET_S

    async def one(letter: T) -> Outcome:
        async with gate:
            if monotonic() > out_of_time:
                reason: Any = _("The cluster is slow: there was no time left for this one.")
                return Outcome(id_of(letter), Result.FAILED, reason)
            try:
                return await send(letter)
            except GatewayError as failure:
                return Outcome(id_of(letter), Result.FAILED, failure.detail)
            except GantryError as failure:
                return Outcome(id_of(letter), Result.FAILED, str(failure))

    return tuple(await asyncio.gather(*(one(each) for each in letters)))


class _Sender:
    """Resends dead letters of one group by a plan; caches the routes of target topics."""

    def __init__(self, session: ClusterSession, group: str, plan: "Plan") -> None:
        self._session = session
        self._group = group
        self._plan = plan
        self._routes: dict[str, TopicRouteData | RequestRefused] = {}

    async def named(self, offset_msg_id: str) -> Outcome:
        """Read the dead letter and resend the message."""
        answer = await self._session.ask(view, offset_msg_id)
        ref = answer.value
        if ref is None and answer.failures:
            return Outcome(offset_msg_id, Result.FAILED, answer.failures[0].reason)
        if ref is None or ref.message.topic != dlq_topic(self._group):
            reason = format_lazy(
                _("“{group}” has no such dead letter any more."), group=self._group
            )
            return Outcome(offset_msg_id, Result.FAILED, reason)
        return await self.read(ref)

    async def read(self, ref: MessageRef) -> Outcome:
        message, plan = ref.message, self._plan
        topic = self._target_topic(message)
        if not topic:
            reason: Any = _("The dead letter does not tell which topic it came from.")
            return self._outcome(ref, Result.FAILED, "", reason)
        if plan.target is Target.TOPIC and not plan.mask.keeps_hidden(message, topic):
            reason = format_lazy(
                _("Fields are masked for you, and “{topic}” would show them."), topic=topic
            )
            return self._outcome(ref, Result.FAILED, topic, reason)
        try:
            addr, queue_id = _target_queue(await self._route(topic), topic, ref)
        except NotFound as missing:
            return self._outcome(ref, Result.FAILED, topic, missing.detail)
        revival = message_to_resend(message, topic, plan.target, plan.edit)
        if plan.dry_run:
            return self._outcome(ref, Result.PLANNED, topic)
        try:
            sent = await self._session.admin.send(addr, revival, queue_id)
        except (RequestTimeout, ConnectionClosed) as failure:
            reason = format_lazy(
                _("{cause} It may have arrived all the same: look before you send it once more."),
                cause=str(failure),
            )
            return self._outcome(ref, Result.FAILED, topic, reason)
        except RequestRefused as refusal:
            reason = str(await self._session.causes.named(refusal))
            return self._outcome(ref, Result.FAILED, topic, reason)
        doubt = "" if sent.status is SendStatus.SEND_OK else str(sent.status)
        return self._outcome(ref, Result.SENT, topic, doubt, sent.offset_msg_id)

    def _target_topic(self, message: MessageExt) -> str:
        if self._plan.target is Target.RETRY:
            return retry_topic(self._group)
        return self._plan.topic if self._plan.target is Target.TOPIC else origin_topic(message)

    async def _route(self, topic: str) -> TopicRouteData:
        if topic not in self._routes:
            try:
                self._routes[topic] = await self._session.admin.topic_route(topic)
            except RequestRefused as refusal:
                self._routes[topic] = refusal
        known = self._routes[topic]
        if isinstance(known, RequestRefused):
            raise known
        return known

    @staticmethod
    def _outcome(
        ref: MessageRef, result: Result, topic: str, reason: Any = "", new_offset_msg_id: str = ""
    ) -> Outcome:
        message = ref.message
        return Outcome(
            message.offset_msg_id,
            result,
            reason,
            message.msg_id,
            topic,
            new_offset_msg_id,
            message.store_timestamp,
        )


def origin_topic(message: MessageExt) -> str:
    """Return the original topic of a dead letter; empty when no property holds the topic."""
    return (
        message.properties.get(names.PROPERTY_RETRY_TOPIC)
        or message.properties.get(names.PROPERTY_DLQ_ORIGIN_TOPIC)
        or ""
    )


def message_to_resend(
    message: MessageExt, topic: str, target: Target, edit: Edit = NO_EDIT
) -> Message:
    """Return the message to send: the edited body, keys, tags and application properties."""
    kept = {
        name: value
        for name, value in message.properties.items()
        if name not in _PROPERTIES_OF_THE_JOURNEY
    }
    kept = edit.applied(kept)
    kept[PROPERTY_RESENT_FROM] = message.offset_msg_id
    origin = origin_topic(message)
    if target is Target.RETRY and origin:
        # The client passes this topic to its listener instead of the retry topic.
        kept[names.PROPERTY_RETRY_TOPIC] = origin
    body = message.decompressed_body() if edit.body is None else edit.body
    return Message(topic, body, flag=message.flag, properties=kept)


def _target_queue(route: TopicRouteData, topic: str, ref: MessageRef) -> tuple[str, int]:
    """Return address and queue of the target, preferably on the dead letter's broker."""
    masters = {each.broker_name: each.broker_addrs.get(MASTER_ID) for each in route.broker_datas}
    queues = [
        (data.broker_name, addr, queue_id)
        for data in route.queue_datas
        if data.perm & PERM_WRITE and (addr := masters.get(data.broker_name))
        for queue_id in range(data.write_queue_nums)
    ]
    if not queues:
        raise NotFound(format_lazy(_("No broker takes messages for topic “{topic}”."), topic=topic))
    near = [each for each in queues if each[0] == ref.broker.name] or queues
    _broker, addr, queue_id = near[ref.message.queue_offset % len(near)]
    return addr, queue_id
