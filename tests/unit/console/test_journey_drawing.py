"""A journey as bars and steps: all events are inside the drawing."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from console.areas.traces.drawing import (
    ROW_HEIGHT,
    WIDTH_MIN,
    BrokerEvent,
    BrokerEventKind,
    draw,
    steps,
)
from console.frame.time_axis import GAPS_MAX, TICK_DISTANCE_MIN
from trace.codec import Pub, SubAfter, SubBefore, TraceRecord
from trace.timeline import Timeline, build_timeline

MOMENTS = st.integers(0, 10**13)


def pub(at_ms: int, cost_ms: int = 2) -> Pub:
    return Pub(timestamp_ms=at_ms, group="pg", topic="T", msg_id="M", cost_ms=cost_ms)


def attempt(at_ms: int, retry: int, *, success: bool, code: int | None = None) -> list[TraceRecord]:
    before = SubBefore(
        timestamp_ms=at_ms, group="cg", request_id=str(retry), msg_id="M", retry_times=retry
    )
    after = SubAfter(
        request_id=str(retry),
        msg_id="M",
        cost_ms=5,
        success=success,
        timestamp_ms=at_ms + 5,
        context_code=code,
    )
    return [before, after]


def journey() -> Timeline:
    records = [pub(1000), *attempt(1010, 0, success=False, code=1), *attempt(2000, 1, success=True)]
    return build_timeline(records, dead_letters={"cg": [2500]})


def test_each_who_took_part_has_a_lane() -> None:
    drawing = draw(journey())
    assert drawing is not None
    assert [row.name for row in drawing.rows] == ["", "cg"]
    assert [bar.tone for bar in drawing.rows[1].bars] == ["failure", "success", "dead"]
    assert drawing.tones == ("send", "failure", "success", "dead")
    assert drawing.height == 2 * ROW_HEIGHT
    assert (drawing.begin_ms, drawing.span_ms) == (1000, 1500)
    assert [gap.duration_ms for gap in drawing.gaps] == [985, 495]
    assert [tick.after_ms for tick in drawing.ticks] == [0, 5, 10, 15, 1500]
    assert [bar.number for bar in drawing.rows[1].bars] == [1, 2, None]


def test_a_journey_without_times_has_no_drawing() -> None:
    assert draw(build_timeline([])) is None


def test_an_attempt_is_one_step_with_its_outcome() -> None:
    resent = BrokerEvent(BrokerEventKind.RESENT, 2600, "cg", by="ada")
    found = steps(journey(), {("cg", 2500): "LETTER"}, [resent])
    assert [each.kind for each in found] == [
        "sent",
        "failed",
        "succeeded",
        "dead_lettered",
        "resent",
    ]
    assert [each.after_ms for each in found] == [0, 10, 1000, 1500, 1600]
    failed, letter, again = found[1], found[3], found[4]
    assert (failed.failure, failed.retry_times, failed.took_ms) == ("time_out", 0, 5)
    assert (letter.dead_letter_id, again.by) == ("LETTER", "ada")


def test_an_attempt_of_which_nobody_knows_the_time_comes_last() -> None:
    lost = SubAfter(request_id="x", msg_id="M", cost_ms=1, success=True)
    found = steps(build_timeline([pub(1000), lost]), {})
    assert [each.kind for each in found] == ["sent", "succeeded"]
    assert found[1].at_ms is None


def test_a_reason_that_no_client_knows_is_left_out() -> None:
    timeline = build_timeline(attempt(5, 0, success=False, code=99))
    assert steps(timeline, {})[0].failure == ""


@given(sent=MOMENTS, cost=MOMENTS, starts=st.lists(MOMENTS, max_size=5))
def test_every_bar_and_tick_is_on_the_drawing(sent: int, cost: int, starts: list[int]) -> None:
    attempts = [each for n, at in enumerate(starts) for each in attempt(at, n, success=False)]
    drawing = draw(build_timeline([pub(sent, cost), *attempts]))
    assert drawing is not None
    for row in drawing.rows:
        for bar in row.bars:
            assert 0 <= bar.left <= 100 - WIDTH_MIN
            assert bar.width >= WIDTH_MIN
            assert bar.left + bar.width <= 100.01
    lefts = [tick.left for tick in drawing.ticks]
    assert all(after - before >= TICK_DISTANCE_MIN for before, after in pairwise(lefts))
    assert len(drawing.gaps) <= GAPS_MAX
    assert all(0 <= tick.left <= 100 for tick in drawing.ticks)
