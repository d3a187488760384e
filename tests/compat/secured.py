"""Clusters with access control on name server and broker, for tests with foreign clients that sign.

Both generations have the same accounts: an administrator, who may do everything, and an
application, which may publish and consume except for what DENIED names. A cluster with TLS refuses
connections without TLS (tls.server.mode=enforcing).
"""

import asyncio
import json
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from core_broker.client import AclRpcHook, AdminClient, ClientTls
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from tests.support.certificates import Authority
from tests.support.cluster import Cluster

GENERATIONS: Final = ("acl1", "acl2")
ADMINISTRATOR: Final = "administrator"
APPLICATION: Final = "application"
#: Resource → permission: topics and groups that the application may not use.
DENIED_TOPIC: Final = "Denied"
DENIED_GROUP: Final = "CG-denied"

ACCOUNTS = f"""\
accounts:
- accessKey: {ADMINISTRATOR}
  secretKey: secret-of-{ADMINISTRATOR}
  admin: true
- accessKey: {APPLICATION}
  secretKey: secret-of-{APPLICATION}
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
  topicPerms: [{DENIED_TOPIC}=DENY]
  groupPerms: [{DENIED_GROUP}=DENY]
"""


def secret_of(account: str) -> str:
    """The secret key of an account of the tests."""
    return f"secret-of-{account}"


def signing(account: str) -> dict[str, str]:
    """Arguments of the commands "produce" and "consume" for an account."""
    return {"account": account, "secret": secret_of(account)}


class Encryption:
    """One CA and a server certificate, with the settings of servers and clients."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        server = authority.issue("server")
        self.ca = authority.pair.cert
        #: Settings of name server and broker; both are also clients of the name server.
        self.servers: dict[str, Any] = {
            "tls_server_mode": "enforcing",
            "tls_test_mode_enable": False,
            "tls_server_cert_path": server.cert,
            "tls_server_key_path": server.key,
            "tls_enable": True,
            "tls_client_auth_server": True,
            "tls_client_trust_cert_path": self.ca,
        }
        options = {
            "tls.enable": "true",
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": self.ca,
        }
        #: Environment of a Java virtual machine whose clients verify the servers.
        self.java = {"JAVA_TOOL_OPTIONS": " ".join(f"-D{k}={v}" for k, v in options.items())}


class SecuredCluster(Cluster):
    """A cluster of one generation, with TLS or without; `settings` are the broker's."""

    def __init__(
        self,
        generation: str,
        folder: Path,
        encryption: Encryption | None = None,
        *,
        is_namesrv_open: bool = False,
        **settings: Any,
    ) -> None:
        self.generation = generation
        #: Time before the start of the servers, of time.monotonic().
        self.begun_s = time.monotonic()
        tls = ClientTls(trust_cert_path=encryption.ca) if encryption else None
        self.client_options = {
            "rpc_hooks": [AclRpcHook(ADMINISTRATOR, secret_of(ADMINISTRATOR))],
            "tls": tls,
        }
        both = dict(encryption.servers) if encryption else {}
        if generation == "acl1":
            self.rules = folder / "home/conf/plain_acl.yml"
            self.rules.parent.mkdir(parents=True)
            self.rules.write_text(ACCOUNTS)
            settings |= {"acl_enable": True, "rocketmq_home": folder / "home"}
        else:
            access = _users_of(ADMINISTRATOR)
            settings |= access
            both |= {} if is_namesrv_open else access
        super().__init__(folder, both=both, **settings)
        self._servers = [self.broker_addr, *([] if is_namesrv_open else [self.namesrv_addr])]
        if generation == "acl2":
            asyncio.run(self._create_application())

    def refusals(self) -> dict[str, int]:
        """The broker's refused requests by reason."""
        return dict(self.varz()["access_control"]["refused"])

    def varz(self) -> dict[str, Any]:
        """/varz of the broker."""
        url = f"http://127.0.0.1:{self.http_ports['broker']}/varz"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return dict(json.load(answer))

    async def _create_application(self) -> None:
        denied = (f"Topic:{DENIED_TOPIC}", f"Group:{DENIED_GROUP}")
        entries = [
            *(_entry(f"{kind}:*", "Allow") for kind in ("Topic", "Group")),
            *(_entry(resource, "Deny") for resource in denied),
        ]
        acl = AclInfo(subject=f"User:{APPLICATION}", policies=[PolicyInfo(entries=entries)])
        user = UserInfo(username=APPLICATION, password=secret_of(APPLICATION))
        async with AdminClient(self.namesrv_addr, **self.client_options) as admin:
            for server in self._servers:
                await admin.create_user(server, user)
                await admin.create_acl(server, acl)


def _entry(resource: str, decision: str) -> PolicyEntryInfo:
    # Queries of offsets need Get, as RocketMQ's pull consumers make them.
    return PolicyEntryInfo(resource=resource, actions=["Pub", "Sub", "Get"], decision=decision)


def _users_of(first: str) -> dict[str, Any]:
    return {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": first, "password": secret_of(first)}),
        "inner_client_authentication_credentials": json.dumps(
            {"accessKey": "inner", "secretKey": secret_of("inner")}
        ),
    }
