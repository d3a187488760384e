"""Key-value settings of name servers: preview, change, deletion, drift between name servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.audit.models import AuditRow
from core_broker.client import AdminClient
from tests.api.conftest import Api, browser
from tests.api.test_pages import html
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster, Program

PAGE = "/clusters/local/name-servers/keys/"
KEY = "orders"
VALUE = "broker-a:4"


@pytest.fixture
def second(local: Cluster, settings: Settings, tmp_path: Path) -> Iterator[Program]:
    """A second name server of the cluster."""
    server = Program("namesrv", tmp_path)
    server.start(
        {
            "listen_port": 0,
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": tmp_path / "kvConfig.json",
            "config_store_path": tmp_path / "namesrv.properties",
        }
    )
    addr = f"127.0.0.1:{server.port('remoting')}"
    settings.CONSOLE_CLUSTERS = {"local": f"{local.namesrv_addr};{addr}"}
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _without_key(traffic: Traffic) -> Iterator[None]:
    yield

    async def remove(admin: AdminClient) -> None:
        await admin.kv_delete("ORDER_TOPIC_CONFIG", KEY)

    traffic.admin(remove)


def test_a_key_is_previewed_set_on_all_name_servers_and_deleted(
    api: Api, second: Program, traffic: Traffic
) -> None:
    body = {"namespace": "ORDER_TOPIC_CONFIG", "key": KEY, "value": VALUE}
    empty = api("get", "/name-server-keys")
    assert empty.json()["items"] == []
    plan = api("put", "/name-server-keys?dry_run=1", body).json()
    assert [(each["before"], each["after"]) for each in plan["changes"]] == [(None, VALUE)] * 2
    assert api.get("/name-server-keys")["items"] == []
    assert api("put", "/name-server-keys", body).status_code == 200
    [row] = api.get("/name-server-keys")["items"]
    assert list(row["values"].values()) == [VALUE, VALUE]
    assert not row["differs"]
    outdated = api("put", "/name-server-keys", body, **{"If-Match": empty["ETag"]})
    assert outdated.status_code == 412

    async def change_one(admin: AdminClient) -> None:
        await admin.kv_put("ORDER_TOPIC_CONFIG", KEY, "broker-a:8", traffic.namesrv_addr)

    traffic.admin(change_one)
    page = browser(User.objects.get(username="staff"))
    shown = html(page, PAGE)
    assert "differs" in shown
    assert f"{traffic.namesrv_addr}: broker-a:8" in shown
    assert api("delete", f"/name-server-keys?key={KEY}").status_code == 200
    assert api.get("/name-server-keys")["items"] == []
    put, deleted = AuditRow.objects.filter(result="done").order_by("pk")
    assert (put.action, put.target) == ("name-server-key.put", f"ORDER_TOPIC_CONFIG/{KEY}")
    assert deleted.action == "name-server-key.delete"
    assert sorted((deleted.before or {}).values()) == [VALUE, "broker-a:8"]


def test_a_name_server_that_is_down_is_named(api: Api, second: Program) -> None:
    second.kill()
    body = {"namespace": "PLAIN", "key": KEY, "value": VALUE}
    answer = api("put", "/name-server-keys", body)
    assert answer.status_code == 207
    assert [bool(each["error"]) for each in answer.json()["outcomes"]] == [False, True]
    found = api.get("/name-server-keys?namespace=PLAIN")
    assert [each["key"] for each in found["items"]] == [KEY]
    assert len(found["failures"]) == 1
    assert api("delete", f"/name-server-keys?namespace=PLAIN&key={KEY}").status_code == 207


def test_the_page_previews_and_needs_an_administrator(
    page: Client, operator: User, local: Cluster
) -> None:
    given: dict[str, Any] = {"key": KEY, "value": VALUE}
    preview = page.post(PAGE, given | {"preview": ""}).content.decode()
    assert "This would change" in preview
    assert "No keys" in preview
    assert page.post(PAGE, given | {"save": ""}).status_code == 302
    assert VALUE in html(page, PAGE)
    deletion = page.post(PAGE, {"key": KEY, "delete": ""}).content.decode()
    assert "This would be deleted" in deletion
    assert VALUE in html(page, PAGE)
    assert page.post(PAGE, {"key": KEY, "delete": "1", "save": ""}).status_code == 302
    assert "No keys" in html(page, PAGE)
    assert browser(operator).post(PAGE, given | {"save": ""}).status_code == 403
    assert "Set or delete a key" not in html(browser(operator), PAGE)
