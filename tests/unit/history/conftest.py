"""A place for the history of a cluster: a file, and rows of a PostgreSQL."""

from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path

import dj_database_url
import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from console.services.history import postgres
from console.services.history.files import FilePlace
from console.services.history.postgres import PostgresPlace
from console.services.history.store import Place
from tests.support.postgres import PostgreSql, why_not

ALIAS = "history"
TABLES = import_module("console.services.history.migrations.0003_tables_of_postgresql")
_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSql]:
    if reason := why_not():
        pytest.skip(reason)
    with PostgreSql() as server:
        yield server


@pytest.fixture(scope="session")
def with_tables(server: PostgreSql, django_db_blocker: DjangoDbBlocker) -> Iterator[PostgreSql]:
    """A server with the tables of the history, as Django's database ALIAS."""
    connections.databases[ALIAS] = connections.configure_settings(
        {"default": dj_database_url.parse(server.url), ALIAS: dj_database_url.parse(server.url)}
    )[ALIAS]
    with django_db_blocker.unblock():
        with connections[ALIAS].schema_editor() as editor:
            TABLES.create(None, editor)
        yield server
        connections[ALIAS].close()
    del connections.databases[ALIAS]


@pytest.fixture
def in_postgres(
    with_tables: PostgreSql, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresPlace]:
    """The place of a cluster of this test."""
    monkeypatch.setattr(postgres, "DATABASE", ALIAS)
    with django_db_blocker.unblock():
        yield PostgresPlace(f"cluster-{next(_numbers)}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history" / "local.sqlite3"


@pytest.fixture(params=["files", "PostgreSQL"])
def place(request: pytest.FixtureRequest, path: Path) -> Place:
    """A place without any history."""
    if request.param == "files":
        return FilePlace(path)
    found: Place = request.getfixturevalue("in_postgres")
    return found
