"""trace/timeline.py: from the records of one message to its timeline."""

from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace.attempts import AttemptState
from trace.codec import EndTransaction, Pub, Recall, SubAfter, SubBefore, TraceRecord
from trace.timeline import EventKind, Outcome, build_timeline


@dataclass
class Stored:
    msg_id: str
    store_timestamp: int


def pub(at: int = 1000, *, cost: int = 10, success: bool = True, msg_id: str = "M") -> Pub:
    return Pub(timestamp_ms=at, group="PG", topic="T", msg_id=msg_id, cost_ms=cost, success=success)


def before(
    at: int, retry: int = 0, *, group: str = "CG", request: str = "", msg_id: str = "M"
) -> SubBefore:
    request_id = request or f"{group}-{retry}"
    return SubBefore(
        timestamp_ms=at, group=group, request_id=request_id, msg_id=msg_id, retry_times=retry
    )


def after(
    start: SubBefore, cost: int, *, success: bool = True, stamped: bool = True, group: str = "CG"
) -> SubAfter:
    return SubAfter(
        request_id=start.request_id,
        msg_id=start.msg_id,
        cost_ms=cost,
        success=success,
        timestamp_ms=start.timestamp_ms + cost if stamped else None,
        group=group if stamped else "",
    )


def attempt(at: int, cost: int, retry: int = 0, *, success: bool = True) -> list[TraceRecord]:
    start = before(at, retry)
    return [start, after(start, cost, success=success)]


def test_a_message_that_was_consumed() -> None:
    timeline = build_timeline([pub(), *attempt(1030, 7)], Stored("M", 1004))
    assert [event.kind for event in timeline.events] == [
        EventKind.SENT,
        EventKind.STORED,
        EventKind.CONSUME_STARTED,
        EventKind.CONSUMED,
    ]
    assert timeline.outcome is Outcome.CONSUMED
    assert timeline.send_cost_ms == 10
    (journey,) = timeline.groups
    assert journey.outcome is Outcome.CONSUMED
    assert journey.skew_ms == 0
    assert journey.latencies.send_to_consume_ms == 30
    assert journey.latencies.store_to_consume_ms == 26
    assert journey.latencies.end_to_end_ms == 37
    assert timeline.latencies == {"CG": journey.latencies}


def test_without_the_message_the_store_time_is_the_middle_of_the_send() -> None:
    timeline = build_timeline([pub(), *attempt(1030, 7)])
    assert timeline.latencies["CG"].store_to_consume_ms == 25
    assert EventKind.STORED not in {event.kind for event in timeline.events}


def test_every_order_of_the_records_gives_the_same_timeline() -> None:
    records = [pub(), *attempt(1030, 7, success=False), *attempt(11_040, 3, 1)]
    wanted = build_timeline(records)
    for shuffled in permutations(records):
        assert build_timeline(shuffled) == wanted


def test_a_retry_carries_the_original_id_and_ends_well() -> None:
    timeline = build_timeline([pub(), *attempt(1030, 7, success=False), *attempt(11_040, 3, 1)])
    (journey,) = timeline.groups
    assert [a.state for a in journey.attempts] == [AttemptState.FAILED, AttemptState.SUCCEEDED]
    assert [a.retry_times for a in journey.attempts] == [0, 1]
    assert journey.outcome is Outcome.CONSUMED
    assert journey.latencies.send_to_consume_ms == 30
    assert journey.latencies.end_to_end_ms == 10_043


def test_a_failed_message_is_retrying_until_the_last_retry_failed() -> None:
    records = [r for n in range(17) for r in attempt(2000 * (n + 1), 5, n, success=False)]
    assert build_timeline(records[:4]).outcome is Outcome.RETRYING
    assert build_timeline(records[:-1]).outcome is Outcome.RETRYING
    assert build_timeline(records).outcome is Outcome.DEAD_LETTERED


def test_the_limit_of_the_group_and_the_dead_letter_topic_decide_too() -> None:
    records = [pub(), *attempt(1030, 7, success=False)]
    assert build_timeline(records, retry_times_max={"CG": 0}).outcome is Outcome.DEAD_LETTERED
    assert build_timeline(records, retry_times_max={"CG": 3}).outcome is Outcome.RETRYING
    timeline = build_timeline(records, dead_letters={"CG": [1040]})
    assert timeline.outcome is Outcome.DEAD_LETTERED
    assert (timeline.events[-1].kind, timeline.events[-1].at_ms) == (EventKind.DEAD_LETTERED, 1040)


def again(at: int, retry: int, *, success: bool) -> list[TraceRecord]:
    start = before(at, retry, request=f"again-{at}")
    return [start, after(start, 5, success=success)]


def test_a_dead_letter_that_was_resent_begins_a_new_round() -> None:
    records = [pub(), *attempt(1030, 7, success=False), *attempt(2000, 7, 1, success=False)]
    resent = [*records, *again(9000, 0, success=False)]
    assert build_timeline(resent, dead_letters={"CG": [2010]}).outcome is Outcome.RETRYING
    twice = build_timeline(resent, dead_letters={"CG": [2010, 9010]})
    assert twice.outcome is Outcome.DEAD_LETTERED
    consumed = build_timeline([*resent, *again(9500, 1, success=True)], dead_letters={"CG": [2010]})
    assert consumed.outcome is Outcome.CONSUMED
    assert [a.retry_times for a in consumed.attempts] == [0, 1, 0, 1]
    assert [event.skew_ms for event in consumed.events] == [0] * len(consumed.events)


def test_a_consumer_whose_clock_is_ahead_does_not_begin_a_round_with_its_last_attempt() -> None:
    records = [pub(), *attempt(1030, 7, success=False), *attempt(2000, 7, 1, success=False)]
    timeline = build_timeline(records, dead_letters={"CG": [1500]})
    assert timeline.outcome is Outcome.DEAD_LETTERED


def test_each_group_has_its_own_outcome_and_the_worst_is_the_messages() -> None:
    other = before(1050, group="OTHER")
    timeline = build_timeline([pub(), *attempt(1030, 7), other, after(other, 5, success=False)])
    assert {j.group: j.outcome for j in timeline.groups} == {
        "CG": Outcome.CONSUMED,
        "OTHER": Outcome.RETRYING,
    }
    assert timeline.outcome is Outcome.RETRYING


def test_a_lost_end_leaves_the_attempt_unfinished() -> None:
    timeline = build_timeline([pub(), before(1030)])
    (journey,) = timeline.groups
    assert journey.outcome is Outcome.PENDING
    assert journey.attempts[0].state is AttemptState.UNFINISHED
    assert journey.attempts[0].end_ms is None
    assert journey.latencies.end_to_end_ms is None


def test_a_lost_end_of_an_earlier_attempt_does_not_hide_the_success() -> None:
    timeline = build_timeline([pub(), before(1030), *attempt(11_040, 3, 1)])
    assert timeline.outcome is Outcome.CONSUMED


def test_a_retry_without_an_end_is_still_retrying() -> None:
    timeline = build_timeline([*attempt(1030, 7, success=False), before(11_040, 1)])
    assert timeline.outcome is Outcome.RETRYING


def test_an_attempt_with_a_lost_start_is_ordered_by_time() -> None:
    lost = after(before(5000, 1), 10)
    timeline = build_timeline(
        [pub(), *attempt(1030, 7, success=False), lost, *attempt(31_040, 3, 2)]
    )
    (journey,) = timeline.groups
    assert [a.retry_times for a in journey.attempts] == [0, None, 2]
    assert journey.attempts[1].start_ms == 5000


def test_an_end_of_an_old_client_has_neither_time_nor_group() -> None:
    timeline = build_timeline([pub(), after(before(5000), 10, stamped=False)])
    (journey,) = timeline.groups
    assert journey.group == ""
    assert journey.outcome is Outcome.CONSUMED
    assert journey.latencies.end_to_end_ms is None
    assert [event.kind for event in timeline.events] == [EventKind.SENT]


def test_repeated_records_are_counted_once() -> None:
    records = [pub(), *attempt(1030, 7)]
    timeline = build_timeline(records * 3)
    assert timeline.duplicate_count == 6
    assert timeline.events == build_timeline(records).events


def test_the_same_message_delivered_twice_is_two_attempts() -> None:
    again = before(1040, request="after-rebalance")
    timeline = build_timeline([pub(), *attempt(1030, 7), again, after(again, 3)])
    assert len(timeline.attempts) == 2
    assert timeline.outcome is Outcome.CONSUMED


def test_a_consumer_whose_clock_is_behind_starts_no_earlier_than_the_send() -> None:
    timeline = build_timeline([pub(10_000), *attempt(4000, 7)])
    (journey,) = timeline.groups
    assert journey.skew_ms == 6000
    assert journey.latencies.send_to_consume_ms == 0
    assert journey.latencies.end_to_end_ms == 7
    assert [event.at_ms for event in timeline.events] == [10_000, 10_000, 10_007]
    assert timeline.events[0].kind is EventKind.SENT
    assert [event.at_ms - event.skew_ms for event in timeline.events] == [10_000, 4000, 4007]


def test_a_retry_on_another_clock_starts_no_earlier_than_the_failure() -> None:
    timeline = build_timeline([pub(), *attempt(1030, 70, success=False), *attempt(500, 3, 1)])
    first, second = timeline.attempts
    assert first.skew_ms == 0
    assert second.start_ms == first.end_ms == 1100
    assert second.skew_ms == 600


def test_the_timestamps_of_a_batch_call_win_over_the_divided_cost() -> None:
    start = before(1030)
    end = SubAfter(
        request_id=start.request_id,
        msg_id="M",
        cost_ms=10,
        success=True,
        timestamp_ms=1130,
        group="CG",
    )
    assert build_timeline([start, end]).attempts[0].duration_ms == 100


def test_a_send_that_failed_first_and_then_went_through() -> None:
    timeline = build_timeline([pub(1000, success=False), pub(1020, cost=4)])
    assert [event.kind for event in timeline.events] == [EventKind.SEND_FAILED, EventKind.SENT]
    assert timeline.send_cost_ms == 4
    assert timeline.outcome is Outcome.PENDING


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([], Outcome.PENDING),
        ([pub(success=False)], Outcome.SEND_FAILED),
        (
            [
                pub(),
                EndTransaction(
                    timestamp_ms=1,
                    group="PG",
                    topic="T",
                    msg_id="M",
                    transaction_state="ROLLBACK_MESSAGE",
                ),
            ],
            Outcome.ROLLED_BACK,
        ),
        ([pub(), Recall(timestamp_ms=1, group="PG", topic="T", msg_id="M")], Outcome.RECALLED),
        (
            [pub(), Recall(timestamp_ms=1, group="PG", topic="T", msg_id="M", success=False)],
            Outcome.PENDING,
        ),
    ],
)
def test_unconsumed_messages(records: list[TraceRecord], outcome: Outcome) -> None:
    assert build_timeline(records).outcome is outcome


def test_records_of_other_messages_are_left_out() -> None:
    other = before(2000, msg_id="OTHER", request="CG-0")
    records = [pub(msg_id="OTHER"), pub(msg_id="X,M,Y"), *attempt(1030, 7), other]
    timeline = build_timeline(records, msg_id="M")
    assert len(timeline.events) == 3
    assert len(timeline.attempts) == 1


TIMES = st.integers(0, 50)
ANY_RECORD = st.one_of(
    st.builds(pub, TIMES, cost=TIMES, success=st.booleans()),
    st.builds(before, TIMES, st.integers(0, 17), request=st.sampled_from("abcd")),
    st.builds(
        lambda at, retry, request, cost, success, stamped: after(
            before(at, retry, request=request), cost, success=success, stamped=stamped
        ),
        TIMES,
        st.integers(0, 3),
        st.sampled_from("abcd"),
        TIMES,
        st.booleans(),
        st.booleans(),
    ),
)


@given(st.lists(ANY_RECORD, max_size=12))
def test_effects_never_precede_causes_for_any_records(
    records: list[TraceRecord],
) -> None:
    timeline = build_timeline(records)
    sent = [event.at_ms for event in timeline.events if event.kind is EventKind.SENT]
    for event in timeline.events:
        assert event.skew_ms >= 0
        if sent and event.kind in {EventKind.CONSUME_STARTED, EventKind.CONSUMED}:
            assert event.at_ms >= min(
                e.at_ms
                for e in timeline.events
                if e.kind in {EventKind.SENT, EventKind.SEND_FAILED}
            )
    for latencies in timeline.latencies.values():
        values = (latencies.send_to_consume_ms, latencies.end_to_end_ms)
        assert all(value is None or value >= 0 for value in values)
