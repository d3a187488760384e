"""Clusters, brokers and name servers through the API; health pages; the OpenAPI document."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from drf_spectacular.validation import validate_schema
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from console.gateway import gateway
from tests.api.conftest import API, Api
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

NOWHERE = "127.0.0.1:1"


def test_the_clusters_of_this_console(api: Api, local: Cluster) -> None:
    answer = api.client.get("/api/v1/clusters")
    assert answer.json() == [{"name": "local", "namesrv_addr": local.namesrv_addr}]


def test_a_cluster_at_a_glance(api: Api, traffic: Traffic, local: Cluster) -> None:
    traffic.send(traffic.topic(), 3)
    found = poll(lambda: (one := api.get(""))["load"]["in_total"] >= 3 and one)
    found = poll(lambda: (one := api.get(""))["own_topic_count"] >= 1 and one)
    assert found["topic_count"] > found["own_topic_count"]
    (broker,) = found["brokers"]
    assert (broker["name"], broker["addr"], broker["role"]) == (
        "broker-a",
        local.broker_addr,
        "master",
    )
    assert broker["version"] == "4.9.8"
    assert 0 < broker["disk_ratio"] < 1
    assert broker["started_ms"] > 1_700_000_000_000


def test_a_broker_tells_its_table_and_settings(api: Api) -> None:
    (process,) = api.get("/brokers/broker-a")["processes"]
    assert process["runtime"]["brokerVersionDesc"] == "V4_9_8"
    assert process["settings"]["brokerName"] == "broker-a"
    assert api.get("/brokers/nobody", 404)["hint"]


def test_a_broker_shows_no_constants_as_measurements(api: Api, page: Client) -> None:
    """And its totals are named for the time from which they count."""
    (process,) = api.get("/brokers/broker-a")["processes"]
    unmeasured = process["runtime"]["gantryUnmeasured"].split(",")
    assert "dispatchMaxBuffer" in unmeasured
    text = page.get("/clusters/local/brokers/broker-a/").content.decode()
    for key in unmeasured:
        value = text.partition(f"<code>{key}</code></dt>")[2].partition("</dd>")[0]
        assert "—" in value, key
        assert "Not measured" in value, key
    broker = process["broker"]
    assert broker["today_begins"] in {"start", "midnight"}
    named = "since start" if broker["today_begins"] == "start" else "today"
    assert (broker["today_begins"] == "start") == (broker["today_from_ms"] == broker["started_ms"])
    for path in ("", "brokers/", "brokers/broker-a/"):
        assert f">{named}</span>" in page.get(f"/clusters/local/{path}").content.decode(), path


def test_a_chinese_total_comes_after_what_it_counts_from(page: Client) -> None:
    page.cookies["gantry_language"] = "zh-hans"
    for path in ("", "brokers/", "brokers/broker-a/"):
        text = page.get(f"/clusters/local/{path}").content.decode()
        since = r"(自启动以来|今日)</span>\s*(</span>)?\s*(<b [^>]*>)?[0-9,]+"
        assert len(re.findall(since, text)) == 2, path
    running = text.partition("<code>runtime</code></dt>")[2].partition("</dd>")[0]
    assert "days" not in running
    assert re.search(r"\d+ (秒|分|小时|毫秒)", running), running


def test_reading_messages_in_the_console_is_no_consumption(
    api: Api, page: Client, traffic: Traffic
) -> None:
    topic = traffic.topic("browsed")
    traffic.send(topic, 20)
    before = api.get("")["load"]
    assert poll(lambda: len(api.get(f"/messages?topic={topic}")["items"]) == 20)
    for _ in range(3):
        assert page.get(f"/clusters/local/messages/?topic={topic}").status_code == 200
    gateway.close()
    after = api.get("")["load"]
    assert (after["out_total"], after["out_today"]) == (before["out_total"], before["out_today"])
    with traffic.consumer(traffic.group("consumes"), topic):
        assert poll(lambda: api.get("")["load"]["out_total"] == before["out_total"] + 20)


def test_one_sample_for_browsers_without_a_socket(api: Api) -> None:
    sample = api.get("/load")
    assert sample["type"] == "sample"
    assert sample["brokers"][0]["master"] is True


def test_name_servers_that_answer_and_that_do_not(
    api: Api, local: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": f"{local.namesrv_addr};{NOWHERE}"}
    first, second = api.get("/name-servers")["items"]
    assert first["failure"] is None
    assert first["settings"]["listenPort"]
    assert NOWHERE in second["failure"]


def test_a_broker_that_is_gone_is_named_and_the_others_are_shown(
    api: Api, traffic: Traffic
) -> None:
    with traffic.dead_broker(NOWHERE) as name:

        def noticed() -> dict[str, Any]:
            found: dict[str, Any] = api.get("/brokers")
            states = {one["name"]: one["state"] for one in found["items"]}
            return found if states == {"broker-a": "up", name: "down"} else {}

        found = poll(noticed)
        assert [(one["broker"], one["addr"]) for one in found["failures"]] == [(name, NOWHERE)]
        assert "Connection refused" in found["failures"][0]["reason"]
        listed = poll(lambda: (one := api.get("/topics?type=system"))["failures"] and one)
        assert listed["items"]
        assert [one["broker"] for one in listed["failures"]] == [name]
        made = api("post", "/topics", {"name": f"part-{name}"})
        assert made.status_code == 207, made.content
        errors = {one["broker"]: one["error"] for one in made.json()["outcomes"]}
        assert errors["broker-a"] is None
        assert "Connection refused" in errors[name]


def test_without_a_name_server_the_cause_and_the_setting_are_told(
    api: Api, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    for path in ("", "/load", "/brokers", "/topics", "/groups", "/topics/x", "/groups/x"):
        problem = api.get(path, 503)
        assert problem["type"] == "urn:gantry:problem:cluster-unreachable"
        assert NOWHERE in problem["detail"]
        assert "NAMESRV_ADDR" in problem["hint"]
    assert api("post", "/topics", {"name": "x"}).status_code == 503


@pytest.mark.parametrize("name", ["other", "LOCAL", "..", "%00", "local%2f", "<b>"])
def test_a_cluster_that_is_not_known(api: Api, name: str) -> None:
    answer = api.client.get(f"/api/v1/clusters/{name}/topics")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_address_that_does_not_exist_is_told_in_the_same_shape(api: Api) -> None:
    answer = api.client.get("/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["instance"] == "/api/v1/nothing"
    answer = api("put", "/topics")
    assert answer.status_code == 405
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_openapi_document_describes_every_resource_and_its_errors(db: None) -> None:
    answer = Client().get("/api/schema/?format=json")
    assert answer.status_code == 200
    document = json.loads(answer.content)
    validate_schema(document)
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert {"list_topics", "create_topic", "get_group", "delete_topic"} <= set(ids)
    for operation in operations:
        assert {"401", "404", "503"} <= set(operation["responses"]), operation["operationId"]


def test_health_of_a_console_that_has_all_it_needs(db: None, local: Cluster) -> None:
    client = Client()
    assert client.get("/livez").content == b"ok\n"
    assert poll(lambda: client.get("/readyz").status_code == 200)
    verbose = client.get("/readyz?verbose").content.decode()
    assert verbose.splitlines() == ["[+]database ok", "[+]cluster-local ok"]


def test_health_names_the_check_that_failed(db: None, settings: Settings) -> None:
    settings.CONSOLE_CLUSTERS = {"local": NOWHERE}
    settings.REDIS_URL = f"redis://:secret@{NOWHERE}/0"
    client = Client()
    assert client.get("/livez").status_code == 200
    answer = client.get("/readyz")
    assert answer.status_code == 503
    text = answer.content.decode()
    assert "[-]cluster-local failed: Cannot connect" in text
    assert "[-]redis failed" in text
    assert "secret" not in text
    assert client.get("/readyz?exclude=cluster-local&exclude=redis").status_code == 200


def test_metrics_can_be_read_by_prometheus(api: Api) -> None:
    api.get("/brokers")
    text = Client().get("/metrics").content.decode()
    families = {family.name for family in text_string_to_metric_families(text)}
    assert "gantry_console_request_seconds" in families
    assert "gantry_console_question_seconds" in families
    assert 'route="api/v1/clusters/<str:cluster>/brokers"' in text


def test_varz_tells_settings_and_no_secret(db: None, settings: Settings, local: Cluster) -> None:
    settings.REDIS_URL = "redis://:hunter2@h:1/0"
    answer = Client().get("/varz")
    assert answer.json()["clusters"] == {"local": local.namesrv_addr}
    assert answer.json()["redis"] is True
    assert "hunter2" not in answer.content.decode()
    assert settings.SECRET_KEY not in answer.content.decode()


def test_no_answer_repeats_a_secret(api: Api, staff: User, local: Cluster) -> None:
    digest = staff.password
    for path in ("", "/brokers", "/brokers/broker-a", "/topics", "/groups", "/name-servers"):
        text = json.dumps(api.get(path))
        assert digest not in text


def test_a_question_asked_twice_is_answered_once(api: Api, local: Cluster) -> None:
    first: Any = api.get("/brokers")["asked_at_ms"]
    assert api.get("/brokers")["asked_at_ms"] == first
    assert gateway.cluster("local").name in API
