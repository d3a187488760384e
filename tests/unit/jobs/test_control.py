"""Python work: progress, commands, end."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from console.services.jobs import control as controls
from console.services.jobs import files, kinds, ledger, presentation, runner
from console.services.jobs.control import Cancelled, Control, JobFailed
from console.services.jobs.models import Job, Origin
from console.services.jobs.reports import Done
from console.services.jobs.states import State

pytestmark = pytest.mark.django_db

KIND = "count"


@pytest.fixture(autouse=True)
def _home(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.GANTRY_HOME = tmp_path
    settings.JOB_FILES_MB = 1
    monkeypatch.setattr(controls, "POLL_S", 0.0)
    monkeypatch.setattr(controls, "HEARTBEAT_S", 0.0)
    yield
    controls.stopping.clear()
    kinds.unregister(KIND)


def run(
    work: kinds.Work, notify: Callable[[Job], object] = lambda job: None, *, seconds_max: float = 60
) -> Job:
    kinds.register(KIND, work, title="Count", can_pause=True, seconds_max=seconds_max)
    job = ledger.enqueue("local", KIND, by=None, origin=Origin.PERSON, inputs={"most": 3})

    def listener(job: Job) -> None:
        notify(job)

    runner.run(job.pk, notify=listener)
    job.refresh_from_db()
    return job


def count(job: Job, control: Control) -> Done:
    for number in range(job.inputs["most"]):
        control.check()
        control.moved(
            stage="count", done=number + 1, total=3, detail=f"at {number}", outputs={"odd": number}
        )
    return Done(done=3, outputs={"counted": 3}, note="All of them.")


def test_progress_goes_into_the_row_and_to_who_watches() -> None:
    heard: list[tuple[str, int, int | None, str]] = []
    job = run(count, lambda job: heard.append((job.stage, job.done, job.total, job.detail)))
    assert ("count", 2, 3, "at 1") in heard
    assert (job.state, job.done, job.percent) == (State.SUCCEEDED, 3, 100)
    assert job.outputs == {"counted": 3, "note": "All of them."}


def test_only_the_newest_of_a_moment_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "POLL_S", 3600.0)
    monkeypatch.setattr(controls, "HEARTBEAT_S", 3600.0)
    heard: list[int] = []

    def work(job: Job, control: Control) -> Done:
        for number in range(1000):
            control.moved(stage="count", done=number)
            control.check()
        raise JobFailed("enough")

    job = run(work, lambda job: heard.append(job.done))
    assert heard == [0, 0, 999, 999]
    assert (job.done, job.error) == (999, "enough")


def test_a_paused_job_waits_and_goes_on() -> None:
    seen: list[str] = []

    def steer(job: Job) -> None:
        seen.append(job.state)
        if job.done == 2 and State.PAUSED not in seen:
            ledger.pause(job)
        elif seen.count(State.PAUSED) == 3:
            ledger.resume(job)

    job = run(count, steer)
    assert job.state == State.SUCCEEDED
    assert seen.count(State.PAUSED) == 3
    assert seen[-2:] == [State.RUNNING, State.SUCCEEDED]


def test_time_that_it_was_paused_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def steer(job: Job) -> None:
        if job.done == 1 and job.state == State.RUNNING and not job.rate:
            ledger.pause(job)
            Job.objects.filter(pk=job.pk).update(rate=1)
        elif job.state == State.PAUSED:
            monkeypatch.setattr(time, "monotonic", lambda: now() + 3600)
            ledger.resume(job)

    now = time.monotonic
    assert run(count, steer).state == State.SUCCEEDED


def test_cancel_ends_the_work_also_while_it_is_paused() -> None:
    def steer(job: Job) -> None:
        if job.state == State.PAUSED:
            ledger.cancel(job)
        elif job.done == 1:
            ledger.pause(job)

    job = run(count, steer)
    assert (job.state, job.done, job.outputs) == (State.CANCELLED, 1, {"odd": 0})


def test_work_that_was_given_up_hears_so() -> None:
    ended: list[bool] = []

    def work(job: Job, control: Control) -> Done:
        Job.objects.filter(pk=job.pk).update(state=State.FAILED, error="lost")
        try:
            control.check()
        except Cancelled:
            ended.append(True)
            raise
        return Done()

    job = run(work)
    assert ended == [True]
    assert (job.state, job.error) == (State.FAILED, "lost")


def test_a_worker_that_stops_ends_its_jobs() -> None:
    job = run(count, lambda job: controls.stopping.set())
    assert (job.state, job.error) == (State.FAILED, controls.WORKER_STOPPED)


def test_work_that_takes_too_long() -> None:
    job = run(count, seconds_max=0)
    assert (job.state, job.error) == (State.FAILED, controls.TOOK_TOO_LONG)


def test_waiting_looks_at_the_wishes() -> None:
    def work(job: Job, control: Control) -> Done:
        ledger.cancel(job)
        control.wait(3600)
        return Done()

    assert run(work).state == State.CANCELLED


def test_a_heartbeat_is_written_by_looking() -> None:
    moment = timezone.now()

    def work(job: Job, control: Control) -> Done:
        control.check()
        return Done()

    assert run(work).heartbeat_at >= moment


def test_work_that_breaks_says_what_broke() -> None:
    def work(job: Job, control: Control) -> Done:
        raise RuntimeError("the floor is gone")

    assert run(work).error == "RuntimeError: the floor is gone"


def test_a_kind_that_nobody_knows_any_more() -> None:
    job = ledger.enqueue("local", "gone", by=None, origin=Origin.PERSON)
    runner.run(job.pk, notify=lambda job: None)
    job.refresh_from_db()
    assert (job.state, job.error, presentation.title(job)) == (
        State.FAILED,
        runner.UNKNOWN_KIND,
        "gone",
    )


def test_a_file_that_grows_too_large_fails_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MEGABYTE", 10)

    def work(job: Job, control: Control) -> Done:
        with files.writing(job.pk, "a.txt") as file:
            file.write(b"x" * 11)
        return Done()

    job = run(work)
    assert (job.state, job.error) == (State.FAILED, files.TOO_LARGE)
    assert files.listing(job.pk) == []


def test_a_name_is_registered_once() -> None:
    kinds.register(KIND, count, title="Count")
    for name in (KIND, "", "x" * (kinds.NAME_CHARS_MAX + 1)):
        with pytest.raises(ValueError, match="already registered"):
            kinds.register(name, count, title="Count")
