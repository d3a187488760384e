"""Renewed and damaged certificates while a server runs."""

import asyncio
import shutil
import ssl
from pathlib import Path

import pytest

from core_broker.errors import TransportError
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_files import expires_at_s
from tests.unit.remoting.peers import port_of, until
from tests.unit.remoting.tls_peers import Tls, asked, copied


@pytest.mark.parametrize("has_new_key", [True, False])
async def test_reload(tls: Tls, tmp_path: Path, has_new_key: bool) -> None:
    """A renewed certificate is for new connections; open connections stay."""
    pair = copied(tls.files.server, tmp_path)
    server = await tls.server(
        tls.files.settings(tls_server_cert_path=pair.cert, tls_server_key_path=pair.key)
    )
    old = tls.client(tls.files.tls())
    await asked(old, server)
    renewed = tls.files.authority.issue("renewed", days=90, key="" if has_new_key else pair.key)
    copied(renewed, tmp_path)
    assert server.tls is not None
    await until(lambda: server.tls and server.tls.reloads)
    assert server.tls.expires_s == expires_at_s(renewed.cert)
    assert await seen_certificate(server) == Path(renewed.cert).read_text()
    await asked(old, server)
    assert server.counters.tls_opened == 2


@pytest.mark.parametrize("breakage", ["other key", "no PEM", "missing"])
async def test_a_broken_certificate_keeps_the_old_one(
    tls: Tls, tmp_path: Path, breakage: str, caplog: pytest.LogCaptureFixture
) -> None:
    pair = copied(tls.files.server, tmp_path)
    server = await tls.server(
        tls.files.settings(tls_server_cert_path=pair.cert, tls_server_key_path=pair.key)
    )
    if breakage == "other key":
        shutil.copy(tls.files.client.key, pair.key)
    elif breakage == "no PEM":
        Path(pair.cert).write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
    else:
        Path(pair.key).unlink()
    assert server.tls is not None
    await until(lambda: server.tls and server.tls.reload_failures)
    assert "keeping the TLS certificate in use" in caplog.text
    assert "tls.server." in server.tls.problem
    assert await seen_certificate(server) == Path(tls.files.server.cert).read_text()
    copied(tls.files.server, tmp_path)
    await until(lambda: server.tls and server.tls.reloads)
    assert server.tls.problem == ""


async def test_changed_clients_files_are_used_for_new_connections(tls: Tls, tmp_path: Path) -> None:
    server = await tls.server(tls.files.with_clients("require"))
    client = copied(tls.files.bad_client, tmp_path)
    settings = tls.files.tls(client)
    with pytest.raises(TransportError):
        await tls.asks(server, settings)
    copied(tls.files.client, tmp_path)
    await tls.asks(server, settings)


async def seen_certificate(server: RemotingServer) -> str:
    """The certificate of a new connection, as PEM."""
    context = ClientTls(auth_server=False).context()
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(server), ssl=context)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(der)
