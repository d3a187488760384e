"""The console's inventory on Java brokers: all pages and lists without errors and without -1."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.gateway import gateway
from tests.api.conftest import browser
from tests.api.conftest import staff as staff  # noqa: PLC0414 - a fixture of these tests too
from tests.api.traffic import Traffic, poll
from tests.compat import installing
from tests.compat.test_client_on_java import java_cluster, registered

pytestmark = [
    pytest.mark.must_beat(1),
    pytest.mark.must_beat(22),
    pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200),
]

#: Timeout of a poll, seconds: Java brokers persist and register every few seconds.
WAIT_S = 90.0
HOME = "/clusters/java"
API = "/api/v1/clusters/java"
MINUS_ONE = re.compile(r">\s*-1\s*<")


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def java(request: pytest.FixtureRequest, tmp_path: Path, settings: Settings) -> Iterator[Traffic]:
    with java_cluster(request.param, tmp_path) as addr:
        settings.CONSOLE_CLUSTERS = {"java": addr}
        traffic = Traffic(addr, asyncio.run(registered(addr)))
        try:
            yield traffic
        finally:
            traffic.close()
            gateway.close()


def test_every_page_and_list(java: Traffic, staff: User) -> None:
    client = browser(staff)
    topic, group, idle = java.topic("java"), java.group("java"), java.group("idle")
    poll(lambda: topic in java.admin(lambda admin: admin.topic_list()), WAIT_S)
    java.send(topic, 5)
    with java.consumer(group, topic):
        poll(lambda: line(client, f"groups?q={group}")["clients"] == 1, WAIT_S)
        poll(lambda: line(client, f"groups?q={group}")["lag"] == 0, WAIT_S)
        lists(client, topic, group, idle)
        pages(client, topic, group)
        (found,) = api(client, f"clients?q={group}&role=consumer")["items"]
        assert (found["protocol"], found["heartbeat_ms"]) == ("remoting", None)
        text = client.get(f"{HOME}/clients/?q={group}").content.decode()
        assert "do not report the heartbeat of consumers" in text, "the page has the reason"
    behind(client, java, topic, group)
    browsing(client, topic)
    foreign_settings(client)


def browsing(client: Client, topic: str) -> None:
    """A Java broker counts the console's pulls as consumption; the console subtracts them."""
    before = process(client)
    assert len(api(client, f"messages?topic={topic}")["items"]) == 8
    counted = int(before["runtime"]["msgGetTotalTodayNow"])
    key = "msgGetTotalTodayNow"
    after = poll(
        lambda: found if int((found := process(client))["runtime"][key]) > counted else None, WAIT_S
    )
    assert after is not None
    assert after["broker"]["out_total"] == before["broker"]["out_total"]
    assert after["broker"]["today_begins"] == "start"


def process(client: Client) -> Any:
    return api(client, "brokers/broker-a")["processes"][0]


def foreign_settings(client: Client) -> None:
    """Meanings that hold for Gantry only are missing, and the page names the Java broker."""
    meanings = {one["name"]: one["meaning"] for one in api(client, "broker-settings")["items"]}
    assert meanings["transientStorePoolEnable"] is None
    assert "Hours" in meanings["fileReservedTime"]
    text = client.get(f"{HOME}/broker-settings/").content.decode()
    assert "brokers of Apache RocketMQ" in text


def lists(client: Client, topic: str, group: str, idle: str) -> None:
    numbers = line(client, f"topics?q={topic}&ordering=-stored")
    assert (numbers["stored"], numbers["worst_lag"], numbers["groups"]) == (5, 0, [group])
    for path in ("topics", "groups", "clients", "producers", "brokers"):
        body = api(client, path)
        assert body["failures"] == []
        assert '": -1' not in str(body).replace("'", '"')
    never = line(client, f"groups?q={idle}")
    assert (never["lag"], never["lag_seconds"], never["clients"]) == (None, None, 0)
    assert api(client, "")["total_lag"] == 0
    settings = api(client, "broker-settings?q=fileReservedTime")["items"][0]
    assert settings["changeable"]


def pages(client: Client, topic: str, group: str) -> None:
    for path in (
        *("", "behind/", "brokers/", "brokers/broker-a/", "broker-settings/", "name-servers/"),
        *("broker-settings/fileReservedTime/", "topics/", "topics/?ordering=-worst_lag"),
        *(f"topics/{topic}/", f"topics/{topic}/edit/", f"topics/{topic}/delete/"),
        *("groups/", "groups/?ordering=-lag", "groups/?show=behind", "groups/?show=offline"),
        *(f"groups/{group}/", f"groups/{group}/edit/", f"groups/{group}/delete/"),
        *("clients/", "producers/"),
    ):
        answer = client.get(f"{HOME}/{path}")
        text = answer.content.decode()
        assert answer.status_code == 200, (path, text[:400])
        # Pages show raw broker settings, and some of RocketMQ's settings are -1.
        of_console = "" if "broker-settings" in path else text.partition('id="settings"')[0]
        assert not MINUS_ONE.search(of_console), path


def behind(client: Client, java: Traffic, topic: str, group: str) -> None:
    """Check the lag of a stopped group in messages and seconds; change a setting and read it."""
    poll(lambda: line(client, f"groups?q={group}")["clients"] == 0, WAIT_S)
    java.send(topic, 3)
    poll(lambda: line(client, f"groups?q={group}")["lag"] == 3, WAIT_S)
    numbers = line(client, f"groups?q={group}&ordering=-lag")
    assert numbers["lag_seconds"] is not None
    assert numbers["lag_seconds"] >= 0
    body = {"settings": {"fileReservedTime": "48"}}
    answer = client.patch(f"{API}/broker-settings", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    items = api(client, "broker-settings?q=fileReservedTime")["items"]
    assert items[0]["values"] == {"broker-a": "48"}


def api(client: Client, path: str) -> Any:
    answer = client.get(f"{API}/{path}".rstrip("/"))
    assert answer.status_code == 200, (path, answer.content[:400])
    return answer.json()


def line(client: Client, path: str) -> dict[str, Any]:
    """Return the numbers of the only listed item; -2 while the item or its numbers are missing."""
    unknown = {"lag": -2, "clients": -2}
    items = api(client, path)["items"]
    return (items[0]["numbers"] or unknown) if items else unknown
