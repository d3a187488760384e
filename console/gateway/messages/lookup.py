"""Questions that find messages by message id, by key, or by queue and offset."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.masks import NO_MASK, Mask
from console.gateway.messages.queue_slices import brokers_of, read_slice, topic_queues
from console.gateway.messages.stored import MessageRef, message_at
from core_broker.errors import ClientError
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt
from core_broker.message.topics import is_system_topic

#: Maximum number of messages that a RocketMQ broker returns for a key query.
KEY_MESSAGES_MAX = 64
#: Maximum number of topics that a query without a topic searches.
TOPICS_SEARCHED_MAX = 5_000
TOPICS_AT_ONCE_MAX = 16
TIMESTAMP_MAX = 2**63 - 1

#: `broker-a:3:1234` or `3:1234`: queue and offset within a topic, the format of message lists.
_QUEUE_OFFSET = re.compile(r"(?:(?P<broker>[^:]+):)?(?P<queue>[0-9]{1,5}):(?P<offset>[0-9]{1,18})")
#: `orders/3/1234`, also `orders/broker-a:3:1234`: topic, queue and offset.
_TOPIC_QUEUE_OFFSET = re.compile(
    r"(?P<topic>[^/\s]+)/(?:(?P<broker>[^:/]+)[:/])?(?P<queue>[0-9]{1,5})[:/](?P<offset>[0-9]{1,18})"
)
#: Message ids of 5.x clients: version, machine, process, seconds since 2021, sequence.
_ID_OF_5 = re.compile(r"01[0-9A-Fa-f]{32}")


class Index(StrEnum):
    """The indexes that a lookup searches."""

    #: The commit logs, at the offset of the id.
    OFFSET_ID = "offset_id"
    #: A queue, at an offset.
    PLACE = "place"
    #: The key indexes, for unique keys of 4.x and 5.x clients.
    UNIQUE_KEY = "unique_key"
    #: The key indexes, for keys of the application.
    KEY = "key"


@dataclass(frozen=True, slots=True)
class SearchedIndex:
    """A searched index and the number of its messages."""

    index: Index
    found: int
    brokers: int
    #: Number of searched topics; None for an index without topics.
    topics: int | None = None


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Messages, newest first, and the searched indexes, in order.

    `is_cut`: a broker returned KEY_MESSAGES_MAX messages, or the cluster has more topics than
    TOPICS_SEARCHED_MAX, so messages may be missing.
    """

    refs: tuple[MessageRef, ...]
    is_cut: bool = False
    searched: tuple[SearchedIndex, ...] = ()


def is_exact_reference(text: str) -> bool:
    """Return True for a message id or a topic, queue and offset: the search box looks these up."""
    return is_offset_id(text) or any(
        pattern.fullmatch(text) for pattern in (_ID_OF_5, _TOPIC_QUEUE_OFFSET)
    )


@question(fresh_for_ms=2_000, deadline_ms=20_000)
async def find(
    session: ClusterSession, text: str, topic: str = "", mask: Mask = NO_MASK
) -> Partial[LookupResult]:
    """Messages for an id, a key, or a queue and offset, of any age.

    An offset message id leads to its record, a queue and offset to the queue. Other texts are
    searched in the key index of the topic, or of every topic without one. The key query has no time
    range, so brokers search all index files. A masked key finds no message.
    """
    searched: list[SearchedIndex] = []
    failures: tuple[BrokerFailure, ...] = ()
    if is_offset_id(text):
        ref, failures = await message_at(session, text)
        searched.append(
            SearchedIndex(Index.OFFSET_ID, int(ref is not None), len(await masters(session)))
        )
        if ref is not None:
            return Partial(LookupResult((ref.seen_through(mask),), searched=tuple(searched)))
    reference = _queue_offset_of(text, topic)
    if reference:
        at_offset = await _at_queue_offset(session, *reference)
        searched += at_offset.value.searched
        if at_offset.value.refs:
            seen = tuple(ref.seen_through(mask) for ref in at_offset.value.refs)
            found = replace(at_offset.value, refs=seen, searched=tuple(searched))
            return Partial(found, at_offset.failures)
    answer = await (
        session.ask(by_key, topic, text, mask) if topic else _in_all_topics(session, text, mask)
    )
    found = replace(answer.value, searched=(*searched, *answer.value.searched))
    return Partial(found, merge_failures(failures, answer.failures))


def is_offset_id(text: str) -> bool:
    try:
        parse_offset_msg_id(text)
    except ClientError:
        return False
    return True


@question(fresh_for_ms=2_000, deadline_ms=10_000)
async def by_key(
    session: ClusterSession, topic: str, key: str, mask: Mask = NO_MASK
) -> Partial[LookupResult]:
    """Messages of a topic with this key or unique key, at most KEY_MESSAGES_MAX per broker."""
    brokers = brokers_of(await topic_queues(session, topic))
    part = await _by_key(session, topic, key, brokers, mask)
    return Partial(_found_by_key([part], len(brokers)), part.failures)


@dataclass(frozen=True, slots=True)
class _InTopic:
    """The messages of a topic by unique key and by key."""

    unique: Sequence[MessageRef]
    keyed: Sequence[MessageRef]
    failures: tuple[BrokerFailure, ...]


async def _by_key(
    session: ClusterSession, topic: str, key: str, brokers: Sequence[BrokerRef], mask: Mask
) -> _InTopic:
    async def ask(broker: BrokerRef) -> list[list[MessageExt]]:
        return await asyncio.gather(
            *(
                session.admin.query_message(
                    broker.addr, topic, key, KEY_MESSAGES_MAX, 0, TIMESTAMP_MAX, unique=unique
                )
                for unique in (True, False)
            )
        )

    found, failures = await session.fan_out(brokers, ask)
    unique, keyed = (
        [
            MessageRef(broker, message).seen_through(mask)
            for broker, lists in found.items()
            for message in lists[kind]
        ]
        for kind in (0, 1)
    )
    return _InTopic(unique, [ref for ref in keyed if _shows_key(ref, key)], failures)


def _shows_key(ref: MessageRef, key: str) -> bool:
    """False for a message whose masked keys lack the key: the reader must not learn of the key."""
    return not ref.masked or key in (ref.message.msg_id, *ref.message.keys)


def _found_by_key(parts: Sequence[_InTopic], brokers: int, *, is_cut: bool = False) -> LookupResult:
    """Merge the messages of several topics, without duplicates."""
    unique = [ref for part in parts for ref in part.unique]
    keyed = [ref for part in parts for ref in part.keyed]
    refs = {(ref.broker, ref.message.offset_physical): ref for ref in (*unique, *keyed)}
    is_full = any(
        count >= KEY_MESSAGES_MAX
        for part in parts
        for kind in (part.unique, part.keyed)
        for count in Counter(ref.broker for ref in kind).values()
    )
    searched = (
        SearchedIndex(Index.UNIQUE_KEY, len(unique), brokers, len(parts)),
        SearchedIndex(Index.KEY, len(keyed), brokers, len(parts)),
    )
    return LookupResult(_newest_first(refs.values()), is_cut or is_full, searched)


async def _in_all_topics(session: ClusterSession, key: str, mask: Mask) -> Partial[LookupResult]:
    brokers = await masters(session)
    topics = [each for each in await session.admin.topic_list() if not is_system_topic(each)]
    gate = asyncio.Semaphore(TOPICS_AT_ONCE_MAX)

    async def ask(topic: str) -> _InTopic:
        async with gate:
            return await _by_key(session, topic, key, brokers, mask)

    parts = await asyncio.gather(*(ask(topic) for topic in topics[:TOPICS_SEARCHED_MAX]))
    found = _found_by_key(parts, len(brokers), is_cut=len(topics) > TOPICS_SEARCHED_MAX)
    return Partial(found, merge_failures(*(part.failures for part in parts)))


def _queue_offset_of(text: str, topic: str) -> tuple[str, str | None, int, int] | None:
    """Parse topic, broker, queue and offset; None for other texts or a different topic."""
    reference = _TOPIC_QUEUE_OFFSET.fullmatch(text)
    named = reference["topic"] if reference else ""
    if topic and named != topic:
        reference, named = _QUEUE_OFFSET.fullmatch(text), topic
    if reference is None:
        return None
    return named, reference["broker"], int(reference["queue"]), int(reference["offset"])


async def _at_queue_offset(
    session: ClusterSession, topic: str, broker: str | None, queue_id: int, offset: int
) -> Partial[LookupResult]:
    """Return the messages at an offset of a queue, on the named broker or on all brokers."""
    try:
        known = await topic_queues(session, topic)
    except NotFound:
        known = ()  # no queue and offset, but possibly a key
    queues = {
        each.broker: each
        for each in known
        if each.queue_id == queue_id and broker in {None, each.broker.name}
    }
    found, failures = await session.fan_out(
        queues, lambda each: read_slice(session, queues[each], offset, offset + 1)
    )
    refs = [MessageRef(each, message) for each, part in found.items() for message in part.messages]
    searched = (SearchedIndex(Index.PLACE, len(refs), len(queues)),)
    return Partial(LookupResult(_newest_first(refs), searched=searched), failures)


def _newest_first(refs: Iterable[MessageRef]) -> tuple[MessageRef, ...]:
    def age(ref: MessageRef) -> tuple[int, int]:
        return ref.message.store_timestamp, ref.message.offset_physical

    return tuple(sorted(refs, key=age, reverse=True))
