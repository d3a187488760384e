"""Fixtures of the console tests: a real cluster, users of all roles, their test clients."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken
from pytest_django import Settings

from console.gateway import gateway
from console.services.alarms.models import AlarmRule
from console.services.findings import evaluation, stored
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

BACKEND = "django.contrib.auth.backends.ModelBackend"
API = "/api/v1/clusters/local"


@pytest.fixture(autouse=True)
def _gateway_closes() -> Iterator[None]:
    """Clear the gateway's cache and the health reports after each test."""
    yield
    gateway.close()
    evaluation._evaluators.clear()
    stored._decoded.clear()


@pytest.fixture(autouse=True)
def _cheap_passwords(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def local(shared_cluster: Cluster, settings: Settings) -> Cluster:
    """The real cluster, configured in the console as `local`."""
    settings.CONSOLE_CLUSTERS = {"local": shared_cluster.namesrv_addr}
    return shared_cluster


@pytest.fixture(scope="session")
def traffic(shared_cluster: Cluster) -> Iterator[Traffic]:
    found = Traffic(shared_cluster.namesrv_addr, shared_cluster.broker_addr)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _empty_cluster(request: pytest.FixtureRequest) -> None:
    """Lists have pages: resources of other tests must not push a test's rows off the first page."""
    if "shared_cluster" in request.fixturenames:
        traffic: Traffic = request.getfixturevalue("traffic")
        traffic.clear()


@pytest.fixture
def staff(db: None) -> User:
    """An administrator."""
    return User.objects.create_superuser("staff", password="staff-password")


@pytest.fixture
def operator(db: None) -> User:
    """An operator: writes allowed, except deletion of topics and groups and broker settings."""
    return User.objects.create_user("operator", password="operator-password", is_staff=True)


@pytest.fixture
def reader(db: None) -> User:
    """A viewer: read-only."""
    return User.objects.create_user("reader", password="reader-password")


def browser(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user, backend=BACKEND)
    return client


@pytest.fixture
def page(staff: User, local: Cluster) -> Client:
    """The test client of an operator."""
    return browser(staff)


class Api:
    """Calls the REST API with a token, like a script."""

    def __init__(self, user: User) -> None:
        _instance, token = AuthToken.objects.create(user)
        self.client = Client(headers={"Authorization": f"Token {token}"})

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        more = {} if body is None else {"data": body, "content_type": "application/json"}
        call = getattr(self.client, method)
        return call(f"{API}{path}", headers=headers, **more)

    def get(self, path: str, status: int = 200) -> Any:
        answer = self("get", path)
        assert answer.status_code == status, answer.content
        return answer.json()


@pytest.fixture
def api(staff: User, local: Cluster) -> Api:
    return Api(staff)


@pytest.fixture
def default_rules(db: None) -> None:
    """The rules of alarms of a new console.

    Rows of migrations are gone after a test with real transactions in the same process.
    """
    if not AlarmRule.objects.exists():
        import_module("console.services.alarms.migrations.0002_default_rules").create(apps, None)
