"""No response contains a secret: every GET as administrator is searched for planted secrets."""

from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from pytest_django import Settings

from console.accounts.changes import issue_token, reset_password
from console.audit.recording import audited_as
from console.frame.access import Role
from tests.api.conftest import Api, browser
from tests.support.cluster import Cluster
from tests.support.routes import Route, routes

REDIS_PASSWORD = "redis-password-4711"
AUDITED = "value-of-a-secret-4711"


@pytest.fixture
def secrets(staff: User, operator: User, settings: Settings) -> list[str]:
    """Secrets that must not appear after the first display or after configuration."""
    settings.REDIS_URL = f"redis://:{REDIS_PASSWORD}@127.0.0.1:1/0"
    password = reset_password(staff, operator)
    operator.refresh_from_db()
    facts, token = issue_token(staff, "t", Role.VIEWER, 1)
    before = {"secretKey": AUDITED, "nested": {"password": AUDITED}}
    with audited_as(staff, "broker.configure", target="b", before=before) as entry:
        entry.after = before
    hashes = [operator.password, staff.password, facts.token.digest]
    kept = [REDIS_PASSWORD, AUDITED, django_settings.SECRET_KEY]
    return [password, token, *hashes, *kept]


@pytest.mark.must_beat(17)
def test_no_get_answers_with_a_secret(
    staff: User, operator: User, secrets: list[str], local: Cluster
) -> None:
    api, pages = Api(staff).client, browser(staff)
    leaks = []
    for route in routes():
        if "get" not in route.methods:
            continue
        for path in paths(route, operator):
            answer = (api if route.is_api or route.is_classic else pages).get(path)
            text = content(answer)
            leaks += [f"{path} shows {secret[:4]}…" for secret in secrets if secret in text]
    assert not leaks


def paths(route: Route, person: User) -> list[str]:
    own = {"number": str(person.pk)}
    found = [route.path()]
    if route.name == "accounts:user":
        found.append(route.pattern.replace("<int:number>", own["number"]))
    return found


def content(answer: Any) -> str:
    if getattr(answer, "is_async", False):  # an endless tail of messages
        answer.close()
        return ""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return bytes(body).decode("utf-8", "replace")


def test_a_session_is_not_shown_by_its_key(staff: User, operator: User) -> None:
    theirs = browser(operator)
    page = browser(staff).get(f"/accounts/users/{operator.pk}/").content.decode()
    assert 'name="end"' in page, "the session is listed"
    assert str(theirs.session.session_key) not in page
