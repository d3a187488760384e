"""TLS between Gantry and Apache's programs, in both directions.

Servers in the mode `enforcing` refuse connections without TLS: a message that arrives with them has
passed through TLS on every connection. The newest version of each program runs in all modes, the
older one in the mode with the most steps; with `ACCESS_CHECKS=all`, both run in all modes.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import AdminClient, ClientTls, Message, Producer, PullConsumer, TopicConfig
from tests.compat import installing
from tests.compat.conftest import COMMANDS, require
from tests.compat.foreign import ForeignClient
from tests.compat.java_broker import SHORT_LIFE, JavaBroker, JavaNameServer
from tests.support.certificates import Authority, Pair
from tests.support.cluster import ROOT, Cluster
from tests.support.eventually import eventually

TOPIC = "Encrypted"
JAVA_KINDS = ("java", "java5")
MODES = ("test mode", "CA", "client certificate")
#: tls.server.mode -> the log about a refused client.
SERVER_MODES = {
    "disabled": "a TLS ClientHello",
    "permissive": "",
    "enforcing": "tls.server.mode is enforcing",
}

EVERY = os.environ.get("ACCESS_CHECKS") == "all"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


def pairs(versions: Sequence[str], modes: Iterable[str], longest: str) -> list[tuple[str, str]]:
    """Versions, the newest is the last one, and modes; the older versions in the longest mode."""
    return [
        (version, mode)
        for version in versions
        for mode in modes
        if EVERY or version == versions[-1] or mode == longest
    ]


class Certificates:
    """One CA, a certificate for servers and one for clients."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.ca = authority.pair.cert
        self.server: Pair = authority.issue("server")
        self.client: Pair = authority.issue("client")

    def server_options(self, mode: str) -> dict[str, str]:
        """The settings of a server, by key."""
        if mode == "test mode":
            return {"tls.server.mode": "enforcing"}
        options = {
            "tls.server.mode": "enforcing",
            "tls.test.mode.enable": "false",
            "tls.server.certPath": self.server.cert,
            "tls.server.keyPath": self.server.key,
        }
        if mode == "client certificate":
            options |= {
                "tls.server.need.client.auth": "require",
                "tls.server.authClient": "true",
                "tls.server.trustCertPath": self.ca,
            }
        return options

    def client_options(self, mode: str) -> dict[str, str]:
        """The settings of a client, by key."""
        if mode == "test mode":
            return {"tls.enable": "true"}
        options = {
            "tls.enable": "true",
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": self.ca,
        }
        if mode == "client certificate":
            options |= {
                "tls.client.certPath": self.client.cert,
                "tls.client.keyPath": self.client.key,
            }
        return options


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def gantry(stack: ExitStack, folder: Path, options: dict[str, str]) -> Cluster:
    """Gantry's name server and broker; the broker registers with TLS."""
    both = {attribute(key): value for key, value in (options | {"tls.config.file": ""}).items()}
    return stack.enter_context(Cluster(folder, both=both))


def java(stack: ExitStack, kind: str, folder: Path, options: dict[str, str]) -> ForeignClient:
    """A Java client with system properties."""
    require(kind)
    home = folder / f"{kind}-{len(list(folder.iterdir()))}"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "JAVA_TOOL_OPTIONS": " ".join(jvm(options))}
    client = ForeignClient(COMMANDS[kind](environment), environment, home / "client.log")
    stack.callback(client.kill)
    return client


@pytest.mark.parametrize(("kind", "mode"), pairs(JAVA_KINDS, MODES, "client certificate"))
def test_a_java_client_speaks_tls_with_gantry(
    kind: str, mode: str, certificates: Certificates, stack: ExitStack, tmp_path: Path
) -> None:
    options = certificates.client_options(mode)
    cluster = gantry(stack, tmp_path, certificates.server_options(mode) | options)
    producer = java(stack, kind, tmp_path, options)
    round_trip(cluster, producer, java(stack, kind, tmp_path, options))
    arguments = ["topicRoute", "-n", cluster.namesrv_addr, "-t", TOPIC]
    producer.command("mqadmin", arguments=arguments)
    assert "brokerDatas" in producer.wait_for("printed")[0]["text"]


@pytest.mark.parametrize(("kind", "server_mode"), pairs(JAVA_KINDS, SERVER_MODES, "enforcing"))
def test_the_server_mode_decides_who_is_served(
    kind: str, server_mode: str, certificates: Certificates, stack: ExitStack, tmp_path: Path
) -> None:
    """Clients with and without TLS; of the permissive mode, one of each on the same ports."""
    options = certificates.server_options("CA") | {"tls.server.mode": server_mode}
    cluster = gantry(stack, tmp_path, options)
    plain: dict[str, str] = {}
    encrypted = certificates.client_options("CA")
    if server_mode == "permissive":
        producer, consumer = (java(stack, kind, tmp_path, each) for each in (plain, encrypted))
        round_trip(cluster, producer, consumer)
        return
    served, refused = (plain, encrypted) if server_mode == "disabled" else (encrypted, plain)
    client = java(stack, kind, tmp_path, refused)
    client.command("mqadmin", arguments=["clusterList", "-n", cluster.namesrv_addr])
    printed = client.wait_for("printed", seconds=60)[0]["text"]
    assert "broker-a" not in printed
    reason = SERVER_MODES[server_mode]
    client.wait_until(lambda: reason in cluster.namesrv.printed, reason, 60)
    producer, consumer = (java(stack, kind, tmp_path, served) for _ in range(2))
    round_trip(cluster, producer, consumer)


@pytest.mark.parametrize(
    ("version", "mode"), pairs(installing.JAVA_BROKER_VERSIONS, MODES, "client certificate")
)
def test_gantrys_programs_speak_tls_with_java_servers(
    version: str, mode: str, certificates: Certificates, stack: ExitStack, tmp_path: Path
) -> None:
    """Client, mqadmin and broker of Gantry at a name server and a broker of Apache."""
    options = certificates.server_options(mode) | certificates.client_options(mode)
    namesrv_addr = java_namesrv(stack, version, tmp_path, options)
    broker = JavaBroker(
        version, tmp_path, tmp_path / "store", namesrv_addr, jvm=(*SHORT_LIFE, *jvm(options))
    )
    stack.callback(broker.kill)
    broker.start()
    tls = ClientTls(auth_server=False)
    if mode != "test mode":
        tls = ClientTls(trust_cert_path=certificates.ca)
    if mode == "client certificate":
        cert, key = certificates.client
        tls = ClientTls(trust_cert_path=certificates.ca, cert_path=cert, key_path=key)
    asyncio.run(sent_and_pulled(namesrv_addr, tls))
    printed = mqadmin(certificates.client_options(mode), "clusterList", "-n", namesrv_addr)
    assert "broker-a" in printed


@pytest.mark.parametrize("version", installing.JAVA_BROKER_VERSIONS)
def test_gantrys_broker_registers_at_a_java_name_server(
    version: str, certificates: Certificates, stack: ExitStack, tmp_path: Path
) -> None:
    mode = "client certificate"
    namesrv_addr = java_namesrv(stack, version, tmp_path, certificates.server_options(mode))
    options = certificates.server_options("CA") | certificates.client_options(mode)
    both = {attribute(key): value for key, value in options.items()}
    stack.enter_context(Cluster(tmp_path, both=both, namesrv_addr=namesrv_addr))

    async def is_registered() -> bool:
        printed = mqadmin(certificates.client_options(mode), "clusterList", "-n", namesrv_addr)
        return "broker-a" in printed

    asyncio.run(eventually(is_registered, timeout_s=60))


def round_trip(cluster: Cluster, producer: ForeignClient, consumer: ForeignClient) -> None:
    """Send messages, large ones too, and consume them."""
    bodies = ["small", "x" * 100_000, "last"]
    producer.command("produce", namesrv=cluster.namesrv_addr, group="PG-tls")
    producer.wait_for("ready")
    producer.send(TOPIC, [{"body": bodies[0]}])
    consumer.command(
        "consume", namesrv=cluster.namesrv_addr, group="CG-tls", topic=TOPIC, expression="*"
    )
    consumer.wait_for("ready")
    producer.send(TOPIC, [{"body": body} for body in bodies[1:]])
    consumer.wait_until(
        lambda: {*bodies[1:]} <= {each["body"] for each in consumer.messages}, "all bodies", 60
    )


def java_namesrv(stack: ExitStack, version: str, folder: Path, options: dict[str, str]) -> str:
    """Start a name server of Apache; return its address."""
    try:
        installing.java_broker_classpath(version)
        program = JavaNameServer(version, folder, jvm=(*SHORT_LIFE, *jvm(options)))
    except installing.CannotInstall as reason:
        pytest.skip(f"Java name server {version}: {reason}")
    stack.callback(program.kill)
    program.start()
    return program.addr


async def sent_and_pulled(namesrv_addr: str, tls: ClientTls) -> None:
    body = os.urandom(200_000)
    async with AdminClient(namesrv_addr, tls=tls) as admin:
        deadline = asyncio.get_running_loop().time() + 60
        while not (brokers := (await admin.cluster_info()).broker_addr_table):
            assert asyncio.get_running_loop().time() < deadline, "the broker did not register"
            await asyncio.sleep(0.2)
        addr = next(iter(brokers.values())).broker_addrs[0]
        await admin.create_topic(addr, TopicConfig(topic_name=TOPIC))
    async with Producer("PG-tls", namesrv_addr, tls=tls) as producer:
        sent = await producer.send(Message(TOPIC, body), timeout_ms=20_000)
    async with PullConsumer("CG-tls", namesrv_addr, tls=tls) as consumer:
        found = await consumer.pull(sent.queue, sent.queue_offset)
        assert [each.body for each in found.messages] == [body]


def mqadmin(options: dict[str, str], *arguments: str) -> str:
    """Run Gantry's mqadmin with settings from the environment; return the output."""
    variables = {
        f"ROCKETMQ_{key.replace('.', '_').upper()}": value for key, value in options.items()
    }
    done = subprocess.run(
        [sys.executable, "-m", "core_broker.mqadmin", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return done.stdout + done.stderr


def jvm(options: dict[str, Any]) -> list[str]:
    return [f"-D{key}={value}" for key, value in options.items()]


def attribute(key: str) -> str:
    """The attribute of a TLS key: tls_server_key_path for tls.server.keyPath."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key).replace(".", "_")
