"""The replication port with TLS: copies, wrong certificates, plain bytes, peers off the list."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core_broker.ha import client as ha_client
from core_broker.ha.client import HaClient
from core_broker.ha.frames import encode_report
from core_broker.ha.master import ReplicationMaster
from core_broker.ha.status import SlaveState
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.replicas import log_bytes
from tests.support.stores import Bench, message

HOST = "127.0.0.1"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "another CA")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RETRY_S_MIN", "RETRY_S_MAX", "REFUSED_RETRY_S", "SEARCH_S"):
        monkeypatch.setattr(ha_client, name, 0.01)


def of_server(authority: Authority, mode: str, **others: Any) -> dict[str, Any]:
    pair = authority.issue("master")
    return {
        "tls_server_mode": mode,
        "tls_server_cert_path": pair.cert,
        "tls_server_key_path": pair.key,
        "ha_bind_address": HOST,
        "listen_port": 0,
        "ha_transfer_from_first_file": True,
        **others,
    }


def of_client(authority: Authority, **others: Any) -> dict[str, Any]:
    return {
        "ha_tls_enable": True,
        "tls_client_auth_server": True,
        "tls_client_trust_cert_path": authority.pair.cert,
        "tls_client_check_host_name": True,
        **others,
    }


@asynccontextmanager
async def master_with(folder: Path, **settings: Any) -> AsyncIterator[ReplicationMaster]:
    """A master with messages; its `_store` is the store."""
    bench = Bench(folder / "master", **settings).open()
    for number in range(50):
        bench.put(message(number, queue_id=number % 3, body=bytes(300)))
    master = ReplicationMaster(bench.store, lambda: bench.store.config)
    await master.start(0)
    try:
        yield master
    finally:
        await master.stop()


@asynccontextmanager
async def slave_with(
    folder: Path, master: ReplicationMaster, **settings: Any
) -> AsyncIterator[tuple[Bench, HaClient]]:
    bench = Bench(folder / "slave", broker_role="SLAVE", broker_id=1, **settings).open()
    store = bench.store

    async def agreed() -> None:
        """A comparison that finds nothing."""

    client = HaClient(
        store.replica,
        lambda: store.config,
        lambda: f"{HOST}:{master.port}",
        agreed,
        lambda: None,
        lambda: bench.now_ms,
    )
    task = asyncio.create_task(client.run())
    try:
        yield bench, client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def copied(master: ReplicationMaster, slave: Bench) -> None:
    store = master._store
    await eventually(lambda: slave.store.replica.end == store.max_offset_physical, WAIT_S)
    assert log_bytes(slave.store, 0) == log_bytes(store, 0)


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
async def test_a_slave_copies_over_tls(tmp_path: Path, authority: Authority, mode: str) -> None:
    pair = authority.issue("slave")
    certified = {
        "tls_server_need_client_auth": "require",
        "tls_server_auth_client": True,
        "tls_server_trust_cert_path": authority.pair.cert,
    }
    own = {"tls_client_cert_path": pair.cert, "tls_client_key_path": pair.key}
    async with (
        master_with(tmp_path, **of_server(authority, mode, **certified)) as master,
        slave_with(tmp_path, master, **of_client(authority, **own)) as (slave, client),
    ):
        await copied(master, slave)
        assert client.status.state is SlaveState.TRANSFERRING
        assert master._counters.tls_opened == 1


async def test_a_slave_without_tls_copies_where_permitted(
    tmp_path: Path, authority: Authority
) -> None:
    async with (
        master_with(tmp_path, **of_server(authority, "permissive")) as master,
        slave_with(tmp_path, master) as (slave, _),
    ):
        await copied(master, slave)


async def test_plain_bytes_are_refused_where_tls_is_enforced(
    tmp_path: Path, authority: Authority
) -> None:
    async with (
        master_with(tmp_path, **of_server(authority, "enforcing")) as master,
        slave_with(tmp_path, master) as (slave, client),
    ):
        await eventually(lambda: master.closings["plain"] >= 2, WAIT_S)
        assert slave.store.replica.is_empty
        assert client.status.state is SlaveState.WAITING


def refused_once_more(master: ReplicationMaster, client: HaClient) -> bool:
    """Whether the slave has failed, and the master has counted a failed handshake."""
    return client.status.problem not in {"", "the master is unknown"} and bool(
        master.closings["tls"]
    )


async def test_certificates_of_strangers_are_refused(
    tmp_path: Path, authority: Authority, stranger: Authority
) -> None:
    certified = {
        "tls_server_need_client_auth": "require",
        "tls_server_auth_client": True,
        "tls_server_trust_cert_path": authority.pair.cert,
    }
    foreign = stranger.issue("slave")
    wrong_slave = {"tls_client_cert_path": foreign.cert, "tls_client_key_path": foreign.key}
    async with master_with(tmp_path, **of_server(authority, "enforcing", **certified)) as master:
        problem = ""
        for number, settings in enumerate(
            (of_client(authority, **wrong_slave), of_client(authority), of_client(stranger))
        ):
            async with slave_with(tmp_path / str(number), master, **settings) as (slave, client):
                await eventually(partial(refused_once_more, master, client), WAIT_S)
                assert slave.store.replica.is_empty
                problem = client.status.problem
        assert "tls.client.trustCertPath" in problem
        assert not master.slaves


async def test_only_the_replication_port_asks_for_certificates(
    tmp_path: Path, authority: Authority
) -> None:
    """Whatever mode and certificates the broker's other ports ask for."""
    needed = of_server(
        authority,
        "permissive",
        ha_tls_need_client_auth=True,
        tls_server_trust_cert_path=authority.pair.cert,
    )
    pair = authority.issue("slave")
    own = {"tls_client_cert_path": pair.cert, "tls_client_key_path": pair.key}
    async with master_with(tmp_path, **needed) as master:
        for number, settings in enumerate((of_client(authority), {})):
            async with slave_with(tmp_path / str(number), master, **settings) as (slave, client):
                await eventually(partial(refused_once_more, master, client), WAIT_S)
                assert slave.store.replica.is_empty
        async with slave_with(tmp_path, master, **of_client(authority, **own)) as (slave, _):
            await copied(master, slave)


async def test_a_master_of_another_address_is_refused(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("elsewhere", names="IP:192.0.2.1,DNS:elsewhere.example")
    files = {"tls_server_cert_path": pair.cert, "tls_server_key_path": pair.key}
    async with (
        master_with(tmp_path, **(of_server(authority, "enforcing") | files)) as master,
        slave_with(tmp_path, master, **of_client(authority)) as (slave, client),
    ):
        await eventually(lambda: "no trust in its certificate" in client.status.problem, WAIT_S)
        assert slave.store.replica.is_empty


async def test_silent_handshakes_and_addresses_off_the_list(
    tmp_path: Path, authority: Authority
) -> None:
    listed = of_server(authority, "enforcing", ha_allowed_addresses="192.0.2.0/24")
    async with master_with(tmp_path / "listed", **listed) as master:
        reader, writer = await asyncio.open_connection(HOST, master.port)
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == b""
        writer.close()
        assert master.closings["refused"] == 1
    async with master_with(tmp_path, **of_server(authority, "enforcing")) as master:
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        halves = [await asyncio.open_connection(HOST, master.port) for _ in range(100)]
        for _, half in halves:
            half.write(hello)
        context = ssl.create_default_context(cafile=authority.pair.cert)
        _, writer = await asyncio.open_connection(HOST, master.port, ssl=context)
        writer.write(encode_report(0))
        await eventually(lambda: len(master.slaves) == 1, WAIT_S)
        for _, half in (*halves, (None, writer)):
            half.transport.abort()
