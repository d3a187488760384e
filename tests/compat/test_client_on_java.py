"""Gantry's client on Java brokers: the client's own tests must have the same outcome.

The tests of tests/client with the mark ``on_java`` run in a separate process, against a Java broker
under Gantry's name server. Java brokers with access control must accept the client's signature.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core_broker.client import (
    AclRpcHook,
    AdminClient,
    Message,
    Producer,
    PullConsumer,
    SendStatus,
    TopicConfig,
)
from core_broker.errors import RequestRefused
from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.support.cluster import ROOT, Program
from tests.support.eventually import eventually

SECONDS_MAX = 150
#: Eighteen delay levels of one second, so that a dead letter takes seconds instead of hours.
SHORT_DELAYS = " ".join(["1s"] * 18)

ACCESS_KEY, SECRET_KEY = "RocketMQ", "12345678"
#: Accounts file of ACL 1.0; ACL 2.0 reads the account from its settings.
ACCOUNTS = f"""
globalWhiteRemoteAddresses: []
accounts:
- accessKey: {ACCESS_KEY}
  secretKey: '{SECRET_KEY}'
  admin: true
"""
_AUTH = "org.apache.rocketmq.auth.authentication.provider"
WITH_ACCESS_CONTROL: dict[str, dict[str, str]] = {
    "4.9.7": {"acl_enable": "true"},
    "5.3.3": {
        "authentication_enabled": "true",
        "authentication_provider": f"{_AUTH}.DefaultAuthenticationProvider",
        "authentication_metadata_provider": f"{_AUTH}.LocalAuthenticationMetadataProvider",
        "init_authentication_user": f'{{"username":"{ACCESS_KEY}","password":"{SECRET_KEY}"}}',
    },
}

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + SECONDS_MAX + 60)


@contextmanager
def java_cluster(version: str, folder: Path, **settings: Any) -> Iterator[str]:
    """Run a Java broker under Gantry's name server; yield the address of the name server."""
    try:
        installing.java_broker_classpath(version)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker {version}: {reason}")
    namesrv = Program("namesrv", folder)
    namesrv.start(
        {
            "listen_port": 0,
            "http_port": 0,
            "bind_address": "127.0.0.1",
            "kv_config_path": folder / "kvConfig.json",
            "config_store_path": folder / "namesrv.properties",
        }
    )
    try:
        addr = f"127.0.0.1:{namesrv.port('remoting')}"
        broker = JavaBroker(version, folder, folder / "store", addr, **settings)
        (folder / f"java-{version}" / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
        try:
            broker.start()
            asyncio.run(registered(addr))
            yield addr
        finally:
            broker.kill()
    finally:
        namesrv.stop()


async def registered(addr: str) -> str:
    """Wait until the broker serves admin requests; return the broker's address.

    A Java broker prints its ready line before the name server has registered the broker. Brokers
    without access control ignore the signature.
    """
    async with AdminClient(addr, rpc_hooks=[AclRpcHook(ACCESS_KEY, SECRET_KEY)]) as admin:

        async def is_known() -> bool:
            return bool((await admin.cluster_info()).broker_addr_table)

        await eventually(is_known, timeout_s=90)
        (broker,) = (await admin.cluster_info()).broker_addr_table.values()
        broker_addr = broker.master_addr
        assert broker_addr is not None

        async def has_rates() -> bool:
            """Until the broker has sampled its rates once, GET_BROKER_RUNTIME_INFO fails."""
            try:
                await admin.runtime_info(broker_addr)
            except RequestRefused as refused:
                return "NoSuchElementException" not in str(refused)
            return True

        await eventually(has_rates, timeout_s=90)
    return broker_addr


@pytest.mark.parametrize("version", installing.JAVA_BROKER_VERSIONS)
def test_the_client_does_there_what_it_does_here(version: str, tmp_path: Path) -> None:
    settings = {
        "message_delay_level": SHORT_DELAYS,
        "enable_property_filter": "true",
        "transaction_time_out": "3000",
        "transaction_check_interval": "500",
        # RocketMQ 5 batches op messages for up to 3 s, and checks the ended transactions meanwhile.
        "transaction_op_batch_interval": "50",
    }
    with java_cluster(version, tmp_path, **settings) as addr:
        run_marked_tests(addr)


def run_marked_tests(namesrv_addr: str) -> None:
    """Run the tests; a failure fails this test with the output of the run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/client", "-m", "on_java", "-q", "-n", "0"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "CLIENT_TEST_NAMESRV": namesrv_addr},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("version", installing.JAVA_BROKER_VERSIONS)
def test_a_broker_with_access_control_accepts_our_signature(version: str, tmp_path: Path) -> None:
    with java_cluster(version, tmp_path, **WITH_ACCESS_CONTROL[version]) as addr:
        asyncio.run(sign_well_and_badly(addr))


async def sign_well_and_badly(addr: str) -> None:
    signing = AclRpcHook(ACCESS_KEY, SECRET_KEY)
    broker_addr = await registered(addr)
    async with AdminClient(addr, rpc_hooks=[signing]) as admin:
        await admin.create_topic(broker_addr, TopicConfig(topic_name="Signed"))

        async def routed() -> bool:
            return "Signed" in await admin.topic_list()

        await eventually(routed, timeout_s=90)
    async with Producer("PG", addr, rpc_hooks=[signing]) as producer:
        message = Message("Signed", "with all: ä€😀".encode(), keys="k", properties={"ä": "€"})
        single = await producer.send(message)
        batch = await producer.send_batch([Message("Signed", b"1"), Message("Signed", b"2")])
        assert {single.status, batch.status} == {SendStatus.SEND_OK}
    async with PullConsumer("CG", addr, rpc_hooks=[signing]) as consumer:
        pulled = await consumer.pull(single.queue, single.queue_offset)
        assert pulled.messages[0].body == message.body
        await consumer.commit(single.queue, 1)
    for hooks in ([], [AclRpcHook(ACCESS_KEY, "not the secret")], [AclRpcHook("nobody-x", "s")]):
        async with Producer("PG", addr, rpc_hooks=hooks) as producer:
            with pytest.raises(RequestRefused):
                await producer.send(message)
