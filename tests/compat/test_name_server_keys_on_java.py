"""Key-value settings of Java name servers by REST, page and mqadmin, beside those of Gantry's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import gateway
from tests.api.conftest import Api, browser
from tests.api.test_pages import html
from tests.api.traffic import poll
from tests.client.mqadmin_runs import Mqadmin
from tests.compat import installing
from tests.compat.java_broker import JavaNameServer

PAGE = "/clusters/local/name-servers/keys/"
KEYS = "/name-server-keys"
NAMESPACE = "ORDER_TOPIC_CONFIG"
KEY = "orders"
#: Values that a header of the protocol must carry unchanged.
VALUES = ("broker-a:4;broker-b:4", 'a "b" = c\\n', "价格 €", "")


@pytest.fixture(params=installing.JAVA_BROKER_VERSIONS)
def java(
    request: pytest.FixtureRequest, tmp_path: Path, namesrv_addr: str, settings: Settings, db: None
) -> Iterator[JavaNameServer]:
    """A Java name server and a Gantry name server as one cluster without brokers."""
    try:
        server = JavaNameServer(request.param, tmp_path)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java name server {request.param}: {reason}")
    server.start()
    settings.CONSOLE_CLUSTERS = {"local": f"{server.addr};{namesrv_addr}"}
    yield server
    gateway.close()
    server.kill()


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("staff", password="staff-password")


class Keys:
    """The keys of a namespace, as the console shows them."""

    def __init__(self, api: Api, java_addr: str, gantry_addr: str) -> None:
        self.api = api
        self._addrs = (java_addr, gantry_addr)

    def become(self, *values: str | None, namespace: str = NAMESPACE) -> None:
        """Wait until the Java name server and Gantry's have these values of the key; without
        values, until the namespace is empty."""
        wanted = [[KEY, *values]] if values else []
        poll(lambda: self._read(namespace) == wanted)

    def _read(self, namespace: str) -> list[list[str | None]]:
        answer = self.api.get(f"{KEYS}?namespace={namespace}")
        if answer["failures"]:
            return [[str(answer["failures"])]]
        return [
            [row["key"], *(row["values"][addr] for addr in self._addrs)] for row in answer["items"]
        ]


@pytest.fixture
def keys(java: JavaNameServer, namesrv_addr: str, admin: User) -> Keys:
    return Keys(Api(admin), java.addr, namesrv_addr)


def test_keys_of_java_and_gantry_name_servers(
    java: JavaNameServer, admin: User, keys: Keys
) -> None:
    api, page, mqadmin = keys.api, browser(admin), Mqadmin(java.addr)
    body = {"namespace": NAMESPACE, "key": KEY}
    keys.become()
    for value in VALUES:
        changed = api("put", KEYS, body | {"value": value})
        assert changed.status_code == 200, changed.content
        keys.become(value, value)
    mqadmin("updateKvConfig", "-s", NAMESPACE, "-k", KEY, "-v", "broker-a:8")
    keys.become("broker-a:8", "")
    assert "differs" in html(page, PAGE)
    stale = api("put", KEYS, body | {"value": "x"}, **{"If-Match": '"0"'})
    assert stale.status_code == 412
    given = {"key": KEY, "value": "broker-a:2"}
    assert "This would change" in page.post(PAGE, given | {"preview": ""}).content.decode()
    assert page.post(PAGE, given | {"save": ""}).status_code == 302
    keys.become("broker-a:2", "broker-a:2")
    assert "broker-a:2" in mqadmin("updateOrderConf", "-t", KEY, "-m", "get").stdout
    mqadmin("deleteKvConfig", "-s", NAMESPACE, "-k", KEY)
    keys.become(None, "broker-a:2")
    assert api("delete", f"{KEYS}?namespace={NAMESPACE}&key={KEY}").status_code == 200
    keys.become()
    mqadmin("deleteKvConfig", "-s", "absent", "-k", "absent")
    assert api("delete", f"{KEYS}?namespace=absent&key=absent").status_code == 200
    assert api("put", KEYS, {"namespace": "PLAIN", "key": KEY, "value": "€"}).status_code == 200
    java.stop()
    java.start()
    keys.become("€", "€", namespace="PLAIN")
