"""services/history/removed.py: retention of histories whose cluster the console no longer has."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from console.services.history.files import FilePlace, path_of
from console.services.history.metrics import DAY_MS, HOUR_MS
from console.services.history.postgres import TABLES, PostgresPlace
from console.services.history.removed import keep_removed
from console.services.history.store import Place
from tests.unit.history.stored import DAY_0_MS, recorder

KEEP_DAYS = 3
END_MS = DAY_0_MS + DAY_MS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.GANTRY_HOME = tmp_path
    settings.HISTORY_DAYS = KEEP_DAYS
    settings.HISTORY_IN_DATABASE = False
    return tmp_path


def fill(place: Place) -> None:
    with recorder(place) as record:
        record.fill(DAY_0_MS, END_MS, float, every_ms=HOUR_MS // 2)


def files(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "history").iterdir())


def test_the_file_of_a_removed_cluster_is_deleted_after_its_days(home: Path) -> None:
    fill(FilePlace(path_of(home, "gone")))
    fill(FilePlace(path_of(home, "local")))
    keep_removed(home, {"local"}, END_MS + HOUR_MS)
    keep_removed(home, {"local"}, END_MS + (KEEP_DAYS - 1) * DAY_MS)
    assert {"gone.sqlite3", "local.sqlite3"} <= set(files(home))
    keep_removed(home, {"local"}, END_MS + (KEEP_DAYS + 1) * DAY_MS)
    assert [name for name in files(home) if name.startswith("gone")] == []
    assert "local.sqlite3" in files(home)


def test_a_file_that_cannot_be_opened_does_not_stop_the_others(home: Path) -> None:
    fill(FilePlace(path_of(home, "gone")))
    (home / "history" / "folder.sqlite3").mkdir()
    keep_removed(home, set(), END_MS + (KEEP_DAYS + 1) * DAY_MS)
    assert files(home) == ["folder.sqlite3"]


def test_the_rows_of_a_removed_cluster_are_deleted_after_their_days(
    home: Path, in_postgres: PostgresPlace, settings: Settings
) -> None:
    settings.HISTORY_IN_DATABASE = True
    other = PostgresPlace("local")
    fill(in_postgres)
    fill(other)

    def rows(place: PostgresPlace) -> int:
        store = place.writer()
        read: Callable[[str], int] = lambda table: store._read(  # noqa: E731 - a short query
            f"SELECT count(*) FROM {{t}}{table} WHERE {{own}}", ()
        )[0][0]
        return sum(read(table) for table in TABLES)

    before = rows(other)
    keep_removed(home, {"local"}, END_MS + (KEEP_DAYS - 1) * DAY_MS)
    assert rows(in_postgres) > 0
    keep_removed(home, {"local"}, END_MS + (KEEP_DAYS + 1) * DAY_MS)
    assert (rows(in_postgres), rows(other)) == (0, before)
