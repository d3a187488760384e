"""A cluster that accepts only connections with TLS and with a client certificate."""

import asyncio
from pathlib import Path

from core_broker.client import AdminClient, ClientTls, TopicConfig
from tests.support.certificates import Authority
from tests.support.cluster import Cluster


def tls_cluster(folder: Path) -> tuple[Cluster, str]:
    """Start the cluster; return it with a file of the TLS settings of its clients."""
    authority = Authority(folder / "ca")
    server, client = authority.issue("server"), authority.issue("client")
    both = {
        "tls_server_mode": "enforcing",
        "tls_server_cert_path": server.cert,
        "tls_server_key_path": server.key,
        "tls_server_need_client_auth": "require",
        "tls_server_auth_client": True,
        "tls_server_trust_cert_path": authority.pair.cert,
        "tls_client_auth_server": True,
        "tls_client_trust_cert_path": authority.pair.cert,
        "tls_client_cert_path": client.cert,
        "tls_client_key_path": client.key,
    }
    file = folder / "tls.properties"
    file.write_text(
        f"tls.client.trustCertPath={authority.pair.cert}\ntls.client.checkHostName=true\n"
        f"tls.client.certPath={client.cert}\ntls.client.keyPath={client.key}\n"
    )
    return Cluster(folder, both=both), str(file)


def make_topic(cluster: Cluster, file: str, topic: str) -> None:
    """Create a topic with one queue."""

    async def ask() -> None:
        async with AdminClient(cluster.namesrv_addr, tls=ClientTls.from_file(file)) as admin:
            config = TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1)
            await admin.create_topic(cluster.broker_addr, config)

    asyncio.run(ask())
