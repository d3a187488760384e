"""Jobs as bars: every job is inside the picture, and jobs at the same time have separate rows."""

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from console.services.jobs.models import Job
from console.services.jobs.states import State
from console.services.jobs.timeline import TICK_DISTANCE_MIN, WIDTH_MIN, Timeline, timeline_of

HOUR_MS = 3_600_000
NOW_MS = 500_000 * HOUR_MS


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def job(
    number: int,
    begin_ms: int,
    start_ms: int | None,
    end_ms: int | None,
    *,
    kind: str = "ingest",
    state: State = State.SUCCEEDED,
    percent: float = 100,
) -> Job:
    return Job(
        pk=number, kind=kind, cluster="local", state=state, percent=percent,
        created_at=moment(begin_ms),
        started_at=None if start_ms is None else moment(start_ms),
        finished_at=None if end_ms is None else moment(end_ms),
    )  # fmt: skip


def picture(*jobs: Job) -> Timeline:
    found = timeline_of(jobs, NOW_MS)
    assert found is not None
    return found


def test_no_job_is_no_picture() -> None:
    assert timeline_of([], NOW_MS) is None


def test_a_bar_has_the_wait_the_run_and_its_progress() -> None:
    at = NOW_MS - 100_000
    (row,) = picture(job(1, at, at + 20_000, None, state=State.RUNNING, percent=25)).rows
    (bar,) = row.bars
    assert (bar.left, bar.wait, bar.run, bar.done) == (0, 19.6, 78.4, 19.6)
    assert bar.is_at_work


def test_a_waiting_job_has_no_run() -> None:
    (row,) = picture(job(1, NOW_MS - 50, None, None, state=State.QUEUED, percent=0)).rows
    assert (row.bars[0].run, row.bars[0].done) == (0, 0)
    assert row.bars[0].wait > 0


def test_jobs_at_the_same_time_have_rows_of_their_own() -> None:
    at = NOW_MS - HOUR_MS
    drawn = picture(
        job(1, at, at, at + 60_000),
        job(2, at + 30_000, at + 30_000, at + 90_000),
        job(3, at + 60_000, at + 60_000, at + 61_000),
        job(4, at, at, at + 1, kind="export"),
    )
    numbers = [[bar.job.pk for bar in row.bars] for row in drawn.rows]
    assert numbers == [[4], [1, 3], [2]]
    assert [row.first for row in drawn.rows] == [True, True, False]
    assert drawn.states == ("succeeded",)


def test_days_without_a_job_are_compressed() -> None:
    at = NOW_MS - 100 * HOUR_MS
    drawn = picture(job(1, at, at, at + 60_000), job(2, NOW_MS - 60_000, NOW_MS - 60_000, NOW_MS))
    (gap,) = drawn.gaps
    assert gap.duration_ms == 100 * HOUR_MS - 120_000
    first, second = drawn.rows[0].bars
    assert first.run > 40
    assert second.run > 40


def test_ticks_are_round_times_of_the_day() -> None:
    midnight_ms = NOW_MS - 10 * HOUR_MS
    begin_ms = midnight_ms + 9 * HOUR_MS + 90_000
    drawn = timeline_of([job(1, begin_ms, begin_ms, NOW_MS)], NOW_MS, midnight_ms)
    assert drawn is not None
    minutes = [(begin_ms - midnight_ms + tick.after_ms) / 60_000 for tick in drawn.ticks]
    assert minutes == [541.5, 560, 580]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ingest", "export"]),
            st.integers(0, 10**11),
            st.one_of(st.none(), st.integers(0, 10**6)),
            st.one_of(st.none(), st.integers(0, 10**8)),
            st.floats(0, 100),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_every_job_is_inside_the_picture(
    given_jobs: list[tuple[str, int, int | None, int | None, float]],
) -> None:
    jobs = []
    for number, (kind, age_ms, waited_ms, ran_ms, percent) in enumerate(given_jobs):
        begin_ms = NOW_MS - age_ms
        start_ms = None if waited_ms is None else begin_ms + waited_ms
        end_ms = None if ran_ms is None else (start_ms or begin_ms) + ran_ms
        jobs.append(job(number, begin_ms, start_ms, end_ms, kind=kind, percent=percent))
    drawn = picture(*jobs)
    bars = [bar for row in drawn.rows for bar in row.bars]
    assert sorted(bar.job.pk for bar in bars) == list(range(len(jobs)))
    for bar in bars:
        assert 0 <= bar.left <= 100 - WIDTH_MIN
        assert bar.wait + bar.run >= WIDTH_MIN - 0.01
        assert bar.done <= bar.run
        assert bar.right <= 100.01
    lefts = [tick.left for tick in drawn.ticks]
    assert all(after - before >= TICK_DISTANCE_MIN for before, after in pairwise(lefts))
