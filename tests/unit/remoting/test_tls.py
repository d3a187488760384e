"""TLS of servers and clients: the cases of RocketMQ's TlsTest, under their names, and settings."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from core_broker.config import TlsSettings
from core_broker.errors import ClientError, ConnectFailed, SettingsError, TransportError
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls
from tests.unit.remoting.peers import until
from tests.unit.remoting.tls_peers import Files, Tls

# The cases of TlsTest.


async def test_basic(tls: Tls) -> None:
    server = await tls.server(tls.files.with_clients("require"))
    await tls.asks(server, tls.files.tls(tls.files.client))
    assert server.counters.tls_opened == 1


async def test_server_not_need_client_auth(tls: Tls) -> None:
    await tls.asks(await tls.server(tls.files.settings()), tls.files.tls())


async def test_server_want_client_auth_but_client_no_cert(tls: Tls) -> None:
    await tls.asks(await tls.server(tls.files.with_clients("optional")), tls.files.tls())


async def test_server_accepts_un_auth_client(tls: Tls) -> None:
    server = await tls.server(tls.files.settings(tls_server_need_client_auth="none"))
    await tls.asks(server, tls.files.tls(tls.files.bad_client))


async def test_server_rejects_ssl_client(tls: Tls) -> None:
    server = await tls.server(tls.files.settings(tls_server_mode="disabled"))
    with pytest.raises(TransportError):
        await tls.asks(server, tls.files.tls())
    assert server.tls is None
    await until(lambda: server.counters.malformed + server.counters.oversize)


@pytest.mark.parametrize("auth", ["require", "optional"])
async def test_server_rejects_untrusted_client_cert(tls: Tls, auth: str) -> None:
    server = await tls.server(tls.files.with_clients(auth))
    with pytest.raises(TransportError):
        await tls.asks(server, tls.files.tls(tls.files.bad_client))
    await until(lambda: server.counters.tls_failed)
    assert server.counters.tls_opened == 0


@pytest.mark.parametrize("auth", ["require", "optional"])
def test_server_accepts_untrusted_client_cert_is_refused_at_the_start(
    files: Files, auth: str
) -> None:
    """OpenSSL cannot ask for a certificate and accept any; silence would look like verification."""
    with pytest.raises(SettingsError, match=r"tls\.server\.authClient=true"):
        ServerTls(files.settings(tls_server_need_client_auth=auth), "server")


async def test_no_client_auth_failure(tls: Tls) -> None:
    server = await tls.server(tls.files.with_clients("require"))
    with pytest.raises(TransportError):
        await tls.asks(server, tls.files.tls())
    assert server.counters.opened == 0


async def test_client_rejects_untrusted_server_cert(tls: Tls) -> None:
    cert, key = tls.files.bad_server
    server = await tls.server(
        tls.files.settings(tls_server_cert_path=cert, tls_server_key_path=key)
    )
    with pytest.raises(ConnectFailed, match=r"no trust in its cert.*tls\.client\.trustCertPath"):
        await tls.asks(server, tls.files.tls())


async def test_client_accepts_untrusted_server_cert(tls: Tls) -> None:
    cert, key = tls.files.bad_server
    server = await tls.server(
        tls.files.settings(tls_server_cert_path=cert, tls_server_key_path=key)
    )
    await tls.asks(server, tls.files.tls(auth_server=False))


async def test_config_through_file(tls: Tls, tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    cert, key = tls.files.authority.issue("encrypted", password="secret")
    file.write_text(
        f"tls.test.mode.enable=false\ntls.server.certPath={cert}\ntls.server.keyPath={key}\n"
        f"tls.server.keyPassword=secret\ntls.server.need.client.auth=require\n"
        f"tls.server.authClient=true\ntls.server.trustCertPath={tls.files.ca}\n"
        f"tls.client.certPath={tls.files.client.cert}\ntls.client.keyPath={tls.files.client.key}\n"
        f"tls.client.authServer=true\ntls.client.trustCertPath={tls.files.ca}\n"
    )
    settings = TlsSettings(tls_config_file=str(file))
    await tls.asks(await tls.server(settings), ClientTls.of(settings, {}))


# The test mode, and settings of no use.


async def test_the_test_mode_makes_a_certificate_and_says_so(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    server = await tls.server(TlsSettings(tls_config_file=""))
    await tls.asks(server, None)
    assert "TLS TEST MODE" not in caplog.text
    clients = [tls.files.tls(auth_server=False)] * 3
    await asyncio.gather(*(tls.asks(server, client) for client in clients))
    assert caplog.text.count("TLS TEST MODE") == 1


async def test_without_a_certificate_tls_is_refused_with_the_setting(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    server = await tls.server(tls.files.settings(tls_server_cert_path="", tls_server_key_path=""))
    with pytest.raises(TransportError):
        await tls.asks(server, tls.files.tls())
    await tls.asks(server, None)
    assert server.counters.tls_unavailable
    assert "see tls.server.certPath" in caplog.text


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tls_server_key_path": ""}, r"tls\.server\.keyPath"),
        ({"tls_server_cert_path": ""}, r"tls\.server\.certPath"),
        ({"tls_server_cert_path": "/nowhere.pem"}, r"tls\.server\.certPath.*No such file"),
        ({"tls_server_trust_cert_path": "/nowhere.pem"}, r"tls\.server\.trustCertPath"),
        ({"tls_config_file": "/nowhere.properties"}, r"tls\.config\.file.*no such file"),
        ({"tls_server_cert_path": "", "tls_server_key_path": ""}, "mode is enforcing"),
    ],
)
def test_files_of_no_use_end_the_start(files: Files, settings: dict[str, str], named: str) -> None:
    enforcing: Any = {"tls_server_mode": "enforcing"}
    with pytest.raises(SettingsError, match=named):
        ServerTls(files.with_clients("require", **(enforcing | settings)), "server")


def test_an_encrypted_key_needs_its_password(files: Files) -> None:
    cert, key = files.authority.issue("locked", password="secret")
    with pytest.raises(SettingsError, match=r"tls\.server\.keyPassword in tls\.config\.file"):
        ServerTls(files.settings(tls_server_cert_path=cert, tls_server_key_path=key), "server")


def test_a_client_names_its_unusable_file(files: Files) -> None:
    with pytest.raises(ClientError, match=r"tls\.client\.trustCertPath"):
        ClientTls(trust_cert_path="/nowhere.pem").context()


async def test_host_names_are_compared_on_request(tls: Tls) -> None:
    server = await tls.server(tls.files.settings())
    await tls.asks(server, tls.files.tls(check_host_name=True))
    nameless = tls.files.authority.issue("nameless", names="DNS:elsewhere")
    other = await tls.server(
        tls.files.settings(tls_server_cert_path=nameless.cert, tls_server_key_path=nameless.key)
    )
    await tls.asks(other, tls.files.tls())
    with pytest.raises(ConnectFailed, match="no trust in its certificate"):
        await tls.asks(other, tls.files.tls(check_host_name=True))


def test_the_end_of_validity_is_warned_about(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    server = ServerTls(files.settings(), "server")
    assert server.expires_s is not None
    for days in (29.5, 29.0, 6.5, 0.5, 0.4, -1.0, -2.0):
        server._warn_of_expiry(server.expires_s - days * 86_400)
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition("certificate ")[2] for text in texts] == [
        "expires in 29.5 days",
        "expires in 6.5 days",
        "expires in 0.5 days",
        "has expired",
    ]
