"""Monitoring of the console: probes with the failed check, valid metrics, the dashboard."""

import json
import re
from pathlib import Path

import pytest
from django.db import DatabaseError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from console.gateway import gateway
from tests.api.conftest import Api
from tests.support.cluster import Cluster

BOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "gantry-console.json"
pytestmark = pytest.mark.must_beat(29)


@pytest.fixture
def alone(settings: Settings) -> None:
    """A console without Redis."""
    settings.REDIS_URL = ""


@pytest.mark.parametrize("path", ["/readyz", "/healthz"])
def test_ready_while_everything_answers(path: str, db: None, local: Cluster, alone: None) -> None:
    answer = Client().get(path, {"verbose": ""})
    assert answer.status_code == 200, answer.content
    assert b"[+]database ok" in answer.content
    assert b"[+]cluster-local ok" in answer.content
    assert Client().get(path).content == b"ok\n"


def test_not_ready_names_the_cluster_that_is_away(
    db: None, local: Cluster, alone: None, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {**settings.CONSOLE_CLUSTERS, "away": "127.0.0.1:1"}
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert b"[-]cluster-away failed" in answer.content
    assert b"[+]cluster-local ok" in answer.content
    assert Client().get("/readyz?exclude=cluster-away").status_code == 200
    assert Client().get("/livez").status_code == 200, "restarting it would not help"


def test_not_ready_while_the_broker_is_stopped_and_ready_again(
    db: None, cluster: Cluster, alone: None, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"own": cluster.namesrv_addr}
    assert Client().get("/readyz").status_code == 200
    cluster.broker.stop()
    gateway.close()
    answer = Client().get("/readyz")
    assert answer.status_code == 503, answer.content
    assert b"[-]cluster-own failed" in answer.content


def test_not_ready_names_redis_and_the_database(
    db: None, local: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = "redis://:secret@127.0.0.1:1/0"

    class Away:
        def cursor(self) -> None:
            raise DatabaseError("no such table")

    monkeypatch.setattr("console.web.health.connection", Away())
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert b"[-]redis failed" in answer.content
    assert b"[-]database failed: no such table" in answer.content
    assert b"secret" not in answer.content


def test_metrics_parse_and_routes_make_no_series_of_names(api: Api) -> None:
    for name in ("one", "two", "%00", "x" * 200):
        api("get", f"/topics/{name}")
    text = Client().get("/metrics").content.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    requests = families["gantry_console_request_seconds"]
    assert requests.type == "histogram"
    routes = {sample.labels["route"] for sample in requests.samples}
    assert "api/v1/clusters/<str:cluster>/topics/<name:topic>" in routes
    assert not any("x" * 200 in route for route in routes)
    assert "process_resident_memory_bytes" in families


def test_the_board_asks_for_measurements_that_there_are(api: Api) -> None:
    api("get", "/topics")
    text = Client().get("/metrics").content.decode()
    known = {family.name for family in text_string_to_metric_families(text)}
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    asked = {
        re.sub(r"_(bucket|count|sum|total)$", "", name)
        for panel in board["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"\b(?:gantry|process)_[a-z_]+", target["expr"])
    }
    assert len(asked) >= 4
    assert asked <= {re.sub(r"_total$", "", name) for name in known}
