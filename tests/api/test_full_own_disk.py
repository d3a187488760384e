"""A full disk of the console's database: pages, requests that cannot be saved, the finding."""

import errno
from collections.abc import Iterator

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from knox.models import AuthToken

from console.accounts.models import CustomRole, TokenFacts
from console.frame.access import Role
from console.frame.own_disks import refusals
from tests.api.conftest import API, Api, browser

BODY = {"name": "payments", "permissions": ["topics:read"]}


@pytest.fixture(autouse=True)
def _no_refusals() -> Iterator[None]:
    yield
    refusals.clear()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles cannot be saved: a table of PostgreSQL cannot grow."""

    def refuse(*args: object, **kwargs: object) -> None:
        cause = psycopg.errors.DiskFull("could not extend file: No space left on device")
        raise OperationalError(str(cause)) from cause

    monkeypatch.setattr(CustomRole, "save", refuse)


def test_a_request_that_cannot_be_saved_names_the_full_disk(api: Api, full: None) -> None:
    api.client.raise_request_exception = False
    answer = api.client.post("/api/v1/roles", data=BODY, content_type="application/json")
    assert answer.status_code == 507, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:gantry:problem:disk-full"
    keys = {each["key"] for each in api.get("/findings?kind=console")["items"]}
    assert keys == {"console-disk-full/console/writes"}


def test_reads_by_token_go_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and address of a token's last use are not saved."""
    TokenFacts.objects.create(token=AuthToken.objects.get(), name="script", role=Role.VIEWER)

    def refuse(*args: object, **kwargs: object) -> None:
        raise OperationalError from psycopg.errors.DiskFull("could not extend file")

    monkeypatch.setattr("django.db.models.query.QuerySet.update", refuse)
    assert api.client.get("/api/v1/clusters").status_code == 200
    refusals.clear()
    assert TokenFacts.objects.get().last_used_at is None


def test_viewed_pages_are_not_remembered_on_a_full_disk(api: Api, staff: User) -> None:
    """The session is not saved, so the page goes on."""
    page = browser(staff)
    path = "/clusters/local/topics/TBW102/"
    refusals.note(OSError(errno.ENOSPC, "No space left on device"))
    assert page.get(path).status_code == 200
    assert "recent" not in page.session
    refusals.clear()
    assert page.get(path).status_code == 200
    assert "recent" in page.session


def test_pages_have_a_red_line_until_the_disk_has_space(api: Api, staff: User) -> None:
    page = browser(staff)
    path = API.replace("/api/v1", "") + "/"
    assert b'data-own-disk="full"' not in page.get(path).content
    refusals.note(OSError(errno.ENOSPC, "No space left on device"))
    assert b'data-own-disk="full"' in page.get(path).content
    assert b'data-own-disk="full"' not in Client().get("/accounts/login/").content
    refusals.clear()
    assert b'data-own-disk="full"' not in page.get(path).content


def test_the_page_of_a_full_disk_needs_no_database(
    staff: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither session nor user can be read, as on a full disk without the log's index."""
    page = browser(staff)
    page.raise_request_exception = False

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", refuse)
    answer = page.get("/audit/", headers={"Accept-Language": "zh-hans"})
    assert answer.status_code == 507
    assert "磁盘已满" in answer.content.decode()
