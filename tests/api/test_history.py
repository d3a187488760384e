"""The history: one sampler of several, samples of a real cluster, and its REST resource."""

import logging
import math
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from pytest_django import Settings

from console.gateway import gateway, now_ms
from console.services.history.files import path_of
from console.services.history.metrics import BY_NAME, INTERVAL_MS
from console.services.history.sampler import LEASE, Sampler
from console.services.leases import lease
from console.services.leases.models import Lease
from tests.api.conftest import Api, browser
from tests.api.outages import Own
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from tests.unit.history.stored import recorder

pytestmark = pytest.mark.must_beat(11)
NOW_MS = 1_762_300_812_345
QUERY = "/history?metric="


@pytest.fixture
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.GANTRY_HOME = tmp_path
    return tmp_path


def sampled(at_ms: int) -> Sampler:
    sampler = Sampler()
    assert sampler.sample(at_ms)
    sampler.wait()
    return sampler


def tick() -> int:
    return now_ms() // INTERVAL_MS * INTERVAL_MS


def known(body: dict[str, Any], column: str = "avg") -> list[float]:
    """The values of the points that are no gaps."""
    return [value for value in body[column] if value is not None]


@pytest.mark.usefixtures("db")
def test_one_of_several_processes_holds_the_lease() -> None:
    assert LEASE.hold("a", NOW_MS)
    assert not LEASE.hold("b", NOW_MS)
    assert LEASE.hold("a", NOW_MS + LEASE.duration_ms)
    assert not LEASE.hold("b", NOW_MS + 2 * LEASE.duration_ms)
    assert LEASE.hold("b", NOW_MS + 2 * LEASE.duration_ms + 1), "the holder died"
    assert not LEASE.hold("a", NOW_MS + 2 * LEASE.duration_ms + 2)
    LEASE.release("a")
    assert not LEASE.hold("a", NOW_MS + 2 * LEASE.duration_ms + 3), "the lease of another remains"
    LEASE.release("b")
    assert LEASE.hold("a", NOW_MS + 2 * LEASE.duration_ms + 4)
    assert Lease.objects.count() == 1


@pytest.mark.usefixtures("db")
def test_a_lease_of_a_clock_that_ran_ahead_does_not_count() -> None:
    assert LEASE.hold("a", NOW_MS + 24 * 3_600_000)
    assert LEASE.hold("b", NOW_MS)


@pytest.mark.django_db(transaction=True)
def test_of_processes_that_ask_at_once_one_gets_the_lease() -> None:
    from django.db import OperationalError, connection

    holders: list[str] = []

    def ask(name: str) -> None:
        try:
            # SQLite refuses a table that another thread writes in memory; in a file it waits.
            while True:
                with suppress(OperationalError):
                    if LEASE.hold(name, NOW_MS):
                        holders.append(name)
                    return
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(f"worker-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(holders) == 1


@pytest.mark.django_db(transaction=True)
def test_samples_of_a_real_cluster_without_a_page(
    api: Api, home: Path, traffic: Traffic, local: Cluster
) -> None:
    topic, group = traffic.topic("sampled"), traffic.group("sampling")
    traffic.send(topic, 5)
    traffic.commit(group, topic, 0, 0)
    first_ms = tick() - 2 * INTERVAL_MS
    sampler = sampled(first_ms)
    assert not Sampler().sample(first_ms), "another process holds the lease"
    traffic.send(topic, 3)

    def lag() -> list[float]:
        gateway.close()  # drop the cached answers
        assert sampler.sample(tick())
        sampler.wait()
        return known(api.get(f"{QUERY}lag&group={group}&range=15m"), "max")

    poll(lambda: len(lag()) >= 2)
    body = api.get(f"{QUERY}lag&group={group}&range=15m")
    assert body["first_sample_ms"] == first_ms
    assert (body["interval_ms"], body["step_ms"], body["unit"]) == (10_000, 10_000, "messages")
    assert body["count"] == len(body["avg"]) == len(body["max"])
    assert (body["min"], body["last"]) == (None, None), "not kept of this metric"
    assert None in body["avg"], "times before the first sample are gaps"
    assert known(api.get(f"{QUERY}produce_rate&topic={topic}&range=15m"))
    broker = api.get("/brokers")["items"][0]["name"]
    assert known(api.get(f"{QUERY}disk_ratio&broker={broker}&range=15m"), "last")
    assert known(api.get(f"{QUERY}connections&broker={broker}&broker_id=0&range=15m"))
    assert known(api.get(f"{QUERY}lag&range=15m"))
    assert not known(api.get(f"{QUERY}disk_ratio&broker={broker}&broker_id=3&range=15m"), "last")


@pytest.mark.django_db(transaction=True)
def test_a_cluster_that_is_down_has_a_gap(
    cluster: Cluster, settings: Settings, home: Path, staff: User
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    own = Own(cluster.namesrv_addr, cluster.broker_addr, cluster.kill_broker, staff)
    at_ms = tick()
    sampler = sampled(at_ms - 3 * INTERVAL_MS)
    own.kill_and_notice()
    assert sampler.sample(at_ms - 2 * INTERVAL_MS)
    sampler.wait()
    for metric, column in (("produce_rate", "avg"), ("disk_ratio", "last")):
        body = own.api.get(f"{QUERY}{metric}&range=15m")
        assert len(known(body, column)) == 1, "the sample before the outage, and no last values"
    topic = own.api.get(f"{QUERY}produce_rate&topic={own.topic}&range=15m")
    assert topic["first_sample_ms"] == at_ms - 3 * INTERVAL_MS
    assert len(known(topic)) <= 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "metric"),
        ("?metric=", "metric"),
        ("?metric=lag_s", "metric"),
        ("?metric=connections&topic=orders", "metric"),
        ("?metric=lag%00&group=g", "metric"),
        ("?metric=lag&topic=a&group=b", "group"),
        ("?metric=lag&group=", "group"),
        ("?metric=lag&group=" + "g" * 256, "group"),
        ("?metric=lag&group=%00", "group"),
        ("?metric=lag&group=a%0Ab", "group"),
        ("?metric=lag&broker_id=1", "broker_id"),
        ("?metric=disk_ratio&broker=a&broker_id=-1", "broker_id"),
        ("?metric=disk_ratio&broker=a&broker_id=99999999999999", "broker_id"),
        ("?metric=disk_ratio&broker=a&broker_id=x", "broker_id"),
        ("?metric=lag&range=1y", "range"),
        ("?metric=lag&begin_ms=5", "range"),
        ("?metric=lag&begin_ms=9&end_ms=5", "range"),
        ("?metric=lag&begin_ms=99999999999999999999", "range"),
        ("?metric=lag&step_ms=0", "range"),
        ("?metric=lag&step_ms=1", "range"),
        ("?metric=lag&range=30d&step_ms=60000", "range"),
        ("?metric=lag&step=60", "step"),
        ("?metric=lag&metric=lag", "metric"),
        ("?metric=lag&begin=2026-01-01", "begin"),
    ],
)
def test_hostile_parameters_are_refused_with_their_name(
    api: Api, home: Path, query: str, field: str
) -> None:
    answer = api("get", f"/history{query}")
    assert answer.status_code == 400, answer.content
    assert field in answer.json()["errors"]


@pytest.mark.django_db
def test_a_cluster_without_history_answers_gaps(api: Api, home: Path) -> None:
    body = api.get(f"{QUERY}produce_rate")
    assert (body["first_sample_ms"], known(body)) == (None, [])
    assert len(body["avg"]) == body["count"] > 0
    assert api("get", "/history?metric=lag", None).status_code == 200
    assert not path_of(home, "local").exists(), "reading creates no file"


@pytest.mark.django_db
def test_a_name_with_signs_and_the_name_of_a_slave_do_not_mix(api: Api, home: Path) -> None:
    path = path_of(home, "local")
    with recorder(path) as record:
        record.put(tick() - INTERVAL_MS, "broker", "disk_ratio", {"a": 0.5, "a#1": 0.25})
        master = api.get(f"{QUERY}disk_ratio&broker=a&range=15m")
        slave = api.get(f"{QUERY}disk_ratio&broker=a&broker_id=1&range=15m")
    assert (known(master, "last"), known(slave, "last")) == ([0.5], [0.25])


@pytest.mark.django_db
def test_an_outage_of_the_database_is_logged_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Any] = [OperationalError("gone"), OperationalError("gone"), False]

    def hold(*_: Any) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    monkeypatch.setattr(lease.Lease, "hold", hold)
    sampler = Sampler()
    with caplog.at_level(logging.INFO):
        for number in range(3):
            assert not sampler.sample(NOW_MS + number * INTERVAL_MS)
    texts = [each.getMessage() for each in caplog.records]
    assert [text.partition(":")[0] for text in texts] == [
        "no samples of the history until the database answers",
        "the database answers again",
    ]


@pytest.mark.django_db
def test_a_history_that_cannot_be_read_is_a_problem_and_not_empty(api: Api, home: Path) -> None:
    path = path_of(home, "local")
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1_000)
    answer = api("get", f"{QUERY}lag")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
def test_viewers_may_read_the_history_and_strangers_may_not(
    reader: User, local: Cluster, home: Path
) -> None:
    url = "/api/v1/clusters/local/history?metric=lag"
    assert browser(reader).get(url).status_code == 200
    assert browser(None).get(url).status_code == 401
    assert browser(reader).post(url).status_code in (403, 405)
    assert browser(reader).get(url.replace("local", "other")).status_code == 404


def test_gaps_in_json_are_null() -> None:
    import numpy as np

    from console.services.history.api import _json

    assert _json(np.array([1.0, math.nan])) == [1.0, None]


@pytest.mark.django_db
def test_pages_have_charts_with_the_range_of_their_address(
    api: Api, staff: User, home: Path, traffic: Traffic
) -> None:
    topic, group = traffic.topic("charted"), traffic.group("charting")
    page = browser(staff)
    base = "/clusters/local"
    broker = api.get("/brokers")["items"][0]["name"]
    for path, query in {
        "/": "metric=lag&amp;range=6h",
        f"/topics/{topic}/": f"metric=lag&amp;topic={topic}&amp;range=6h",
        f"/groups/{group}/": f"metric=lag_s&amp;group={group}&amp;range=6h",
        f"/brokers/{broker}/": f"metric=connections&amp;broker={broker}&amp;range=6h",
        "/dlq/": "metric=dead_letters&amp;range=6h",
        f"/dlq/{group}/": f"metric=dead_letters&amp;group={group}&amp;range=6h",
    }.items():
        html = page.get(f"{base}{path}?range=6h").content.decode()
        assert query in html, path
        assert "No samples yet" in html, path
        assert page.get(f"{base}{path}?range=x&history_begin=%00").status_code == 200, path


@pytest.mark.django_db
def test_a_page_says_since_when_there_are_samples_and_that_sampling_has_stopped(
    staff: User, local: Cluster, home: Path
) -> None:
    page = browser(staff)
    with recorder(path_of(home, "local")) as record:
        record.put(tick() - 600_000, "cluster", "produce_rate", {"": 3.0})
        silent = page.get("/clusters/local/").content.decode()
        record.put(tick(), "cluster", "produce_rate", {"": 3.0})
        alive = page.get("/clusters/local/").content.decode()
    assert "Samples since" in silent
    assert "No new samples since" in silent
    assert "No new samples since" not in alive


@pytest.mark.django_db
def test_names_measured_in_turn_have_steps_of_their_interval(api: Api, home: Path) -> None:
    number = BY_NAME["topic", "produce_rate"].number
    with recorder(path_of(home, "local")) as record:
        record.writer.append(tick(), {number: {"orders": 1.0}}, {"topic": 50_000})
        body = api.get(f"{QUERY}produce_rate&topic=orders&range=15m")
    assert (body["interval_ms"], body["step_ms"]) == (50_000, 60_000)
    assert known(body) == [1.0]
