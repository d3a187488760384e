"""Analytics through the page and the resources: no lake, a good one, a broken one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.jobs import spark
from console.jobs.places import lake_of
from console.jobs.spark import Availability
from tests.unit.analytics.lakes import BEGIN_MS, latency, make_lake, minute, slow
from trace.lake import HOUR_MS, Snapshot, part_path

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client
    from pytest_django import Settings

    from tests.api.conftest import Api
    from trace.lake import Lake

PATH = "/clusters/local/analytics/"
RANGE = f"begin_ms={BEGIN_MS}&end_ms={BEGIN_MS + HOUR_MS}"


@pytest.fixture(autouse=True)
def _home(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.GANTRY_HOME = tmp_path
    monkeypatch.setattr(spark, "availability", lambda: Availability(usable=True, java="Java 17"))


@pytest.fixture
def lake() -> Lake:
    return make_lake(
        lake_of("local"),
        minute=[
            minute(0, "orders", sends=100, send_failures=10, bytes=9000),
            minute(0, "orders", "billing", attempts=50, successes=30, failures=10, retries=5),
            minute(1, "<script>", sends=3),
        ],
        latency=[latency(0, "orders", "billing", 40, 45)],
        slow=[slow(1, "AC11000100", 5000)],
    )


def test_before_the_first_job(api: Api, page: Client) -> None:
    shown = page.get(PATH)
    assert shown.status_code == 200
    assert b"No traces have been read yet" in shown.content
    assert b"start-ingest" in shown.content
    for resource in ("", "/series", "/topics", "/groups", "/slow"):
        answer = api.get(f"/analytics{resource}")
        assert answer["committed_ms"] is None
    assert len(api.get("/analytics/series")["items"]) == 60
    assert api.get("/analytics/topics")["items"] == []


def test_page_and_resources_tell_the_same(api: Api, page: Client, lake: Lake) -> None:
    total = api.get(f"/analytics?{RANGE}")["total"]
    assert (total["sends"], total["attempts"], total["retries"]) == (103, 50, 5)
    assert total["consume_success"] == 0.75
    assert total["latency"]["p99"] == pytest.approx(40, rel=0.011)

    shown = page.get(f"{PATH}?{RANGE}").content.decode()
    assert '<b id="total-sends">103</b>' in shown
    assert '<b id="total-attempts">50</b>' in shown
    assert "75.00 %" in shown
    assert "AC11000100" in shown
    assert "/clusters/local/traces/AC11000100" in shown
    assert f"/api/v1/clusters/local/analytics/series?{RANGE.replace('&', '&amp;')}" in shown


def test_points_tables_and_slow_messages(api: Api, lake: Lake) -> None:
    series = api.get(f"/analytics/series?{RANGE}")
    assert (series["step_ms"], series["committed_ms"]) == (60_000, BEGIN_MS)
    assert [point["at_ms"] for point in series["items"]][:2] == [BEGIN_MS, BEGIN_MS + 60_000]
    assert [point["sends"] for point in series["items"]][:3] == [100, 3, 0]
    assert series["items"][2]["latency"]["p50"] is None
    topics = {row["name"]: row for row in api.get(f"/analytics/topics?{RANGE}")["items"]}
    assert topics["orders"]["send_success"] == 0.9
    [group] = api.get(f"/analytics/groups?{RANGE}")["items"]
    assert (group["name"], group["failures"]) == ("billing", 10)
    [one] = api.get(f"/analytics/slow?{RANGE}")["items"]
    assert (one["msg_id"], one["latency_ms"]) == ("AC11000100", 5000)


def test_one_topic_one_group(api: Api, page: Client, lake: Lake) -> None:
    assert api.get(f"/analytics?{RANGE}&topic=orders")["total"]["sends"] == 100
    assert api.get(f"/analytics?{RANGE}&group=billing")["total"]["attempts"] == 50
    shown = page.get(f"{PATH}?{RANGE}&topic=orders").content.decode()
    assert "Topic orders" in shown
    assert page.get(f"{PATH}?{RANGE}&topic=nothing%27%20OR%201=1").status_code == 200
    assert b"Nothing in this range" in page.get(f"{PATH}?{RANGE}&topic=nothing").content


def test_names_from_clients_are_text(page: Client, lake: Lake) -> None:
    shown = page.get(f"{PATH}?{RANGE}").content.decode()
    assert "<script>" not in shown.replace('<script src="', "")
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    "query",
    ["range=forever", "begin_ms=x", "begin_ms=5&end_ms=5", "end_ms=1", f"begin_ms={'9' * 30}"],
)
def test_a_wrong_range(query: str, api: Api, page: Client, lake: Lake) -> None:
    answer = api("get", f"/analytics?{query}")
    assert answer.status_code == 400
    assert "range" in answer.json()["errors"]
    assert page.get(f"{PATH}?{query}").status_code == 400


def test_a_broken_table_of_contents(api: Api, page: Client, lake: Lake) -> None:
    (lake.root / "snapshot.json").write_bytes(b"{")
    answer = api("get", "/analytics")
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:gantry:problem:lake-unreadable"
    shown = page.get(PATH)
    assert shown.status_code == 500
    assert b"The trace lake cannot be read" in shown.content


def test_a_broken_file_is_named_and_the_rest_is_shown(api: Api, page: Client, lake: Lake) -> None:
    folder = lake.dataset("minute") / part_path(BEGIN_MS // HOUR_MS, 1)
    (folder / "part-9.parquet").write_bytes(b"half a file")
    answer = api.get(f"/analytics?{RANGE}")
    assert answer["total"]["sends"] == 103
    assert answer["broken_files"][0].endswith("part-9.parquet")
    shown = page.get(f"{PATH}?{RANGE}").content.decode()
    assert "part-9.parquet" in shown
    assert '<b id="total-sends">103</b>' in shown


def test_a_lake_that_was_committed_empty(api: Api, page: Client) -> None:
    from trace.lake import Lake

    Lake(lake_of("local")).commit(Snapshot(topic="T", run=1, committed_ms=BEGIN_MS))
    shown = page.get(PATH)
    assert (shown.status_code, b"Nothing in this range" in shown.content) == (200, True)
    totals: dict[str, Any] = api.get("/analytics")["total"]
    assert (totals["sends"], totals["send_success"]) == (0, None)
