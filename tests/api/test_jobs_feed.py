"""The live feed of jobs: what workers announce reaches the pages of that cluster."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from console.asgi import application
from console.services.analytics.trace_jobs import INGEST
from console.services.jobs.feed import announce
from console.services.jobs.models import Job
from tests.api.conftest import browser
from tests.support.cluster import Cluster
from tests.support.sockets import Socket

pytestmark = pytest.mark.django_db(transaction=True)

FEED = "/ws/clusters/local/jobs"


@pytest.fixture
def listener(transactional_db: None, local: Cluster) -> User:
    return User.objects.create_user("listener")


async def listening(user: User | None, feed: str = FEED) -> Socket:
    headers = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
    if user is not None:
        cookies = await database_sync_to_async(lambda: browser(user).cookies)()
        headers.append((b"cookie", f"gantry_session={cookies['gantry_session'].value}".encode()))
    return Socket(application, feed, headers)


def job_of(cluster: str, number: int) -> Job:
    now = timezone.now()
    return Job(pk=number, cluster=cluster, kind=INGEST, created_at=now, heartbeat_at=now)


async def test_nobody_listens_without_signing_in(transactional_db: None, local: Cluster) -> None:
    async with await listening(None) as socket:
        assert await socket.closed() == 4401


async def test_only_jobs_of_the_cluster_are_told(listener: User) -> None:
    async with await listening(listener) as socket:
        hearing = asyncio.create_task(socket.hear())
        while not hearing.done():  # the feed may not have joined the group yet
            for job in (job_of("other", 6), job_of("local", 7)):
                await sync_to_async(announce)(job)
            await asyncio.wait([hearing], timeout=0.02)
        heard = hearing.result()
        assert heard is not None
        assert (heard["id"], heard["cluster"], heard["state"]) == (7, "local", "queued")
