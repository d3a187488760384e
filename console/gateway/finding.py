"""Questions that find messages by whatever is known of them: an id, a key, a place in a queue."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.gateway.answers import BrokerFailure, Partial
from console.gateway.brokers import masters
from console.gateway.desk import BrokerRef, Desk
from console.gateway.messages import MessageRef, brokers_of, message_at
from console.gateway.questions import question
from console.gateway.queue_slices import read_slice, topic_queues
from core_broker.message.model import MessageExt
from core_broker.message.topics import is_system_topic

#: RocketMQ answers a key query with at most this many messages per broker.
KEY_MESSAGES_MAX = 64
#: What has no topic is looked for in at most this many topics.
TOPICS_SEARCHED_MAX = 2_000
TOPICS_AT_ONCE_MAX = 16
TIMESTAMP_MAX = 2**63 - 1

#: `broker-a:3:1234` or `3:1234`: queue and offset within a topic, as lists of messages show them.
_PLACE = re.compile(r"(?:(?P<broker>[^:]+):)?(?P<queue>[0-9]{1,5}):(?P<offset>[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Found:
    """Messages, newest first. `is_cut` says that a broker had as many as it ever answers with."""

    refs: tuple[MessageRef, ...]
    is_cut: bool = False


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def find(desk: Desk, text: str, topic: str = "") -> Partial[Found]:
    """Messages that an id, a key or a place names, whatever kind it is.

    An offset id leads straight to its record, a place to its queue of the topic. Anything else is
    looked for in the key index of the topic, or of every topic when none is given.
    """
    ref, failures = await message_at(desk, text)
    if ref is not None:
        return Partial(Found((ref,)))
    if not topic:
        return await _in_all_topics(desk, text)
    if place := _PLACE.fullmatch(text):
        queue_id, offset = int(place["queue"]), int(place["offset"])
        at_place = await _at_place(desk, topic, place["broker"], queue_id, offset)
        if at_place.value.refs:
            return at_place
    answer = await desk.ask(by_key, topic, text)
    return Partial(answer.value, answer.failures or failures)


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def by_key(desk: Desk, topic: str, key: str) -> Partial[Found]:
    """Messages of a topic under a key or unique key, at most 64 of each broker."""
    return await _by_key(desk, topic, key, brokers_of(await topic_queues(desk, topic)))


async def _by_key(desk: Desk, topic: str, key: str, brokers: Sequence[BrokerRef]) -> Partial[Found]:
    async def ask(broker: BrokerRef) -> list[list[MessageExt]]:
        return await asyncio.gather(
            *(
                desk.admin.query_message(
                    broker.addr, topic, key, KEY_MESSAGES_MAX, 0, TIMESTAMP_MAX, unique=unique
                )
                for unique in (True, False)
            )
        )

    found, failures = await desk.each(brokers, ask)
    refs = {
        (broker, message.offset_physical): MessageRef(broker, message)
        for broker, lists in found.items()
        for messages in lists
        for message in messages
    }
    is_cut = any(len(each) >= KEY_MESSAGES_MAX for lists in found.values() for each in lists)
    return Partial(Found(_newest_first(refs.values()), is_cut), failures)


async def _in_all_topics(desk: Desk, key: str) -> Partial[Found]:
    brokers = await masters(desk)
    topics = [each for each in await desk.admin.topic_list() if not is_system_topic(each)]
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def ask(topic: str) -> Partial[Found]:
        async with gate:
            return await _by_key(desk, topic, key, brokers)

    parts = await asyncio.gather(*(ask(topic) for topic in topics[:TOPICS_SEARCHED_MAX]))
    failures: dict[BrokerFailure, None] = {
        failure: None for part in parts for failure in part.failures
    }
    refs = _newest_first(ref for part in parts for ref in part.value.refs)
    is_cut = len(topics) > TOPICS_SEARCHED_MAX or any(part.value.is_cut for part in parts)
    return Partial(Found(refs, is_cut), tuple(failures))


async def _at_place(
    desk: Desk, topic: str, broker: str | None, queue_id: int, offset: int
) -> Partial[Found]:
    """The messages at an offset of a queue, of one broker or of all that have such a queue."""
    queues = {
        each.broker: each
        for each in await topic_queues(desk, topic)
        if each.queue_id == queue_id and broker in {None, each.broker.name}
    }
    found, failures = await desk.each(
        queues, lambda each: read_slice(desk, queues[each], offset, offset + 1)
    )
    refs = (MessageRef(each, message) for each, part in found.items() for message in part.messages)
    return Partial(Found(_newest_first(refs)), failures)


def _newest_first(refs: Iterable[MessageRef]) -> tuple[MessageRef, ...]:
    def age(ref: MessageRef) -> tuple[int, int]:
        return ref.message.store_timestamp, ref.message.offset_physical

    return tuple(sorted(refs, key=age, reverse=True))
