"""ProcessQueue: the offset to commit is the lowest unfinished offset, finished in any order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.client.consumer.process_queue import CacheLimits, PauseReason, ProcessQueue
from core_broker.message.model import MessageExt
from core_broker.remoting.bodies import MessageQueue

QUEUE = MessageQueue("T", "b", 0)


def message(offset: int, size: int = 10) -> MessageExt:
    return MessageExt(
        topic="T",
        body=b"x" * size,
        properties={},
        queue_id=0,
        queue_offset=offset,
        offset_physical=offset * 100,
        store_size=100,
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=("127.0.0.1", 1),
        store_timestamp=0,
        store_host=("127.0.0.1", 2),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
    )


def holding(*offsets: int, size: int = 10) -> ProcessQueue:
    process_queue = ProcessQueue(QUEUE, 0)
    process_queue.put([message(offset, size) for offset in offsets], offsets[-1] + 1)
    return process_queue


def test_nothing_pulled_nothing_to_commit() -> None:
    assert ProcessQueue(QUEUE, 0).offset_commit is None


def test_the_lowest_unfinished_offset_is_committed() -> None:
    process_queue = holding(5, 6, 7)
    assert process_queue.finish([message(6)], 1) == 5
    assert process_queue.finish([message(5)], 2) == 7
    assert process_queue.finish([message(7)], 3) == 8
    assert process_queue.count == process_queue.size_bytes == 0
    assert process_queue.last_consume_ms == 3


def test_a_gap_left_by_the_tag_filter_is_skipped() -> None:
    process_queue = holding(5, 90)
    assert process_queue.finish([message(5)], 1) == 90


def test_what_was_filtered_out_behind_the_last_message_is_finished_with_it() -> None:
    process_queue = ProcessQueue(QUEUE, 0)
    process_queue.put([message(5)], 90)
    assert process_queue.offset_commit == 5
    assert process_queue.finish([message(5)], 1) == 90
    assert process_queue.put([], 95) == []
    assert process_queue.offset_commit == 95


def test_messages_that_were_pulled_twice_are_kept_once() -> None:
    process_queue = holding(5, 6)
    fresh = process_queue.put([message(6), message(7)], 8)
    assert [each.queue_offset for each in fresh] == [7]
    assert process_queue.size_bytes == 30


def test_finishing_twice_changes_nothing() -> None:
    process_queue = holding(5, 6)
    process_queue.finish([message(5)], 1)
    assert process_queue.finish([message(5)], 1) == 6
    assert process_queue.size_bytes == 10


@pytest.mark.parametrize(
    ("offsets", "size", "pause_reason"),
    [
        (range(3), 10, None),
        (range(4), 10, PauseReason.TOO_MANY_MESSAGES),
        (range(2), 51, PauseReason.TOO_MANY_BYTES),
        ([0, 21], 10, PauseReason.SPAN_TOO_WIDE),
        ([0, 20], 10, None),
    ],
)
def test_pulling_pauses_at_each_limit(
    offsets: list[int], size: int, pause_reason: PauseReason | None
) -> None:
    limits = CacheLimits(messages_max=3, bytes_max=100, offset_span_max=20)
    assert holding(*offsets, size=size).pause_reason(limits) is pause_reason


def test_info_shows_the_cached_messages() -> None:
    info = holding(5, 6, size=1 << 20).info(offset_committed=4)
    assert (info.commit_offset, info.cached_msg_min_offset, info.cached_msg_max_offset) == (4, 5, 6)
    assert (info.cached_msg_count, info.cached_msg_size_in_mib) == (2, 2)
    assert ProcessQueue(QUEUE, 9).info(0).last_pull_timestamp == 9


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=40),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_no_unfinished_message_is_ever_below_the_commit(
    gaps: list[int], batch: int, order: random.Random
) -> None:
    process_queue, waiting, offset, pulled = ProcessQueue(QUEUE, 0), [], 0, iter(gaps)
    while True:
        batch_gaps = [gap for _, gap in zip(range(batch), pulled, strict=False)]
        for gap in batch_gaps:
            offset += gap
            waiting += process_queue.put([message(offset)], offset + 1)
        if not waiting:
            break
        done = waiting.pop(order.randrange(len(waiting)))
        commit = process_queue.finish([done], 0)
        assert commit == min((each.queue_offset for each in waiting), default=offset + 1)
    assert process_queue.offset_commit == offset + 1
