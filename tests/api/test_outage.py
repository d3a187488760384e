"""Outages with killed programs: pages, lists and REST answers show them, and recover.

Each test kills a real broker or name server of a cluster of its own.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import BrokerRef, KnownBroker, gateway
from console.services.clusters import memory, models
from tests.api.conftest import browser
from tests.api.outages import Own, check_failures_of_the_api, check_red_with_last_values
from tests.api.traffic import poll
from tests.support.cluster import Cluster, Program


@pytest.fixture
def own(cluster: Cluster, staff: User, settings: Settings) -> Iterator[Own]:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    found = Own(cluster.namesrv_addr, cluster.broker_addr, cluster.kill_broker, staff)
    yield found
    found.traffic.close()


def test_a_dead_broker_is_red_everywhere_with_its_last_values(own: Own) -> None:
    own.see_everything()
    own.kill_and_notice()
    check_red_with_last_values(own)


def test_every_answer_of_the_api_names_the_broker_that_is_down(own: Own) -> None:
    own.see_everything()
    own.kill_and_notice()
    check_failures_of_the_api(own)


def test_a_change_during_the_outage_fails_and_a_deletion_too(own: Own) -> None:
    own.see_everything()
    etag = own.api("get", f"/topics/{own.topic}").headers["ETag"]
    own.kill_and_notice()
    assert own.api("get", f"/topics/{own.topic}").headers["ETag"] == etag
    change = own.api("patch", f"/topics/{own.topic}", {"perm": 4}, **{"If-Match": etag})
    assert change.status_code == 503, change.content
    assert own.api("delete", f"/topics/{own.topic}").status_code == 503
    assert own.topic in [one["name"] for one in own.api.get("/topics")["items"]]


def test_the_paths_of_the_java_dashboard_fail_instead_of_stale_answers(own: Own) -> None:
    own.see_everything()
    own.kill_and_notice()
    for path in (
        "topic/list.query",
        f"topic/stats.query?topic={own.topic}",
        "consumer/groupList.query",
        f"consumer/queryTopicByConsumer.query?consumerGroup={own.group}",
    ):
        answer = own.api.client.get(f"/{path}").json()
        assert (answer["status"], answer["data"]) == (-1, None), path
        assert answer["errMsg"], path
    servers = own.api.client.get("/cluster/list.query").json()["data"]["brokerServer"]
    assert not any(servers.values())


def test_a_probe_names_the_name_server_that_is_away(
    own: Own, cluster: Cluster, settings: Settings
) -> None:
    settings.REDIS_URL = ""
    own.see_everything()
    cluster.namesrv.kill()
    poll(lambda: Client().get("/readyz").status_code == 503)
    assert b"[-]cluster-local failed: " in Client().get("/readyz").content


def test_a_broker_that_comes_back_is_up_again(own: Own, cluster: Cluster) -> None:
    own.see_everything()
    own.kill_and_notice()
    cluster.restart_broker()
    poll(lambda: own.api.get("/brokers")["items"][0]["state"] == "up")
    assert poll(lambda: not own.api.get("/topics")["failures"])
    assert "stale-mark" not in own.text("topics/")


def test_a_restarted_console_knows_the_broker_but_not_its_values(own: Own) -> None:
    own.see_everything()
    own.kill_and_notice()
    gateway.close()  # a new process has the database only
    (broker,) = own.api.get("/brokers")["items"]
    assert (broker["name"], broker["state"]) == ("broker-a", "down")
    assert broker["contact_ms"] > 0
    assert broker["in_total"] is None
    overview = own.text("")
    assert 'data-broker-state="down"' in overview
    for path in ("/topics", "/groups", "/dlq"):
        answer = own.api("get", path)
        assert answer.status_code == 503, path
        assert int(answer.headers["Retry-After"]) > 0
        assert [one["broker"] for one in answer.json()["failures"]] == ["broker-a"]
    for path in ("topics/", "groups/"):
        answer = own.get(path)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0


def test_the_page_of_a_broker_has_the_last_values_of_the_list(own: Own) -> None:
    own.api.get("/brokers")
    own.kill_and_notice()
    (process,) = own.api.get("/brokers/broker-a")["processes"]
    assert process["broker"]["in_total"] >= 3
    page = own.text("brokers/broker-a/")
    assert "The settings are unknown" in page
    assert "No setting matches" not in page


def test_a_decommissioned_broker_is_forgotten_with_an_audit_row(own: Own, cluster: Cluster) -> None:
    own.see_everything()
    refused = own.api("delete", "/brokers/broker-a")
    assert refused.status_code == 409, "the name server lists it"
    cluster.stop_broker()
    poll(own.down)
    page = own.text("brokers/")
    assert "/clusters/local/brokers/broker-a/0/forget/" in page
    assert own.page.post("/clusters/local/brokers/broker-a/0/forget/").status_code == 302
    assert own.api.get("/brokers")["items"] == []
    assert not models.KnownBroker.objects.exists()
    row = AuditRow.house.filter(action="broker.forget", result="done").latest("pk")
    assert (row.cluster, row.target) == ("local", "broker-a:0")
    assert own.api("delete", "/brokers/broker-a").status_code == 404
    assert own.api("delete", "/brokers/broker-a?id=x").status_code == 400


def test_a_viewer_cannot_forget_a_broker(own: Own, reader: User) -> None:
    own.see_everything()
    own.kill_and_notice()
    page: Client = browser(reader)
    assert "forget/" not in page.get("/clusters/local/brokers/").content.decode()
    assert page.post("/clusters/local/brokers/broker-a/0/forget/").status_code == 403
    assert models.KnownBroker.objects.filter(name="broker-a").exists()


def test_without_the_name_server_the_brokers_are_still_read(
    own: Own, cluster: Cluster, settings: Settings
) -> None:
    own.see_everything()
    cluster.namesrv.kill()

    def failures(path: str) -> list[str]:
        return [one["broker"] for one in own.api.get(path)["failures"]]

    for path in ("", "/brokers", "/topics", "/groups", "/clients", "/load"):
        assert poll(partial(failures, path)) == ["name server"], path
    assert own.topic in [one["name"] for one in own.api.get("/topics")["items"]]
    assert own.api.get("/load")["state"] == "partly"
    assert "name server" in own.text("topics/")
    settings.CONSOLE_CLUSTERS = {**settings.CONSOLE_CLUSTERS, "other": "127.0.0.1:1"}
    assert "partly up" in own.page.get("/").content.decode()
    assert "stale-mark" not in own.text("topics/"), "the broker answers"


def test_a_broker_that_no_name_server_lists_is_not_registered(
    own: Own, tmp_path: Path, settings: Settings
) -> None:
    own.see_everything()
    gateway.close()
    other = Program("namesrv", tmp_path)
    other.start(
        {
            "listen_port": 0,
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": tmp_path / "kvConfig.json",
            "config_store_path": tmp_path / "namesrv.properties",
        }
    )
    try:
        settings.CONSOLE_CLUSTERS = {"local": f"127.0.0.1:{other.port('remoting')}"}
        (broker,) = own.api.get("/brokers")["items"]
        assert (broker["name"], broker["state"]) == ("broker-a", "unregistered")
        assert broker["in_total"] >= 3, "the broker answers"
        assert "not registered" in own.text("brokers/")
        assert "1 not registered" in own.text("")
        assert own.topic in [one["name"] for one in own.api.get("/topics")["items"]]
    finally:
        other.stop()


def test_the_database_keeps_a_bounded_number_of_brokers(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "KNOWN_BROKERS_MAX", 2)
    stored = memory.DatabaseMemory()
    brokers = [
        KnownBroker(BrokerRef(f"n{number}", 0, f"h:{number}"), "c", 1, number)
        for number in range(3)
    ]
    brokers.append(KnownBroker(BrokerRef("silent", 0, "h:4"), "c", 1, None))
    stored.save("one", brokers)
    stored.save("other", brokers[:1])
    assert [each.ref.name for each in stored.load("one") or []] == ["n2", "n1"]
    assert [each.ref.name for each in stored.load("other") or []] == ["n0"]
    moved = KnownBroker(BrokerRef("n0", 0, "elsewhere:1"), "c", 9, 9)
    stored.save("other", [moved])
    assert [(each.ref.addr, each.seen_ms) for each in stored.load("other") or []] == [
        ("elsewhere:1", 1)
    ]
    stored.forget("other", moved.ref)
    assert stored.load("other") == []
