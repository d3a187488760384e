"""The console on a cluster that accepts only TLS with a client certificate."""

from pathlib import Path

import pytest
from pytest_django import Settings

from console.gateway import ClusterUnreachable, gateway
from console.gateway.messages.send import Draft, MessageType, send
from console.gateway.overview import overview
from core_broker.client import ClientTls
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
