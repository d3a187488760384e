"""The console shows the accounts of connected clients."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from pytest_django import Settings

from console.gateway.engine.loop import GatewayLoop
from core_broker.client import AclRpcHook, Message, Producer
from core_broker.client.admin import AdminClient
from core_broker.remoting.bodies import TopicConfig
from tests.api.conftest import Api, browser
from tests.api.traffic import WAIT_S, poll
from tests.support.cluster import Cluster
from tests.support.secured_cluster import ROOT, secured_cluster

HOOK = AclRpcHook(ROOT.access_key, ROOT.secret_key)
KEYS = {"access_key": ROOT.access_key, "secret_key": ROOT.secret_key}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
def producer(secured: Cluster) -> Iterator[str]:
    """The group of a connected producer that signs as ROOT."""
    loop = GatewayLoop()

    async def start() -> Producer:
        async with AdminClient(secured.namesrv_addr, rpc_hooks=[HOOK]) as admin:
            await admin.create_topic(secured.broker_addr, TopicConfig(topic_name="orders"))
        producer = Producer("PG-orders", secured.namesrv_addr, rpc_hooks=[HOOK])
        await producer.start()
        await producer.send(Message("orders", b"1"))
        return producer

    started = loop.wait(start(), WAIT_S)
    yield "PG-orders"
    loop.wait(started.stop(), WAIT_S)
    loop.stop()


def test_a_client_with_its_account(
    secured: Cluster, producer: str, staff: User, settings: Settings
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": secured.namesrv_addr}
    api, page = Api(staff), browser(staff)
    assert api("put", "/credentials", KEYS).status_code == 200
    (client,) = poll(lambda: api.get(f"/clients?q={producer}")["items"])
    assert client["accounts"] == [ROOT.access_key]
    # The account is searched, too.
    assert api.get(f"/clients?q={producer}+{ROOT.access_key}")["total"] == 1
    listed = reverse("clients:list", args=["local"]) + f"?q={producer}&columns=accounts"
    for path in (listed, reverse("clients:detail", args=["local", client["client_id"]])):
        text = page.get(path).content.decode().partition("<main")[2]
        assert f">{ROOT.access_key}</" in text, path
        assert "No broker reports an account" not in text, path
