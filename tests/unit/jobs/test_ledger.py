"""Rows of jobs: one at a time, only forward, freed when their worker is lost."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.utils import timezone

from console.services.analytics.trace_jobs import INGEST
from console.services.jobs import ledger
from console.services.jobs.errors import AlreadyActive
from console.services.jobs.models import Job, Origin
from console.services.jobs.reports import Done, Progress
from console.services.jobs.states import State

pytestmark = pytest.mark.django_db


def queued(cluster: str = "local") -> Job:
    return ledger.enqueue(cluster, INGEST, by=None, origin=Origin.SCHEDULE)


def running(cluster: str = "local") -> Job:
    job = ledger.claim(queued(cluster).pk, "worker-1")
    assert job is not None
    return job


def test_who_started_it_is_written_down() -> None:
    user = User.objects.create_user("ann")
    job = ledger.enqueue("local", INGEST, by=user, origin=Origin.PERSON)
    assert (job.started_by, job.state) == (user, State.QUEUED)
    assert ledger.enqueue("b", INGEST, by=AnonymousUser(), origin=Origin.PERSON).pk


def test_one_at_a_time_per_cluster_and_kind() -> None:
    first = queued()
    with pytest.raises(AlreadyActive) as caught:
        queued()
    assert caught.value.job == first
    assert queued("other").pk
    assert ledger.claim(first.pk, "w") is not None
    with pytest.raises(AlreadyActive):
        queued()
    first.refresh_from_db()
    ledger.finish(first, State.SUCCEEDED, done=Done(done=5))
    assert queued().pk


def test_the_database_itself_holds_the_lock() -> None:
    queued()
    now = timezone.now()
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.create(
            cluster="local", kind=INGEST, state=State.RUNNING, created_at=now, heartbeat_at=now
        )


def test_a_job_is_taken_once() -> None:
    job = queued()
    assert ledger.claim(job.pk, "w1") is not None
    assert ledger.claim(job.pk, "w2") is None


def test_a_job_cancelled_in_the_queue_is_not_run() -> None:
    job = queued()
    assert ledger.cancel(job)
    assert ledger.claim(job.pk, "w") is None
    job.refresh_from_db()
    assert (job.state, job.finished_at is not None) == (State.CANCELLED, True)
    assert not ledger.cancel(job)


def test_a_running_job_is_asked_to_stop_and_stays_running() -> None:
    job = running()
    assert ledger.pending_command(job) is ledger.Command.CONTINUE
    assert ledger.cancel(job)
    assert ledger.pending_command(job) is ledger.Command.STOP
    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert ledger.finish(job, State.CANCELLED)


def test_progress_and_result_land_in_the_row() -> None:
    job = running()
    job.log_tail = "log"
    assert ledger.note(job, Progress(stage="read", percent=40, done=4, total=10, rate=2.0))
    job.refresh_from_db()
    assert (job.stage, job.percent, job.done, job.total) == ("read", 40, 4, 10)
    assert ledger.finish(
        job, State.SUCCEEDED, done=Done(done=10, outputs={"records": 25}, note="fine")
    )
    assert (job.percent, job.done, job.rate, job.log_tail) == (100, 10, None, "log")
    assert job.outputs == {"records": 25, "note": "fine"}
    assert job.duration_ms is not None


def test_a_lost_worker_frees_the_place_and_cannot_come_back() -> None:
    job = running()
    now = timezone.now()
    assert ledger.reap(now) == 0
    assert ledger.reap(now + ledger.LOST_AFTER + timedelta(seconds=1)) == 1
    job.refresh_from_db()
    assert (job.state, job.error) == (State.FAILED, ledger.WORKER_LOST)
    assert ledger.pending_command(job) is ledger.Command.STOP
    assert not ledger.note(job, Progress(percent=90))
    assert not ledger.finish(job, State.SUCCEEDED, done=Done())
    job.refresh_from_db()
    assert job.state == State.FAILED
    assert queued().pk


def test_pause_and_resume() -> None:
    job = queued()
    assert not ledger.pause(job)
    assert ledger.claim(job.pk, "w") is not None
    assert not ledger.resume(job)
    assert ledger.pause(job)
    assert not ledger.pause(job)
    assert ledger.pending_command(job) is ledger.Command.PAUSE
    assert ledger.note(job, Progress(done=3))
    with pytest.raises(AlreadyActive):
        queued()
    assert ledger.resume(job)
    assert ledger.pending_command(job) is ledger.Command.CONTINUE


def test_a_paused_job_can_be_cancelled_and_lost() -> None:
    job = running()
    ledger.pause(job)
    assert ledger.cancel(job)
    assert ledger.pending_command(job) is ledger.Command.STOP
    assert not ledger.pause(job)
    assert ledger.finish(job, State.CANCELLED)

    lost = running()
    ledger.pause(lost)
    assert ledger.reap(timezone.now() + ledger.LOST_AFTER + timedelta(seconds=1)) == 1
    assert not ledger.resume(lost)


def test_each_scope_has_a_job_of_its_own() -> None:
    def of(scope: str) -> Job:
        inputs = {"topic": "a"}
        return ledger.enqueue(
            "local", "replay", by=None, origin=Origin.PERSON, scope=scope, inputs=inputs
        )

    first = of("group-a")
    assert of("group-b").inputs == {"topic": "a"}
    with pytest.raises(AlreadyActive) as caught:
        of("group-a")
    assert caught.value.job == first


def test_a_heartbeat_keeps_the_job() -> None:
    job = running()
    Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    ledger.note(job, None)
    assert ledger.reap() == 0


def test_a_job_that_no_worker_takes_gives_up() -> None:
    job = queued()
    assert ledger.reap(timezone.now() + ledger.QUEUED_MAX + timedelta(seconds=1)) == 1
    job.refresh_from_db()
    assert (job.state, job.error) == (State.FAILED, ledger.NO_WORKER)


def test_old_jobs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "JOBS_KEPT", 3)
    for _ in range(6):
        ledger.cancel(queued())
    newest = queued()
    kept = list(Job.objects.values_list("pk", flat=True))
    assert len(kept) == 4
    assert newest.pk in kept


def test_an_error_fits_its_row() -> None:
    job = running()
    ledger.finish(job, State.FAILED, error="bad\x00" + "x" * 10_000)
    assert job.error.startswith("badx")
    assert len(job.error) == ledger.ERROR_CHARS_MAX
