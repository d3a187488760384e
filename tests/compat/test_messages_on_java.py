"""The console's messages on Java brokers: send, browse, filter, find and live tail."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.areas.messages.tails import stop_tails
from console.gateway import gateway
from tests.api.conftest import browser
from tests.api.conftest import staff as staff  # noqa: PLC0414 - a fixture of these tests too
from tests.api.test_feed import is_, listening
from tests.api.traffic import Traffic, poll
from tests.compat import installing
from tests.compat.test_client_on_java import java_cluster, registered
from tests.compat.test_inventory_on_java import API, HOME, MINUS_ONE, WAIT_S, api

pytestmark = [
    pytest.mark.must_beat(1),
    pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200),
    pytest.mark.django_db(transaction=True),
]

LEVELS = " ".join(["1s"] * 18)
TIMER_LOG_BYTES = 4 * 1024 * 1024
SOON_MS = 3_000


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def java(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Settings
) -> Iterator[tuple[Traffic, bool]]:
    """Traffic on a broker, and whether the broker supports a delivery time."""
    with java_cluster(
        request.param,
        tmp_path,
        message_delay_level=LEVELS,
        timer_wheel_enable="true",
        mapped_file_size_timer_log=TIMER_LOG_BYTES,
    ) as addr:
        settings.CONSOLE_CLUSTERS = {"java": addr}
        traffic = Traffic(addr, asyncio.run(registered(addr)))
        try:
            yield traffic, request.param.startswith("5.")
        finally:
            traffic.close()
            gateway.close()


def test_all_ways_to_send_and_read_messages(java: tuple[Traffic, bool], staff: User) -> None:
    traffic, has_delivery_time = java
    client = browser(staff)
    topic = traffic.topic("java")
    poll(lambda: topic in traffic.admin(lambda admin: admin.topic_list()), WAIT_S)
    pages(client, topic, "")
    plain = sent_in_every_way(client, topic)
    at_a_time(client, topic, has_delivery_time)
    filtered(client, topic)
    found(client, topic, plain)
    pages(client, topic, plain["offset_msg_id"])
    asyncio.run(tailed(client, staff, topic))


def sent_in_every_way(client: Client, topic: str) -> dict[str, Any]:
    """Send messages of all types; return the plain one."""
    [plain] = send(client, topic, "plain", keys=["key-1", "key-2"], properties={"price": "12"})
    assert len(send(client, topic, "batched", count=3)) == 3
    ordered = [
        send(client, topic, "ordered", type="fifo", message_group="group-7")[0] for _ in "123"
    ]
    assert len({each["queue"] for each in ordered}) == 1
    send(client, topic, "kept", type="transaction")
    send(client, topic, "undone", type="transaction", outcome="rollback")
    send(client, topic, "later", type="delay", delay_level=1)
    expected = ["batched"] * 3 + ["kept", "later"] + ["ordered"] * 3 + ["plain"]
    poll(lambda: tags(client, topic) == expected, WAIT_S)
    return plain


def at_a_time(client: Client, topic: str, has_delivery_time: bool) -> None:
    """A broker with delay levels only would deliver at once, so the console refuses the send."""
    deliver_ms = int(time.time() * 1000) + SOON_MS
    message = {"topic": topic, "body": "at a moment", "tags": "moment"}
    draft = {**message, "type": "delay", "deliver_ms": deliver_ms}
    answer = client.post(f"{API}/messages", draft, content_type="application/json")
    if not has_delivery_time:
        assert answer.status_code == 409
        assert "not moments" in answer.json()["detail"]
        assert "moment" not in tags(client, topic)
        return
    assert answer.status_code == 201, answer.content
    poll(lambda: "moment" in tags(client, topic), WAIT_S)
    items = listed(client, topic, body="at a moment")
    assert items[0]["store_timestamp"] >= deliver_ms


def filtered(client: Client, topic: str) -> None:
    assert tags(client, topic, tags="plain || batched") == ["batched"] * 3 + ["plain"]
    assert tags(client, topic, sql="price > 10 AND TAGS = 'plain'") == ["plain"]
    assert tags(client, topic, sql="price > 12") == []
    tried = client.post(
        f"{API}/messages:test-filter",
        {"topic": topic, "sql": "price BETWEEN 1 AND 20"},
        content_type="application/json",
    ).json()
    assert (tried["valid"], tried["matched"]) == (True, 1)


def found(client: Client, topic: str, plain: dict[str, Any]) -> None:
    position = f"{topic}/{plain['queue'].rpartition(':')[2]}/{plain['queue_offset']}"
    for text in ("key-2", plain["msg_id"], plain["offset_msg_id"], position):

        def ids(text: str = text) -> list[str]:
            body = api(client, f"messages/find?{urlencode({'q': text, 'topic': topic})}")
            assert body["failures"] == []
            return [each["offset_msg_id"] for each in body["items"]]

        # Java brokers build the index asynchronously.
        assert poll(ids, WAIT_S) == [plain["offset_msg_id"]], text
    assert api(client, "messages/find?q=nobody-has-this-key")["items"] == []


def pages(client: Client, topic: str, offset_msg_id: str) -> None:
    query = f"?topic={topic}"
    paths = [
        *("messages/", f"messages/{query}", f"messages/{query}&sql=price+%3E+10&tags=plain"),
        *(f"messages/{query}&body=p&queue=broker-a:0", f"messages/send/{query}"),
        *(f"messages/find/?q=key-1&topic={topic}", f"search/?q={topic}", f"messages/tail/{query}"),
        *("messages/find/?q=nobody-has-this-key", f"messages/export/{query}"),
    ]
    if offset_msg_id:
        paths += [f"messages/{offset_msg_id}/", f"messages/send/?again={offset_msg_id}"]
    for path in paths:
        answer = client.get(f"{HOME}/{path}", follow=True)
        text = answer.content.decode()
        assert answer.status_code == 200, (path, text[:400])
        assert not MINUS_ONE.search(text), path


async def tailed(client: Client, staff: User, topic: str) -> None:
    address = f"/ws/clusters/java/messages/tail?{urlencode({'topic': topic, 'sql': 'price > 10'})}"
    try:
        async with await listening(staff, address) as socket:
            await socket.hear_until(is_("rows"))
            for price in ("9", "11"):
                await asyncio.to_thread(
                    send, client, topic, f"for-{price}", properties={"price": price}
                )
            pushed = await socket.hear_until(lambda message: bool(message.get("rows")))
            assert [row["preview"] for row in pushed["rows"]] == ["for-11"]
    finally:
        await stop_tails()


def send(client: Client, topic: str, tag: str, **draft: Any) -> list[dict[str, Any]]:
    """Send messages with the tag as tag and body; return the items of the response."""
    body = {"topic": topic, "tags": tag, "body": tag, **draft}
    answer = client.post(f"{API}/messages", body, content_type="application/json")
    assert answer.status_code == 201, (draft, answer.content[:400])
    items: list[dict[str, Any]] = answer.json()["items"]
    assert {each["status"] for each in items} == {"SEND_OK"}, items
    return items


def listed(client: Client, topic: str, **filters: str) -> list[dict[str, Any]]:
    body = api(client, f"messages?{urlencode({'topic': topic, **filters})}")
    assert body["failures"] == []
    assert body["unreadable"] == 0
    items: list[dict[str, Any]] = body["items"]
    return items


def tags(client: Client, topic: str, **filters: str) -> list[str]:
    """Return the tags of the listed messages, sorted."""
    return sorted(each["tags"] for each in listed(client, topic, **filters))
