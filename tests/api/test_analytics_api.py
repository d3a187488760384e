"""Analytics by page and resources: without a lake, with a valid lake, with a broken lake."""

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.test import Client
from pytest_django import Settings

from console.gateway import now_ms
from console.services.jobs import spark
from console.services.jobs.paths import lake_of
from console.services.jobs.spark import Availability
from core_broker.client.subscription import build_subscription
from core_broker.message.model import Message
from core_broker.remoting.bodies import EXPRESSION_SQL92, ConsumerData, HeartbeatData
from spark_jobs.jobs.subscriptions import with_subscriptions
from spark_jobs.sources.connection import Connection
from spark_jobs.spark.lake_writer import exclusive_writer
from tests.api.conftest import Api
from tests.api.stored import routed_topic, store
from tests.api.traffic import Traffic
from tests.unit.analytics.lakes import (
    BEGIN_MS,
    edge,
    latency,
    make_lake,
    minute,
    never,
    slow,
    subscription,
    untraced,
)
from trace.lake import HOUR_MS, Lake, Snapshot, part_path

PATH = "/clusters/local/analytics/"
RESOURCES = [
    *("", "/series", "/topics", "/groups", "/kinds", "/latency", "/heatmap", "/funnel"),
    *("/edges", "/slow"),
]
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
        slow=[slow(1, "AC11000100", 5000), never(2, "AC11000200")],
        edges=[
            edge("shop", "orders", None, 90, failures=10),
            edge("shop", "orders", "<b>billing", 60, untraced=3),
            edge("=crm", "mail", None, 7),
        ],
        untraced=[
            untraced(2, "orders", "<b>billing", 1),
            untraced(2, "orders", "<b>billing", 2, "tried"),
            untraced(2, "orders", "billing", 4),
        ],
        subscriptions=[subscription("orders", "<b>billing", "tried")],
    )


KNOWN = [("orders", "billing", 100), ("orders", "mailer", 1000), ("mail", "mailer", 10)]


def test_before_the_first_job(api: Api, page: Client) -> None:
    shown = page.get(PATH)
    assert shown.status_code == 200
    assert b"No trace data yet" in shown.content
    assert b"start-ingest" in shown.content
    for resource in RESOURCES:
        answer = api.get(f"/analytics{resource}")
        assert answer["committed_ms"] is None
    for name in ("graph", "slow"):
        assert b"No trace data yet" in page.get(f"{PATH}{name}/").content
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
    assert [point["sends"] for point in series["items"]][:3] == [100, 3, None]
    gap = series["items"][2]
    assert {value for name, value in gap.items() if not isinstance(value, dict)} == {
        gap["at_ms"],
        None,
    }
    assert gap["latency"]["p50"] is None
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
    assert b"No data in this range" in page.get(f"{PATH}?{RANGE}&topic=nothing").content


@pytest.mark.must_beat(15)
def test_latency_matches_a_known_data_set(api: Api, page: Client) -> None:
    waited = [(topic, group, ms) for topic, group, low in KNOWN for ms in range(low, low + 100)]
    make_lake(
        lake_of("local"),
        minute=[
            minute(0, topic, group, attempts=100, successes=75, failures=25)
            for topic, group, _low in KNOWN
        ],
        latency=[latency(ms % 60, topic, group, ms, 1) for topic, group, ms in waited],
        slow=[slow(1, "AC11000100", 1099)],
    )
    answer = api.get(f"/analytics/latency?{RANGE}&topic=orders")
    assert (answer["by"], answer["measure"]) == ("group", "latency")
    found = {item["name"]: item for item in answer["items"]}
    assert set(found) == {"billing", "mailer"}
    assert found["billing"]["p50"] == pytest.approx(149, rel=0.011)
    assert found["billing"]["p95"] == pytest.approx(194, rel=0.011)
    assert found["mailer"]["p99"] == pytest.approx(1098, rel=0.011)
    assert found["mailer"]["error_rate"] == 0.25
    assert answer["total"]["p50"] == pytest.approx(199, rel=0.011)
    hours = api.get(f"/analytics/latency?{RANGE}&topic=orders&by=hour")["items"]
    assert [(item["at_ms"], item["attempts"]) for item in hours] == [(BEGIN_MS, 200)]
    topics = api.get(f"/analytics/latency?{RANGE}&by=topic")["items"]
    assert {item["name"] for item in topics} == {"orders", "mail"}
    [slowest] = api.get(f"/analytics/slow?{RANGE}&topic=orders")["items"]
    assert slowest["latency_ms"] == 1099


def test_every_resource_can_be_fetched_as_a_file(api: Api, lake: Lake) -> None:
    for resource in RESOURCES[1:]:
        for kind in ("csv", "json", "parquet"):
            answer = api("get", f"/analytics{resource}?{RANGE}&export={kind}")
            assert answer.status_code == 200, (resource, kind, answer.content)
            assert f'.{kind}"' in answer.headers["Content-Disposition"]
    csv = api("get", f"/analytics/edges?{RANGE}&export=csv").content.decode()
    assert csv.splitlines()[0].startswith("origin,target,kind,messages")
    assert "'=crm" in csv
    table = pq.read_table(
        io.BytesIO(api("get", f"/analytics/topics?{RANGE}&export=parquet").content)
    )
    assert table.column("latency_p50").to_pylist()[0] == pytest.approx(40, rel=0.011)
    assert api("get", "/analytics/topics?range=1h&export=csv").content == b""
    assert api("get", f"/analytics/topics?{RANGE}&export=xlsx").status_code == 400


@pytest.mark.parametrize(
    "query", ["slow?limit=0", "slow?limit=x", "slow?limit=501", "slow?reason=bad", "latency?by=x"]
)
def test_wrong_choices(query: str, api: Api, lake: Lake) -> None:
    assert api("get", f"/analytics/{query}").status_code == 400


def test_funnel_edges_and_heat_map(api: Api, page: Client, lake: Lake) -> None:
    steps = {step["name"]: step["count"] for step in api.get(f"/analytics/funnel?{RANGE}")["items"]}
    assert (steps["sent"], steps["stored"]) == (103, 93)
    assert (steps["never_consumed"], steps["unconfirmed"]) == (2, 4)
    edges = api.get(f"/analytics/edges?{RANGE}&topic=orders")["items"]
    assert [(edge["origin"], edge["target"]) for edge in edges] == [
        ("shop", "orders"),
        ("orders", "<b>billing"),
        ("orders", "billing"),
    ]
    assert [(edge["never_consumed"], edge["unconfirmed"]) for edge in edges] == [
        *((0, 0), (2, 0), (0, 4)),
    ]
    rows = api("get", f"/analytics/edges?{RANGE}&topic=orders&export=csv").content.decode()
    assert [row["never_consumed"] for row in csv.DictReader(io.StringIO(rows))] == ["0", "2", "0"]
    [cell] = api.get(f"/analytics/heatmap?{RANGE}")["items"]
    assert (cell["at_ms"], cell["from_ms"], cell["to_ms"], cell["count"]) == (BEGIN_MS, 20, 50, 45)
    [kind] = api.get(f"/analytics/kinds?{RANGE}")["items"]
    assert (kind["name"], kind["sends"]) == ("normal", 103)
    shown = page.get(f"{PATH}?{RANGE}").content.decode()
    assert "heat-table" in shown
    assert "funnel-table" in shown


def test_the_graph_has_a_drawing_and_a_table(page: Client, lake: Lake) -> None:
    shown = page.get(f"{PATH}graph/?{RANGE}").content.decode()
    assert shown.count('class="graph-line') == 4
    assert "&lt;b&gt;billing" in shown
    assert "<b>billing" not in shown
    assert 'id="edges-table"' in shown
    assert b"No data in this range" in page.get(f"{PATH}graph/?range=1h").content


def test_slow_and_never_consumed_messages_lead_to_their_journey(page: Client, lake: Lake) -> None:
    shown = page.get(f"{PATH}slow/?{RANGE}").content.decode()
    assert "/clusters/local/traces/AC11000100" in shown
    assert "/clusters/local/traces/AC11000200" in shown


def subscribed(group: str, topic: str, expression: str, kind: str = "TAG") -> HeartbeatData:
    """The heartbeat of a consumer that pulls nothing."""
    wanted = build_subscription(topic, expression, version=1, kind=kind)
    consumer = ConsumerData(group_name=group, subscription_data_set=[wanted])
    return HeartbeatData(client_id=f"client of {group}", consumer_data_set=[consumer])


def test_never_consumed_honours_offsets_and_filters_of_the_group(
    api: Api, page: Client, traffic: Traffic
) -> None:
    """The groups write no traces, so the lake has no delivery of any message."""
    topic = routed_topic(traffic, "counted")
    names = ("passed", "waiting", "choosy", "fussy", "silent")
    passed, waiting, choosy, fussy, silent = map(traffic.group, names)
    _first, second = store(traffic, *(Message(topic, b"1", tags="open") for _ in range(2)))
    stored_ms = now_ms()
    traffic.commit(passed, topic, 0, 2)
    for group in (waiting, choosy, fussy):
        traffic.commit(group, topic, 0, 1)
    groups = (passed, waiting, choosy, fussy, silent)
    message = {"tags": "open", "stored_ms": stored_ms, "at_ms": BEGIN_MS}
    lake = make_lake(
        lake_of("local"),
        slow=[
            {**never(0, second.msg_id, topic), "consumer_group": group, **message}
            for group in groups
        ],
        untraced=[untraced(0, topic, group, 1, "open", last_ms=stored_ms) for group in groups],
    )

    def states() -> dict[str, str]:
        items = api.get(f"/analytics/slow?reason=never_consumed&{RANGE}")["items"]
        return {item["consumer_group"]: item["reason"] for item in items}

    assert states() == dict.fromkeys(groups, "unknown"), "before the answer of the cluster"
    with (
        traffic.foreign_client(subscribed(waiting, topic, "open || paid")),
        traffic.foreign_client(subscribed(choosy, topic, "paid")),
        traffic.foreign_client(subscribed(fussy, topic, "a > 1", EXPRESSION_SQL92)),
        exclusive_writer(lake) as writer,
    ):
        asked_ms = stored_ms + 1_000
        snapshot = with_subscriptions(
            writer, lake.snapshot(), Connection(namesrv=traffic.namesrv_addr), asked_ms
        )
        again = with_subscriptions(
            writer, snapshot, Connection(namesrv=traffic.namesrv_addr), asked_ms + 1_000
        )
        assert again is snapshot, "asked at most once a minute"
    assert states() == {waiting: "pending", fussy: "unknown", silent: "unknown"}
    shown = page.get(f"{PATH}slow/?{RANGE}").content.decode()
    assert (passed in shown, choosy in shown, waiting in shown) == (False, False, True)
    edges = api.get(f"/analytics/edges?{RANGE}&topic={topic}")["items"]
    assert {edge["target"]: (edge["never_consumed"], edge["unconfirmed"]) for edge in edges} == {
        waiting: (1, 0),
        fussy: (0, 1),
        silent: (0, 1),
    }


def test_the_page_says_until_when_its_data_reaches(page: Client, lake: Lake) -> None:
    assert 'id="behind"' in page.get(PATH).content.decode()
    before = f"begin_ms={BEGIN_MS - HOUR_MS}&end_ms={BEGIN_MS}"
    assert 'id="behind"' not in page.get(f"{PATH}?{before}").content.decode()


def test_a_range_in_the_readers_zone(api: Api, page: Client, lake: Lake) -> None:
    begin = datetime.fromtimestamp(BEGIN_MS / 1000, UTC)
    query = f"begin={begin:%Y-%m-%dT%H:%M}&end={begin + timedelta(hours=1):%Y-%m-%dT%H:%M}"
    assert api.get(f"/analytics?{query}")["total"]["sends"] == 103
    assert '<b id="total-sends">103</b>' in page.get(f"{PATH}?{query}").content.decode()


def test_names_from_clients_are_text(page: Client, lake: Lake) -> None:
    shown = page.get(f"{PATH}?{RANGE}").content.decode()
    assert "<script>" not in shown.replace('<script src="', "")
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    "query",
    [
        *("range=forever", "begin_ms=x", "begin_ms=5&end_ms=5", "end_ms=1"),
        *(f"begin_ms={'9' * 30}", "begin=soon&end=later", "kind=every", "kind=normal%00"),
    ],
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
    assert (shown.status_code, b"No data in this range" in shown.content) == (200, True)
    totals: dict[str, Any] = api.get("/analytics")["total"]
    assert (totals["sends"], totals["send_success"]) == (0, None)
