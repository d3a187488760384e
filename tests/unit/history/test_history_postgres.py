"""The history in PostgreSQL: outages, a full disk, two samplers, and readers beside a writer."""

import math
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from django.db import Error, connections
from pytest_django import DjangoDbBlocker

from console.services.history.metrics import BY_NAME, HOUR_MS, INTERVAL_MS, MINUTE_MS
from console.services.history.postgres import PostgresPlace, PostgresStore
from console.services.history.reading import read_points
from console.services.history.store import STORE_ERRORS
from console.services.history.upkeep import SETTLED_AFTER_MS
from tests.support.postgres import PostgreSql
from tests.unit.history.conftest import ALIAS
from tests.unit.history.stored import DAY_0_MS, recorder

RATE = BY_NAME["topic", "produce_rate"]


def rates(place: PostgresPlace, count: int) -> list[float]:
    points = read_points(place, RATE, "orders", DAY_0_MS, INTERVAL_MS, count)
    return list(points.values["avg"].tolist())


@pytest.fixture
def full_disk(in_postgres: PostgresPlace) -> Iterator[None]:
    """Inserts of frames fail as on a full disk."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'could not extend file: No space left on device'"
            " USING ERRCODE = 'disk_full'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER no_space BEFORE INSERT ON history_frame"
            " FOR EACH ROW EXECUTE FUNCTION no_space()"
        )
    yield
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS no_space CASCADE")


def test_a_full_disk_stores_nothing_and_the_next_sample_everything(
    in_postgres: PostgresPlace, full_disk: None
) -> None:
    with recorder(in_postgres) as record:
        with pytest.raises(Error, match="No space left on device"):
            record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        assert record.count("name") == 0
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("DROP FUNCTION no_space CASCADE")
        record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
    np.testing.assert_array_equal(rates(in_postgres, 2), [math.nan, 2.0])


def test_a_lost_connection_is_a_gap_and_the_next_sample_is_stored_once(
    in_postgres: PostgresPlace, with_tables: PostgreSql
) -> None:
    with recorder(in_postgres) as record:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        with_tables.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        with pytest.raises(STORE_ERRORS):
            record.put(DAY_0_MS + INTERVAL_MS, "topic", "produce_rate", {"orders": 2.0})
        connections[ALIAS].close()  # as the sampler does after each sample
        for _attempt in range(2):
            record.put(DAY_0_MS + 2 * INTERVAL_MS, "topic", "produce_rate", {"orders": 3.0})
        assert record.count("frame") == 2
    np.testing.assert_array_equal(rates(in_postgres, 3), [1.0, math.nan, 3.0])


def test_two_samplers_give_each_name_one_slot(
    in_postgres: PostgresPlace, django_db_blocker: DjangoDbBlocker
) -> None:
    """As after a lease that ended while its holder was suspended."""
    failures: list[BaseException] = []
    begin = threading.Barrier(2)

    def sample(number: int) -> None:
        try:
            with recorder(in_postgres) as record:
                begin.wait(30)
                for step in range(20):
                    own = {f"{number}-{step}": 1.0, f"both-{step}": 2.0, "orders": 3.0}
                    at_ms = DAY_0_MS + step * INTERVAL_MS
                    record.put(at_ms, "topic", "produce_rate", own)
        except BaseException as failure:  # noqa: BLE001 - told to the test
            failures.append(failure)
        finally:
            connections[ALIAS].close()

    threads = [threading.Thread(target=sample, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not failures
    with recorder(in_postgres) as record:
        assert record.count("frame") == 20, "a second sample of a time is dropped"
        names = record.read("SELECT slot, name FROM {t}name WHERE {own}")
    assert len(names) == len({slot for slot, _name in names}) == 61
    assert rates(in_postgres, 20) == [3.0] * 20


def test_a_clock_that_went_back_overwrites_nothing(in_postgres: PostgresPlace) -> None:
    with recorder(in_postgres) as record:
        record.put(DAY_0_MS + HOUR_MS, "topic", "produce_rate", {"orders": 5.0})
        record.keep(DAY_0_MS + 2 * HOUR_MS + SETTLED_AFTER_MS)
        record.put(DAY_0_MS + HOUR_MS, "topic", "produce_rate", {"orders": 7.0})
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 4.0})
        record.keep(DAY_0_MS + SETTLED_AFTER_MS)
        record.keep(DAY_0_MS + 3 * HOUR_MS)
        assert (record.count("frame"), record.count("hour")) == (0, 2)
        points = read_points(in_postgres, RATE, "orders", DAY_0_MS, HOUR_MS, 2)
    assert points.values["max"].tolist() == [pytest.approx(math.nan, nan_ok=True), 7.0]


def test_a_reader_sees_one_state_while_frames_become_hours(in_postgres: PostgresPlace) -> None:
    with recorder(in_postgres) as record:
        record.fill(DAY_0_MS, DAY_0_MS + 10 * MINUTE_MS, lambda _at: 5.0, every_ms=MINUTE_MS)

        def moved() -> None:
            with recorder(in_postgres) as other:
                other.keep(DAY_0_MS + HOUR_MS + SETTLED_AFTER_MS)
            connections[ALIAS].close()

        with in_postgres.reader() as store:
            before = store.rows("hour", RATE, DAY_0_MS, DAY_0_MS + HOUR_MS)
            mover = threading.Thread(target=moved)
            mover.start()
            mover.join(60)
            after = store.frames(RATE, DAY_0_MS, DAY_0_MS + HOUR_MS)
        assert (len(before), len(after)) == (0, 10)
        assert record.count("frame") == 0


def test_a_cluster_sees_its_own_rows_only(in_postgres: PostgresPlace) -> None:
    other = PostgresPlace(f"{in_postgres.cluster}-other")
    with recorder(in_postgres) as record, recorder(other) as second:
        record.put(DAY_0_MS, "topic", "produce_rate", {"orders": 1.0})
        second.put(DAY_0_MS, "topic", "produce_rate", {"orders": 2.0})
        second.change("DELETE FROM {t}frame WHERE {own}")
    assert rates(in_postgres, 1) == [1.0]
    with pytest.raises(ValueError, match="no name of a cluster"):
        PostgresStore("a' OR TRUE --")
