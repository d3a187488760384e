"""The console on a cluster that accepts only TLS with a client certificate."""

import asyncio
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from pytest_django import Settings

from console.gateway import ClusterUnreachable, gateway
from console.gateway.messages.send import Draft, MessageType, send
from console.gateway.overview import overview
from core_broker.client import ClientTls
from core_broker.remoting.tls_client import server_certificate_expiry_s
from core_broker.remoting.tls_files import expires_at_s
from tests.api.conftest import Api, browser
from tests.support.certificates import Authority
from tests.support.cluster import Cluster, Program
from tests.support.tls_cluster import make_topic, tls_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]


def test_pages_and_sends_use_the_clusters_tls_file(tmp_path: Path, settings: Settings) -> None:
    cluster, file = tls_cluster(tmp_path)
    with cluster:
        settings.CONSOLE_CLUSTERS = {"tls": cluster.namesrv_addr, "plain": cluster.namesrv_addr}
        settings.CONSOLE_CLUSTER_TLS = {"tls": ClientTls.from_file(file)}
        make_topic(cluster, file, "Encrypted")
        try:
            page = gateway.cluster("tls").ask(overview)
            assert not page.failures
            for kind in (MessageType.NORMAL, MessageType.TRANSACTION):
                draft = Draft("Encrypted", b"body", type=kind, trace=True)
                assert len(gateway.cluster("tls").do(send, draft)) == 1
            with pytest.raises(ClusterUnreachable):
                gateway.cluster("plain").ask(overview)
        finally:
            gateway.close()


def test_the_end_of_the_certificate_is_on_the_brokers_page(
    tmp_path: Path, settings: Settings, staff: User
) -> None:
    """The certificate of the cluster is valid for 30 days: the page warns."""
    cluster, file = tls_cluster(tmp_path)
    with cluster:
        settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
        settings.CONSOLE_CLUSTER_TLS = {"local": ClientTls.from_file(file)}
        try:
            (broker,) = Api(staff).get("/brokers")["items"]
            (process,) = Api(staff).get(f"/brokers/{broker['name']}")["processes"]
            expiry_ms = expires_at_s(str(tmp_path / "ca/server.pem")) * 1000
            assert process["runtime"]["gantryTlsMode"] == "enforcing"
            assert int(process["runtime"]["gantryTlsExpiryTimestamp"]) == expiry_ms
            path = reverse("clusters:broker", args=["local", broker["name"]])
            page = browser(staff).get(path).content.decode()
            assert "End of the TLS certificate's validity:" in page
            assert page.count(f'data-ms="{expiry_ms:.0f}"') == 2
            (server,) = Api(staff).get("/name-servers")["items"]
            found = (server["certificate_expiry_ms"], server["certificate"])
            assert found == (expiry_ms, "expires-soon")
            page = browser(staff).get("/clusters/local/name-servers/").content.decode()
            assert f'data-ms="{expiry_ms:.0f}"' in page
            assert "expires soon" in page
        finally:
            gateway.close()


def test_an_expired_certificate_of_a_name_server_is_named(
    tmp_path: Path, settings: Settings, staff: User
) -> None:
    """The console refuses to connect, and the page names the reason."""
    authority = Authority(tmp_path)
    server = authority.issue("server", days=-1)
    namesrv = Program("namesrv", tmp_path)
    namesrv.start(
        {
            "listen_port": 0,
            "tls_server_mode": "enforcing",
            "tls_server_cert_path": server.cert,
            "tls_server_key_path": server.key,
        }
    )
    try:
        settings.CONSOLE_CLUSTERS = {"local": f"127.0.0.1:{namesrv.port('remoting')}"}
        settings.CONSOLE_CLUSTER_TLS = {"local": ClientTls(trust_cert_path=authority.pair.cert)}
        (shown,) = Api(staff).get("/name-servers")["items"]
        assert shown["certificate"] == "expired"
        assert shown["certificate_expiry_ms"] == expires_at_s(server.cert) * 1000
        assert "expired" in shown["failure"]
        page = browser(staff).get("/clusters/local/name-servers/").content.decode()
        assert "expired</span>" in page
    finally:
        gateway.close()
        namesrv.stop()


def test_a_server_without_tls_has_no_certificate(local: Cluster) -> None:
    tls = ClientTls(auth_server=False)
    for addr in (local.namesrv_addr, "127.0.0.1:1", "no.such.host.invalid:1", "nonsense"):
        found = asyncio.run(server_certificate_expiry_s(addr, tls, 10))
        assert addr == local.namesrv_addr or found is None, addr
