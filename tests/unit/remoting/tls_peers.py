"""Certificates, servers and clients with TLS for remoting tests."""

import shutil
from pathlib import Path
from typing import Any

from core_broker.config import TlsSettings
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.server import RemotingServer
from core_broker.remoting.tls_client import ClientTls
from core_broker.remoting.tls_server import ServerTls
from tests.support.certificates import Authority, Pair
from tests.unit.remoting.peers import DEADLINE_S, Loopback, addr_of, echo

BODY = bytes(range(256)) * 4
TIMEOUT_MS = DEADLINE_S * 1000


class Files:
    """A CA with certificates, and another, untrusted CA."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder / "ca")
        self.other = Authority(folder / "other", "other CA")
        self.ca = self.authority.pair.cert
        self.server = self.authority.issue("server")
        self.client = self.authority.issue("client")
        self.bad_server = self.other.issue("server")
        self.bad_client = self.other.issue("client")

    def settings(self, **settings: Any) -> TlsSettings:
        """A server with a certificate; keyword arguments have precedence."""
        values: dict[str, Any] = {
            "tls_config_file": "",
            "tls_test_mode_enable": False,
            "tls_server_cert_path": self.server.cert,
            "tls_server_key_path": self.server.key,
        }
        return TlsSettings(**(values | settings))

    def with_clients(self, auth: str, **settings: Any) -> TlsSettings:
        """A server that verifies certificates of clients."""
        values = {
            "tls_server_need_client_auth": auth,
            "tls_server_auth_client": True,
            "tls_server_trust_cert_path": self.ca,
        }
        return self.settings(**(values | settings))

    def tls(self, pair: Pair | None = None, **options: Any) -> ClientTls:
        """A client that verifies the server."""
        cert, key = pair or ("", "")
        return ClientTls(
            **{"trust_cert_path": self.ca, "cert_path": cert, "key_path": key} | options
        )


class Tls:
    """Makes servers and clients with TLS."""

    def __init__(self, loopback: Loopback, files: Files) -> None:
        self.loopback = loopback
        self.files = files

    async def server(self, settings: TlsSettings, **options: Any) -> RemotingServer:
        options.setdefault("dispatch", echo)
        return await self.loopback.server(tls=ServerTls(settings, "server"), **options)

    def client(self, tls: ClientTls | None) -> RemotingClient:
        return self.loopback.client(tls=tls, connect_timeout_ms=int(TIMEOUT_MS))

    async def asks(self, server: RemotingServer, tls: ClientTls | None) -> None:
        """Send a request and compare the answer."""
        await asked(self.client(tls), server)


async def asked(client: RemotingClient, server: RemotingServer, body: bytes = BODY) -> None:
    answer = await client.invoke(
        addr_of(server), RemotingCommand.request(1, None, body), TIMEOUT_MS
    )
    assert answer.body == body


def copied(pair: Pair, folder: Path) -> Pair:
    """Copy a pair over the files of an earlier one."""
    copy = Pair(str(folder / "cert.pem"), str(folder / "key.pem"))
    shutil.copy(pair.cert, copy.cert)
    if pair.key != copy.key:
        shutil.copy(pair.key, copy.key)
    return copy
