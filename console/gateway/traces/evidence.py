"""Broker-side evidence of a message: its copies in system topics, known without traces.

Copies of a message keep the unique key, so the key index finds them:

    RMQ_SYS_TRANS_HALF_TOPIC  the half message, and a further copy per check
    SCHEDULE_TOPIC_XXXX       a delayed message, or a retry before its delivery
    %RETRY%group              a retry after its delay
    %DLQ%group                the dead letter of the group

A group has consumed its last copy when its committed offset lies beyond the copy. The filters of
connected consumers tell the messages that the group does not get.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from console.gateway.brokers.listing import SETTINGS_FRESH_MS
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import GatewayError, NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.deliveries import Delivery, deliveries
from console.gateway.messages.lookup import by_key
from console.gateway.messages.stored import MessageRef
from core_broker.message import properties as names
from core_broker.message.delays import parse_delay_levels
from core_broker.message.topics import (
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    dlq_topic,
    retry_topic,
)

#: Maximum number of groups of one message whose retries and dead letters are searched.
GROUPS_MAX = 50
#: Broker setting with the delays of retries and delayed messages.
DELAYS_SETTING = "messageDelayLevel"


class DeliveryState(StrEnum):
    """The state of a message in a group, by broker-side evidence."""

    CONSUMED = "consumed"
    FILTERED = "filtered"
    WAITING = "waiting"
    RETRYING = "retrying"
    DEAD_LETTERED = "dead_lettered"
    NOT_SUBSCRIBED = "not_subscribed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DelayedCopy:
    """A copy in the schedule topic. `group` is empty for a delayed message; `retry_times` is the
    number of the retry. `due_ms` is None when the broker's delay levels are unknown."""

    ref: MessageRef
    group: str
    retry_times: int
    due_ms: int | None

    @property
    def at_ms(self) -> int:
        return self.ref.message.store_timestamp


@dataclass(frozen=True, slots=True)
class GroupDeliveryState:
    """The delivery state of a group; `next_ms` is the time of the next retry."""

    group: str
    standing: DeliveryState
    retry_times: int = 0
    next_ms: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BrokerEvidence:
    """All copies of a message, each kind in order of store time."""

    halves: tuple[MessageRef, ...] = ()
    delayed: tuple[DelayedCopy, ...] = ()
    retries: tuple[MessageRef, ...] = ()
    dead_letters: tuple[MessageRef, ...] = ()
    groups: tuple[GroupDeliveryState, ...] = ()

    @property
    def copies(self) -> tuple[MessageRef, ...]:
        """All copies, oldest first."""
        waiting = tuple(each.ref for each in self.delayed)
        every = (*self.halves, *waiting, *self.retries, *self.dead_letters)
        return tuple(sorted(every, key=lambda ref: ref.message.store_timestamp))


@question(fresh_for_ms=SETTINGS_FRESH_MS)
async def delays(session: ClusterSession, broker: BrokerRef) -> Partial[tuple[int, ...]]:
    """The broker's delays by level, milliseconds; empty when unknown."""
    settings = await session.admin.broker_config(broker.addr)
    try:
        return Partial(parse_delay_levels(settings.get(DELAYS_SETTING, "")))
    except ValueError:
        return Partial(())


async def evidence(
    session: ClusterSession,
    msg_id: str,
    original: MessageRef | None,
    traced: Iterable[str],
    now_ms: int,
) -> Partial[BrokerEvidence]:
    """Search the copies of a message; `traced` are groups from traces, in addition to the groups of
    its topic."""
    by_offset: dict[str, tuple[Delivery, str]] = {}
    failures: tuple[BrokerFailure, ...] = ()
    if original is not None:
        delivery_answer = await session.ask(deliveries, original.message.offset_msg_id)
        failures = delivery_answer.failures
        by_offset = {each.group: (each.state, each.reason) for each in delivery_answer.value}
    waiting, wait_failures = await copies(session, [SCHEDULE_TOPIC], msg_id)
    delayed = [await _delayed_copy(session, each) for each in waiting]
    groups = sorted({*by_offset, *traced, *(each.group for each in delayed)} - {""})[:GROUPS_MAX]
    halves, half_failures = await copies(session, [TRANS_HALF_TOPIC], msg_id)
    retries, retry_failures = await copies(session, [retry_topic(each) for each in groups], msg_id)
    letters, letter_failures = await copies(session, [dlq_topic(each) for each in groups], msg_id)
    standings = [
        await _delivery_state(
            session, group, by_offset.get(group), delayed, retries, letters, now_ms
        )
        for group in groups
    ]
    found = BrokerEvidence(halves, tuple(delayed), retries, letters, tuple(standings))
    return Partial(
        found,
        merge_failures(failures, wait_failures, half_failures, retry_failures, letter_failures),
    )


async def copies(
    session: ClusterSession, topics: Sequence[str], msg_id: str
) -> tuple[tuple[MessageRef, ...], tuple[BrokerFailure, ...]]:
    """Return the copies of the message in these topics, oldest first; deleted topics have none."""

    async def search(topic: str) -> Partial[tuple[MessageRef, ...]]:
        try:
            answer = await session.ask(by_key, topic, msg_id)
        except NotFound:
            return Partial(())
        except GatewayError as failure:
            return Partial((), failure.failures)
        return Partial(answer.value.refs, answer.failures)

    parts = await asyncio.gather(*(search(each) for each in topics[:GROUPS_MAX] if each))
    refs = [ref for part in parts for ref in part.value if ref.message.msg_id == msg_id]
    refs.sort(key=lambda ref: (ref.message.store_timestamp, ref.message.offset_physical))
    return tuple(refs), merge_failures(*(part.failures for part in parts))


async def _delayed_copy(session: ClusterSession, ref: MessageRef) -> DelayedCopy:
    message = ref.message
    real = message.properties.get(names.PROPERTY_REAL_TOPIC, "")
    level = message.properties.get(names.PROPERTY_DELAY_TIME_LEVEL, "")
    due_ms = None
    if level.isascii() and level.isdecimal():
        try:
            known = (await session.ask(delays, ref.broker)).value
        except GatewayError:
            known = ()
        number = min(int(level[:4]), len(known))
        due_ms = message.store_timestamp + known[number - 1] if number > 0 else None
    group = real.removeprefix(RETRY_PREFIX) if real.startswith(RETRY_PREFIX) else ""
    return DelayedCopy(ref, group, message.reconsume_times, due_ms)


async def _delivery_state(
    session: ClusterSession,
    group: str,
    by_offset: tuple[Delivery, str] | None,
    delayed: Sequence[DelayedCopy],
    retries: Sequence[MessageRef],
    letters: Sequence[MessageRef],
    now_ms: int,
) -> GroupDeliveryState:
    """Return the state by the newest copy for the group."""
    given = [each for each in retries if each.message.topic == retry_topic(group)]
    waited = [each for each in delayed if each.group == group]
    died = [each for each in letters if each.message.topic == dlq_topic(group)]
    newest_ms = max((each.message.store_timestamp for each in given), default=0)
    last_wait = waited[-1] if waited else None
    if died and died[-1].message.store_timestamp >= newest_ms:
        return GroupDeliveryState(
            group, DeliveryState.DEAD_LETTERED, died[-1].message.reconsume_times
        )
    if last_wait is not None and last_wait.at_ms > newest_ms:
        due_ms = last_wait.due_ms
        coming = due_ms if due_ms is None or due_ms > now_ms else None
        return GroupDeliveryState(group, DeliveryState.RETRYING, last_wait.retry_times, coming)
    state, reason = by_offset or (Delivery.UNKNOWN, "")
    retry_times = 0
    if given:
        retry_times = given[-1].message.reconsume_times
        delivery_answer = await session.ask(deliveries, given[-1].message.offset_msg_id)
        own = next((each for each in delivery_answer.value if each.group == group), None)
        state, reason = (own.state, own.reason) if own else (Delivery.UNKNOWN, "")
    return GroupDeliveryState(group, DeliveryState(state.value), retry_times, reason=reason)
