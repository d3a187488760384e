"""Access control and TLS of a secured home folder: keys, certificates, settings of the programs.

conf/tools.yml    keys of a super user of all servers, as RocketMQ's file of this name
conf/tls/         certificates (`certificates.py`), and the TLS settings of servers and clients
conf/client.env   variables for mqadmin and Python clients, written at every start
conf/clients.txt  settings of clients in other languages, written at every start

Broker, name server and controllers use ACL 2.0 and accept only TLS; replicas copy over TLS. The
other files are made once and kept, and the folder stays secured: later starts need no option.
"""

import json
import secrets
import shlex
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from console.launcher.client_guide import client_guide
from console.launcher.errors import EXIT_USAGE, StartError
from core_broker.durable_files import replace_file
from core_broker.errors import ClientError

if TYPE_CHECKING:
    from core_broker.client import Credentials

#: Names of a server that listens on one machine only.
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
USERNAME: Final = "admin"
SECRET_BYTES: Final = 24

#: Failed attempts of an account from one address in a minute before the back-off: more than a
#: client with a wrong key makes at its start, far fewer than a search for a key needs.
FAILURES_MAX: Final = 20
#: Settings of all servers, unless the operator sets the variables.
SERVER_DEFAULTS: Final = {
    "ROCKETMQ_TLS_SERVER_MODE": "enforcing",
    "ROCKETMQ_MAX_ACCESS_FAILURES": str(FAILURES_MAX),
}
#: Codes that name servers answer without a user: route of a topic, brokers of the cluster.
ROUTE_CODES: Final = "105,106"

TOOLS_FILE: Final = """\
# Keys of a super user of brokers, name server and controllers. After a change of the password on
# each of them (mqadmin updateUser -b ADDRESS), write the new password here, and start Gantry again.
accessKey: {access_key}
secretKey: {secret_key}
"""


@dataclass(frozen=True, slots=True)
class Access:
    """The access control of one start."""

    home: Path
    credentials: "Credentials"
    #: Whether this start made the keys.
    is_new: bool

    @property
    def tools_file(self) -> Path:
        return _tools_file(self.home)

    @property
    def trust_cert(self) -> Path:
        """The certificate that clients trust."""
        return self.home / "conf" / "tls" / "ca.pem"

    @property
    def client_tls_file(self) -> Path:
        """TLS settings of clients, keys tls.client.*."""
        return self.home / "conf" / "tls" / "client.properties"

    @property
    def client_env_file(self) -> Path:
        return self.home / "conf" / "client.env"

    def namesrv_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Settings of the name server. Only the user registers brokers and changes settings;
        routes need no user of the name server, because the users of clients are on the broker."""
        lists = ("ROCKETMQ_AUTHENTICATION_WHITELIST", "ROCKETMQ_AUTHORIZATION_WHITELIST")
        return {
            **self._server_env(environ),
            **{name: environ.get(name, ROUTE_CODES) for name in lists},
        }

    def broker_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Settings of a broker. The user exists from the first start on; later starts change no
        user. The broker signs its requests to name server, controllers and other replicas."""
        keys = {
            "accessKey": self.credentials.access_key,
            "secretKey": self.credentials.secret_key,
        }
        return {
            **self._server_env(environ),
            "ROCKETMQ_INNER_CLIENT_AUTHENTICATION_CREDENTIALS": json.dumps(keys),
        }

    def replica_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Settings of a broker with replicas, beside those of every broker."""
        switches = ("ROCKETMQ_HA_TLS_ENABLE", "ROCKETMQ_HA_TLS_NEED_CLIENT_AUTH")
        return self._peer_env(environ, switches)

    def controller_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Settings of a controller. Only the user reaches it; its notices to brokers are signed."""
        switches = ("ROCKETMQ_RAFT_TLS_NEED_CLIENT_AUTH",)
        return {**self.broker_env(environ), **self._peer_env(environ, switches)}

    def _peer_env(self, environ: Mapping[str, str], switches: Iterable[str]) -> dict[str, str]:
        """Settings of the certificate that replicas and controllers share."""
        folder = self.home / "conf" / "tls"
        files = {
            "ROCKETMQ_TLS_SERVER_TRUST_CERT_PATH": str(folder / "replica.pem"),
            "ROCKETMQ_TLS_CLIENT_CERT_PATH": str(folder / "replica.pem"),
            "ROCKETMQ_TLS_CLIENT_KEY_PATH": str(folder / "replica.key"),
        }
        return {
            name: environ.get(name, value)
            for name, value in (files | dict.fromkeys(switches, "true")).items()
        }

    @property
    def client_guide_file(self) -> Path:
        """The settings of clients in other languages, without secrets."""
        return self.home / "conf" / "clients.txt"

    def _server_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Settings of all servers; the operator's variables take precedence over the defaults."""
        user = {
            "username": self.credentials.access_key,
            "password": self.credentials.secret_key,
        }
        return {
            **{name: environ.get(name, value) for name, value in SERVER_DEFAULTS.items()},
            "ROCKETMQ_TLS_CONFIG_FILE": str(self.home / "conf" / "tls" / "server.properties"),
            "ROCKETMQ_AUTHENTICATION_ENABLED": "true",
            "ROCKETMQ_AUTHORIZATION_ENABLED": "true",
            "ROCKETMQ_INIT_AUTHENTICATION_USER": json.dumps(user),
        }

    def client_env(self) -> dict[str, str]:
        """Variables of mqadmin and of Python clients."""
        return {
            "MQADMIN_TOOLS_FILE": str(self.tools_file),
            "ROCKETMQ_TLS_ENABLE": "true",
            "ROCKETMQ_TLS_CONFIG_FILE": str(self.client_tls_file),
        }

    def console_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Variables of console and worker.

        With CONSOLE_CLUSTERS the operator names the clusters, and sets these variables too.
        """
        if environ.get("CONSOLE_CLUSTERS"):
            return {}
        return {
            "CONSOLE_CLUSTER_CREDENTIALS": f"local={self.tools_file}",
            "CONSOLE_CLUSTER_TLS": f"local={self.client_tls_file}",
        }

    def write_client_files(self, namesrv_addr: str) -> None:
        """Write conf/client.env and conf/clients.txt with the name server of this start."""
        replace_file(self.client_guide_file, [client_guide(self, namesrv_addr).encode()])
        variables = {"NAMESRV_ADDR": namesrv_addr, **self.client_env()}
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        replace_file(self.client_env_file, ["".join(lines).encode()])


def is_secured(home: Path) -> bool:
    """Whether an earlier start made the keys."""
    return _tools_file(home).exists()


def open_access(home: Path, host: str) -> Access:
    """Read the files of the folder; make the missing files. Raises StartError."""
    # Imported here, because OpenSSL and the client library would delay every other start.
    from console.launcher.certificates import ensure_certificates, ensure_replica_certificate
    from core_broker.client import Credentials

    folder = home / "conf" / "tls"
    try:
        folder.mkdir(exist_ok=True)
        ensure_certificates(folder, server_names(host), datetime.now(UTC))
        ensure_replica_certificate(folder, datetime.now(UTC))
        _write_tls_settings(folder)
        is_new = not is_secured(home)
        if is_new:
            _make_keys(home)
        credentials = Credentials.from_file(_tools_file(home))
    except (OSError, ValueError, ClientError) as problem:
        raise StartError(
            f"The keys and certificates in {home / 'conf'} cannot be used: {problem} "
            "Repair the file, or remove the file to get a new one.",
            EXIT_USAGE,
        ) from None
    if credentials is None:
        raise StartError(f"{_tools_file(home)} has no accessKey and secretKey.", EXIT_USAGE)
    return Access(home, credentials, is_new)


def server_names(host: str) -> set[str]:
    """Names and addresses of servers that listen on an address, as clients may write them."""
    if host in LOOPBACK:
        return {*LOOPBACK}
    names = {*LOOPBACK, socket.gethostname()}
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return {*names, host}
    for addresses in psutil.net_if_addrs().values():
        names |= {
            each.address
            for each in addresses
            if each.family in (socket.AF_INET, socket.AF_INET6) and "%" not in each.address
        }
    return names


def _tools_file(home: Path) -> Path:
    return home / "conf" / "tools.yml"


def _make_keys(home: Path) -> None:
    """Make the keys of a user that the broker does not know yet."""
    has_users = (home / "store" / "config" / "auth.json").exists()
    username = f"{USERNAME}-{secrets.token_hex(3)}" if has_users else USERNAME
    text = TOOLS_FILE.format(access_key=username, secret_key=secrets.token_urlsafe(SECRET_BYTES))
    replace_file(_tools_file(home), [text.encode()], is_private=True)


def _write_tls_settings(folder: Path) -> None:
    """Write the settings of servers and clients, unless the files exist."""
    trust = {
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": str(folder / "ca.pem"),
    }
    server = {
        "tls.test.mode.enable": "false",
        "tls.server.certPath": str(folder / "server.pem"),
        "tls.server.keyPath": str(folder / "server.key"),
        **trust,
    }
    client = {"tls.test.mode.enable": "false", **trust}
    for name, values in (("server", server), ("client", client)):
        path = folder / f"{name}.properties"
        if not path.exists():
            lines = [f"{key}={_escaped(value)}\n" for key, value in values.items()]
            replace_file(path, ["".join(lines).encode()])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
