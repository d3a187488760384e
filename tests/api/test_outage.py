"""Outages with killed programs: pages, lists and REST answers show them, and recover.

Each test kills a real broker or name server of a cluster of its own.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import gateway
from console.services.clusters.models import KnownBroker
from tests.api.conftest import Api, browser
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster

PAGES = ("", "brokers/", "topics/", "groups/", "clients/", "producers/", "dlq/")
#: Texts of empty lists, which an outage must never show.
NONE_YET = (
    "No topics yet",
    "No consumer groups yet",
    "No clients connected",
    "No producers connected",
    "No dead letters",
    "No lag",
    "all brokers up",
)


class Own:
    """A cluster that belongs to one test, with a topic, a group and a console."""

    def __init__(self, cluster: Cluster, user: User) -> None:
        self.cluster = cluster
        self.api = Api(user)
        self.page = browser(user)
        self.traffic = Traffic(cluster.namesrv_addr, cluster.broker_addr)
        self.topic = self.traffic.topic("orders")
        self.group = self.traffic.group("accounting")
        self.traffic.send(self.topic, 3)

    def see_everything(self) -> None:
        """Open each page once, so that the console knows the values before the outage."""
        for path in PAGES:
            assert self.get(path).status_code == 200, path
        poll(lambda: self.topic in self.text("topics/"))

    def get(self, path: str) -> Any:
        return self.page.get(f"/clusters/local/{path}")

    def text(self, path: str) -> str:
        answer = self.get(path)
        return str(answer.content.decode())

    def down(self) -> bool:
        """True when the console has noticed that the broker is down."""
        return bool(self.api.get("/brokers")["items"][0]["state"] == "down")


@pytest.fixture
def own(cluster: Cluster, staff: User, settings: Settings) -> Iterator[Own]:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    found = Own(cluster, staff)
    yield found
    found.traffic.close()


def test_a_dead_broker_is_red_everywhere_with_its_last_values(own: Own) -> None:
    own.see_everything()
    own.cluster.kill_broker()
    poll(own.down)
    for path in PAGES:
        text = own.text(path)
        assert "alert-danger" in text, path
        for lie in NONE_YET:
            assert lie not in text, (path, lie)
    overview = own.text("")
    assert 'data-broker-state="down"' in overview
    assert "1 down" in overview
    for path, name in (("topics/", own.topic), ("groups/", own.group)):
        row = re.search(rf"<tr>(?:(?!</tr>).)*{name}.*?</tr>", own.text(path), re.DOTALL)
        assert row is not None, path
        assert "stale-mark" in row[0]
        assert "<time" in row[0]
    for path in (f"topics/{own.topic}/", f"groups/{own.group}/", "brokers/broker-a/"):
        answer = own.get(path)
        assert answer.status_code == 200, path
        assert "stale-mark" in answer.content.decode(), path


def test_every_answer_of_the_api_names_the_broker_that_is_down(own: Own) -> None:
    own.see_everything()
    own.cluster.kill_broker()
    poll(own.down)
    for path in ("", "/brokers", "/topics", "/groups", "/clients", "/dlq", "/load"):
        answer = own.api.get(path)
        assert [one["broker"] for one in answer["failures"]] == ["broker-a"], path
    topics = own.api.get("/topics")
    assert own.topic in [one["name"] for one in topics["items"]]
    assert topics["failures"][0]["as_of_ms"] > 0
    assert own.api.get("/load")["state"] == "stale"
    (broker,) = own.api.get("/brokers")["items"]
    assert broker["contact_ms"] > 0
    assert broker["in_total"] >= 3, "the last values remain"


def test_a_broker_that_comes_back_is_up_again(own: Own) -> None:
    own.see_everything()
    own.cluster.kill_broker()
    poll(own.down)
    own.cluster.restart_broker()
    poll(lambda: own.api.get("/brokers")["items"][0]["state"] == "up")
    assert poll(lambda: not own.api.get("/topics")["failures"])
    assert "stale-mark" not in own.text("topics/")


def test_a_restarted_console_knows_the_broker_but_not_its_values(own: Own) -> None:
    own.see_everything()
    own.cluster.kill_broker()
    poll(own.down)
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


def test_a_decommissioned_broker_is_forgotten_with_an_audit_row(own: Own) -> None:
    own.see_everything()
    refused = own.api("delete", "/brokers/broker-a")
    assert refused.status_code == 409, "the name server lists it"
    own.cluster.stop_broker()
    poll(own.down)
    page = own.text("brokers/")
    assert "/clusters/local/brokers/broker-a/0/forget/" in page
    assert own.page.post("/clusters/local/brokers/broker-a/0/forget/").status_code == 302
    assert own.api.get("/brokers")["items"] == []
    assert not KnownBroker.objects.exists()
    row = AuditRow.house.filter(action="broker.forget", result="done").latest("pk")
    assert (row.cluster, row.target) == ("local", "broker-a:0")
    assert own.api("delete", "/brokers/broker-a").status_code == 404
    assert own.api("delete", "/brokers/broker-a?id=x").status_code == 400


def test_a_viewer_cannot_forget_a_broker(own: Own, reader: User) -> None:
    own.see_everything()
    own.cluster.kill_broker()
    poll(own.down)
    page: Client = browser(reader)
    assert "forget/" not in page.get("/clusters/local/brokers/").content.decode()
    assert page.post("/clusters/local/brokers/broker-a/0/forget/").status_code == 403
    assert KnownBroker.objects.filter(name="broker-a").exists()


def test_without_the_name_server_the_brokers_are_still_read(own: Own) -> None:
    own.see_everything()
    own.cluster.namesrv.kill()
    poll(lambda: own.api.get("/topics")["failures"])
    for path in ("", "/brokers", "/topics", "/groups", "/clients", "/load"):
        assert [one["broker"] for one in own.api.get(path)["failures"]] == ["name server"], path
    assert own.topic in [one["name"] for one in own.api.get("/topics")["items"]]
    assert own.api.get("/load")["state"] == "partly"
    assert "name server" in own.text("topics/")
    assert "stale-mark" not in own.text("topics/"), "the broker answers"
