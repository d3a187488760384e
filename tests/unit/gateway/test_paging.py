"""Paging over several queues: every message once, newest first, also while messages arrive."""

import base64
import contextlib
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.gateway.engine.session import BrokerRef
from console.gateway.messages.paging import (
    CURSOR_CHARS_MAX,
    Budget,
    CursorError,
    Window,
    decode_cursor,
    encode_cursor,
    newest_first,
    newest_matching,
    windows_before,
)
from console.gateway.messages.queue_slices import QueueRef, Slice
from core_broker.message.model import MessageExt
from tests.support.stored_messages import stored

BROKER = BrokerRef("broker-a", 0, "127.0.0.1:10911")


class Topic:
    """Queues in memory; `deleted` offsets are not returned, as after retention."""

    def __init__(self, times: list[list[int]], deleted: frozenset[tuple[int, int]] = frozenset()):
        self.queues = [
            [stored(queue_id, offset, each) for offset, each in enumerate(sorted(queue))]
            for queue_id, queue in enumerate(times)
        ]
        self.deleted = deleted

    def windows(self) -> list[Window]:
        return [
            Window(QueueRef("T", BROKER, queue_id, readable=True), 0, len(queue))
            for queue_id, queue in enumerate(self.queues)
        ]

    async def fetch(self, queue: QueueRef, begin: int, end: int) -> Slice:
        found = [
            each
            for each in self.queues[queue.queue_id][begin:end]
            if (queue.queue_id, each.queue_offset) not in self.deleted
        ]
        return Slice(tuple(found))


async def walk(
    topic: Topic, limit: int, between: Callable[[], None] = lambda: None
) -> list[MessageExt]:
    seen: list[MessageExt] = []
    windows = topic.windows()
    for _page in range(1000):
        page = await newest_first(windows, limit, topic.fetch)
        seen += [message for _queue, message in page.messages]
        cursor = encode_cursor(page.ends)
        if cursor is None:
            return seen
        between()
        windows = windows_before(topic.windows(), decode_cursor(cursor))
    raise AssertionError("the pages never end")


TIMES = st.lists(st.lists(st.integers(0, 500), max_size=60), min_size=1, max_size=5)


@given(times=TIMES, limit=st.integers(1, 40))
async def test_pages_hold_every_message_once_and_newest_first(
    times: list[list[int]], limit: int
) -> None:
    topic = Topic(times)
    seen = await walk(topic, limit)
    assert len(seen) == sum(len(queue) for queue in topic.queues)
    assert len({(each.queue_id, each.queue_offset) for each in seen}) == len(seen)
    stamps = [each.store_timestamp for each in seen]
    assert stamps == sorted(stamps, reverse=True)


async def test_messages_that_arrive_between_pages_neither_repeat_nor_hide_rows() -> None:
    topic = Topic([list(range(0, 100, 2)), list(range(1, 100, 2))])
    known = sum(len(queue) for queue in topic.queues)

    def arrive() -> None:
        for queue_id, queue in enumerate(topic.queues):
            queue.append(stored(queue_id, len(queue), 10_000 + len(queue)))

    seen = await walk(topic, 7, arrive)
    assert len(seen) == known
    assert len({(each.queue_id, each.queue_offset) for each in seen}) == known


async def test_deleted_stretches_are_passed_over() -> None:
    topic = Topic([list(range(200))], deleted=frozenset((0, offset) for offset in range(20, 180)))
    seen = await walk(topic, 10)
    assert [each.queue_offset for each in seen] == [*range(199, 179, -1), *range(19, -1, -1)]


async def test_an_empty_topic_is_one_empty_page() -> None:
    page = await newest_first([], 10, Topic([]).fetch)
    assert page.messages == ()
    assert encode_cursor(page.ends) is None


@pytest.mark.parametrize(
    "text",
    [
        "!",
        "AAAA",
        base64.urlsafe_b64encode(b"[1]").decode(),
        base64.urlsafe_b64encode(b'{"a": "b"}').decode(),
        "é" * 8,
        "A" * (CURSOR_CHARS_MAX + 1),
    ],
)
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(CursorError):
        decode_cursor(text)


@given(st.text(max_size=200))
def test_any_text_is_a_cursor_or_is_refused(text: str) -> None:
    with contextlib.suppress(CursorError):
        assert isinstance(decode_cursor(text), dict)


def test_a_cursor_cannot_reach_outside_of_the_window() -> None:
    window = Window(QueueRef("T", BROKER, 0, readable=True), 10, 20)
    key = window.queue.key
    assert windows_before([window], {key: 99})[0].end == 20
    assert windows_before([window], {key: -5})[0].count == 0
    assert windows_before([window], {})[0].count == 0


@given(
    st.lists(st.lists(st.integers(0, 50), max_size=30), min_size=1, max_size=4),
    st.integers(1, 10),
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(0, 60),
)
async def test_a_search_finds_the_same_wherever_its_budget_ends(
    times: list[list[int]], limit: int, messages: int, modulus: int, late_after: int
) -> None:
    topic = Topic(times)

    def wanted(message: MessageExt) -> bool:
        return message.queue_offset % modulus == 0

    found: list[tuple[int, int]] = []
    windows, scanned = topic.windows(), 0
    for _page in range(1_000):
        questions = count(1)
        budget = Budget(messages, bytes=10**9, until_s=late_after, clock_s=questions.__next__)
        page = await newest_matching(windows, limit, topic.fetch, wanted, budget)
        found += [(each.queue_id, each.queue_offset) for _queue, each in page.messages]
        scanned += page.scanned
        assert len(page.messages) <= limit
        assert page.scanned <= messages
        if not page.ends:
            break
        windows = windows_before(windows, page.ends)
    everything = [each for queue in topic.queues for each in queue]
    assert sorted(found) == sorted(
        (each.queue_id, each.queue_offset) for each in everything if wanted(each)
    )
    assert scanned == len(everything)


async def test_a_budget_of_bytes_or_time_ends_a_page() -> None:
    topic = Topic([list(range(20))])
    size = topic.queues[0][0].store_size
    for budget in (
        Budget(10**6, bytes=3 * size, until_s=1.0, clock_s=lambda: 0.0),
        Budget(10**6, bytes=10**9, until_s=1.0, clock_s=iter([0.0, 0.5, 1.5, 1.6]).__next__),
    ):
        page = await newest_matching(topic.windows(), 50, topic.fetch, lambda _: False, budget)
        assert (page.scanned, page.ends) == (3, {"broker-a:0": 17})
