"""Health findings of a real cluster: REST resource, page, and the parts on other pages."""

import asyncio
import threading
import zlib
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from console.gateway import gateway
from console.gateway.groups import metrics as group_metrics
from console.services.findings import evaluation, samples, stored
from console.services.findings.background import Evaluations
from console.services.findings.models import StoredReport
from console.services.findings.rules import RULES, consumption
from tests.api.conftest import API, Api
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

HOME = "/clusters/local"


@pytest.fixture(autouse=True)
def _each_request_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "EVALUATE_EVERY_MS", 0)


@pytest.fixture
def _lag_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lag counts at once, not after the commit interval of a consumer."""
    monkeypatch.setattr(group_metrics, "BEHIND_AFTER_MS", 0)


def keys(api: Api, query: str = "") -> set[str]:
    return {each["key"] for each in api.get(f"/findings?limit=500{query}")["items"]}


def first_row(api: Api, rule: str, group: str) -> dict[str, Any] | None:
    """The finding of a rule about a group, for a poll: the next report may be without the row."""
    items: list[dict[str, Any]] = api.get(f"/findings?rule={rule}&q={group}")["items"]
    return next(iter(items), None)


def test_every_rule_is_in_the_report(api: Api) -> None:
    report = api.get("/findings")
    assert [check["rule"] for check in report["checks"]] == [rule.id for rule in RULES]
    assert report["taken_ms"] > 0
    assert report["total"] == len(report["items"]) == sum(report["counts"].values())


def test_a_healthy_cluster_is_healthy_after_the_second_sample(api: Api, settings: Settings) -> None:
    # The disk of the machine may be full.
    settings.FINDING_THRESHOLDS = {
        "disk_percent": 101,
        "disk_critical_percent": 101,
        "disk_hours": 0,
    }
    first = api.get("/findings")
    assert first["verdict"] == "not-checked"
    (waiting,) = [check for check in first["checks"] if check["not_checked"]]
    assert waiting["rule"] == "dead-letters-growing"
    assert poll(lambda: api.get("/findings")["verdict"] == "healthy")


@pytest.mark.usefixtures("_lag_is_old")
def test_a_group_without_a_client_is_found_until_a_client_consumes(
    api: Api, page: Client, traffic: Traffic
) -> None:
    topic, group = traffic.topic("findings"), traffic.group("forgotten")
    traffic.send(topic, 4)
    for queue_id in range(2):
        traffic.commit(group, topic, queue_id, 0)
    key = f"group-offline/group/{group}"
    assert poll(lambda: key in keys(api))
    (found,) = api.get(f"/findings?rule=group-offline&object={group}")["items"]
    assert (found["severity"], found["object"]) == ("critical", {"kind": "group", "name": group})
    assert found["values"]["clients"] == 0
    assert found["values"]["lag"] > 0
    assert found["url"] == reverse("groups:detail", args=["local", group])
    assert {"kind": "topic", "name": topic} in found["related"]
    assert f"topic-without-consumers/topic/{topic}" in keys(api, "&kind=topic&severity=warning")
    for path in (
        f"{HOME}/findings/",
        f"{HOME}/findings/?severity=critical&kind=group",
        f"{HOME}/findings/object/?kind=group&name={group}",
        f"{HOME}/findings/object/?kind=topic&name={topic}",
        f"{HOME}/groups/{group}/",
        f"{HOME}/topics/{topic}/",
        f"{HOME}/findings/verdict/",
        f"{HOME}/",
    ):
        assert group in page.get(path).content.decode(), path
    with traffic.consumer(group, topic):
        assert poll(lambda: key not in keys(api))


@pytest.mark.must_beat(32)
def test_different_tags_in_one_group_are_found(api: Api, traffic: Traffic) -> None:
    topic, group = traffic.topic("tags"), traffic.group("mixed")
    key = f"subscription-conflict/group/{group}"
    with traffic.consumer(group, topic, "paid"):
        assert key not in keys(api)
        with traffic.consumer(group, topic, "failed"):
            found = poll(lambda: first_row(api, "subscription-conflict", group))
            assert found is not None
            texts = {one["topics"][topic] for one in found["values"]["subscriptions"]}
            assert texts == {"paid", "failed"}


@pytest.mark.must_beat(32)
def test_a_member_without_a_queue_is_found(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("single", read_queue_nums=1, write_queue_nums=1)
    group = traffic.group("crowded")
    key = f"client-idle/group/{group}"
    with traffic.consumer(group, topic):
        assert key not in keys(api)
        with traffic.consumer(group, topic):
            found = poll(lambda: first_row(api, "client-idle", group))
            assert found is not None
            members = [each["client_id"] for each in api.get(f"/groups/{group}/clients")["clients"]]
            assert len(members) == 2
            (idle,) = found["values"]["clients"]
            assert idle in members
        assert poll(lambda: key not in keys(api))


@pytest.mark.must_beat(32)
@pytest.mark.usefixtures("_lag_is_old")
def test_a_listener_that_blocks_is_found_until_it_goes_on(
    api: Api, traffic: Traffic, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SAMPLE_EVERY_MS", 0)
    settings.FINDING_THRESHOLDS = {"stuck_s": 0}
    topic = traffic.topic("blocked", read_queue_nums=1, write_queue_nums=1)
    group = traffic.group("blocking")
    traffic.commit(group, topic, 0, 0)
    key = f"queue-stuck/group/{group}"
    gate = threading.Event()

    async def wait() -> None:
        while not gate.is_set():
            await asyncio.sleep(0.01)

    with traffic.consumer(group, topic, work=wait):
        traffic.send(topic, 2)
        found = poll(lambda: first_row(api, "queue-stuck", group))
        assert found is not None
        assert found["values"]["queues"] == [f"{topic} broker-a:0"]
        gate.set()
        assert poll(lambda: key not in keys(api))


@pytest.mark.must_beat(32)
def test_a_consumer_slower_than_its_producer_is_found(
    api: Api, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SAMPLE_EVERY_MS", 0)
    monkeypatch.setattr(consumption, "GROWTH_MIN_MS", 0)
    topic, group = traffic.topic("fast"), traffic.group("slow")

    def row_after_more_messages() -> dict[str, Any] | None:
        traffic.send_many(topic, [b"x"] * 500)
        return first_row(api, "consumer-slow", group)

    # 20 calls of the listener at the same time: 20 messages per second.
    with traffic.consumer(group, topic, work=lambda: asyncio.sleep(1)):
        found = poll(row_after_more_messages)
    assert found is not None
    assert found["object"] == {"kind": "group", "name": group}
    assert found["values"]["lag"] > found["values"]["earlier_lag"]
    assert found["values"]["rate"] > 0
    assert {"kind": "topic", "name": topic} in found["related"]


def test_unread_queues_are_found(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("wide", read_queue_nums=2, write_queue_nums=4)
    assert poll(lambda: f"unread-queues/topic/{topic}" in keys(api))


@pytest.mark.parametrize(
    "query", ["severity=bad", "kind=queue", "rule=none", "ordering=lag", "cursor=x", "limit=0",
              "unknown=1", "rule=group-lag&rule=group-lag"],
)  # fmt: skip
def test_hostile_queries_are_refused(api: Api, query: str) -> None:
    assert api("get", f"/findings?{query}").status_code == 400


@pytest.mark.parametrize(
    "query", ["severity=x&kind=%00&rule=../&page=0", "q=%3Cscript%3E", "page=9"]
)
def test_hostile_queries_of_the_page_fall_back(page: Client, query: str) -> None:
    answer = page.get(f"{HOME}/findings/?{query}")
    assert answer.status_code == 200
    assert "<script>" not in answer.content.decode().partition("<main")[2].partition("</main")[0]
    assert page.get(f"{HOME}/findings/object/?kind=x&name={'n' * 9_000}").status_code == 200


def test_findings_are_paged_by_cursor(api: Api, traffic: Traffic) -> None:
    for number in range(5):
        traffic.topic(f"paged{number}", read_queue_nums=1, write_queue_nums=2)
    assert poll(lambda: len(keys(api, "&rule=unread-queues")) == 5)
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        part: dict[str, Any] = api.get(f"/findings?rule=unread-queues&limit=2&cursor={cursor}")
        seen += [each["key"] for each in part["items"]]
        cursor = part["next_cursor"]
    assert seen == sorted(seen)
    assert len(seen) == 5


def test_texts_are_in_the_language_of_the_request(api: Api, traffic: Traffic) -> None:
    topic = traffic.topic("language", read_queue_nums=1, write_queue_nums=2)
    assert poll(lambda: f"unread-queues/topic/{topic}" in keys(api))
    path = f"/findings?object={topic}"
    (english,) = api("get", path, **{"Accept-Language": "en"}).json()["items"]
    (chinese,) = api("get", path, **{"Accept-Language": "zh-hans"}).json()["items"]
    assert english["text"].startswith("No consumer reads 1 of 2")
    assert chinese["text"] != english["text"]
    assert chinese["key"] == english["key"]


def test_a_lost_broker_is_a_finding_and_the_rest_is_not_checked(
    api: Api, page: Client, cluster: Cluster, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    assert poll(lambda: not api.get("/findings")["counts"]["critical"])
    cluster.kill_broker()
    assert poll(lambda: "broker-down/broker/broker-a" in keys(api))
    report = api.get("/findings")
    assert report["verdict"] == "critical"
    checks = {check["rule"]: check for check in report["checks"]}
    assert checks["group-lag"]["not_checked"][0]["where"] == "broker-a"
    (down,) = [each for each in report["items"] if each["rule"] == "broker-down"]
    assert down["since_ms"] is not None
    text = page.get(f"{HOME}/findings/").content.decode()
    assert 'data-verdict="critical"' in text
    assert page.get(down["url"]).status_code == 200


def test_an_unknown_cluster_has_no_findings(api: Api) -> None:
    answer = api.client.get(API.replace("local", "elsewhere") + "/findings")
    assert answer.status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_worker_evaluates_and_pages_show_its_report(
    api: Api, page: Client, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = traffic.topic("background", read_queue_nums=2, write_queue_nums=4)
    one, other = Evaluations(), Evaluations()
    key = f"unread-queues/topic/{topic}"
    assert poll(lambda: evaluated(one) and key in stored_keys())
    assert not other.evaluate(), "another process holds the lease"

    def unexpected(*_: Any) -> None:
        raise AssertionError("a request evaluated beside the worker")

    monkeypatch.setattr(evaluation.Evaluator, "_evaluate", unexpected)
    assert key in keys(api)
    report = api.get("/findings")
    assert report["taken_ms"] == StoredReport.objects.get().taken_ms
    (found,) = api.get(f"/findings?object={topic}&rule=unread-queues")["items"]
    assert found["text"]
    chinese = page.get(f"{HOME}/findings/?q={topic}", headers={"Accept-Language": "zh-hans"})
    english = page.get(f"{HOME}/findings/?q={topic}", headers={"Accept-Language": "en"})
    assert found["text"] in english.content.decode()
    assert found["text"] not in chinese.content.decode()
    assert topic in page.get(f"{HOME}/").content.decode()


@pytest.mark.usefixtures("db")
def test_an_unreadable_or_old_report_is_not_shown(api: Api) -> None:
    cluster = gateway.cluster("local")
    report = api.get("/findings")
    made = evaluation.evaluator_of(cluster).latest
    assert made is not None
    stored.save(cluster, made)
    assert stored.load(cluster, report["taken_ms"]) is not None
    assert stored.load(cluster, report["taken_ms"] + 1) is None
    stored._decoded.clear()
    for body in (b"", b"no zlib", zlib.compress(b'{"took_ms": "x"}')):
        StoredReport.objects.update(body=body)
        assert stored.load(cluster, 0) is None
    assert api.get("/findings")["total"] == report["total"]


def evaluated(evaluations: Evaluations) -> bool:
    evaluations.evaluate()
    evaluations.wait()
    return True


def stored_keys() -> set[str]:
    report = stored.load(gateway.cluster("local"), 0)
    return set() if report is None else {each.key for each in report.findings}
