"""The picture of the jobs: those of a time range, whatever the page of the table shows."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from console.services.jobs import drawn
from console.services.jobs.models import Job
from console.services.jobs.states import State
from console.services.jobs.views import PAGE_JOBS

PAGE = "/clusters/local/jobs/"
HOUR = timedelta(hours=1)


def make(age: timedelta, state: State = State.SUCCEEDED, kind: str = "ingest") -> int:
    """Store a job that began some time ago, and took a second unless it is active."""
    now = timezone.now()
    at = now - age
    ended = None if state == State.RUNNING else at + timedelta(seconds=1)
    job = Job.objects.create(
        cluster="local", kind=kind, state=state, created_at=at, started_at=at, finished_at=ended,
        heartbeat_at=now,
    )  # fmt: skip
    return job.pk


def bars(client: Client, **query: str) -> list[int]:
    text = client.get(PAGE, query).content.decode()
    return sorted(int(each) for each in re.findall(r'data-job="(\d+)"', text))


def rows(client: Client, **query: str) -> list[int]:
    text = client.get(PAGE, query).content.decode()
    return sorted(int(each) for each in re.findall(r'jobs/(\d+)/">[^<]*#', text))


def test_every_page_of_the_table_has_the_picture_of_the_range(page: Client) -> None:
    numbers = [make(HOUR * (index + 1) / 60) for index in range(PAGE_JOBS + 5)]
    for number in ("1", "2"):
        assert bars(page, page=number) == numbers
    assert len(rows(page, page="1")) == PAGE_JOBS
    assert rows(page, page="2") == numbers[-5:]
    assert bars(page, kind="export") == []


def test_a_range_has_the_jobs_that_were_active_in_it(page: Client) -> None:
    new, day_old, week_old = make(HOUR / 2), make(HOUR * 20), make(HOUR * 100)
    old, long = make(HOUR * 1_000), make(HOUR * 900, State.RUNNING, kind="export")
    for name, found in {
        "1h": [new, long],
        "6h": [new, long],
        "24h": [new, day_old, long],
        "7d": [new, day_old, week_old, long],
        "all": [new, day_old, week_old, old, long],
        "": [new, day_old, long],
        "a century": [new, day_old, long],
    }.items():
        assert bars(page, range=name) == sorted(found), name
        assert len(rows(page, range=name)) == 5
    text = page.get(PAGE, {"range": "7d"}).content.decode()
    assert '<option value="7d" selected>' in text
    assert "range=7d" in re.findall(r'hx-get="([^"]*page=[^"]*)"', text)[0]
    Job.objects.exclude(pk=old).delete()
    text = page.get(PAGE).content.decode()
    assert "No job was active in this time range." in text
    assert rows(page) == [old]


def test_the_picture_is_bounded_and_says_so(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "JOBS_DRAWN_MAX", 4)
    numbers = [make(HOUR * (index + 1) / 60) for index in range(6)]
    assert bars(page) == numbers[:4], "the newest"
    assert "2 older jobs of this time range are not drawn." in page.get(PAGE).content.decode()
    assert bars(page, state="failed") == []
    Job.objects.filter(pk__in=numbers[4:]).delete()
    assert "not drawn" not in page.get(PAGE).content.decode()
