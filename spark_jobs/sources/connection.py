"""The connection of a read, a write or a job to its cluster.

Pure, except `tls`, which reads a file.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from core_broker.client import AclRpcHook, AdminClient, ClientTls, Credentials
from core_broker.errors import ClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Options of reads and writes. Picklable: created on the driver, used in every worker."""

    #: `namesrv`: name server addresses, `host:port;host:port`. Required.
    namesrv: str
    #: `requestTimeoutMs`: timeout of one request, ms.
    request_timeout_ms: int = 5000
    #: `retryTimeoutMs`: total time for retries of one request while a broker is unreachable or
    #: busy, ms.
    retry_timeout_ms: int = 60_000
    #: `accessKey` and `secretKey`: sign requests, for brokers with access control.
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    #: `securityToken`: the token of temporary credentials, with accessKey and secretKey.
    security_token: str = field(default="", repr=False)
    #: `tlsConfigFile`: path of a file with keys `tls.client.*`, which must exist on the driver and
    #: on every worker; the connections use TLS.
    tls_config_file: str = ""

    @property
    def tls(self) -> ClientTls | None:
        """The TLS settings of the file; None without `tlsConfigFile`. Raises ClientError."""
        return ClientTls.from_file(self.tls_config_file) if self.tls_config_file else None

    @property
    def hooks(self) -> list[AclRpcHook]:
        """The hooks that sign the requests of a client, a new list for each client; none without an
        access key."""
        if not self.access_key:
            return []
        return [AclRpcHook(self.access_key, self.secret_key, self.security_token or None)]

    def signed(self, credentials: Credentials | None) -> "Connection":
        """The connection with these keys; None changes nothing."""
        return replace(self, **asdict(credentials)) if credentials else self

    def admin(self) -> AdminClient:
        """A new admin client; the caller closes the client. Raises ClientError."""
        return AdminClient(
            self.namesrv,
            timeout_ms=self.request_timeout_ms,
            rpc_hooks=self.hooks,
            tls=self.tls,
        )


CONNECTION_OPTION_NAMES: Final = {
    "namesrv": "namesrv",
    "requestTimeoutMs": "request_timeout_ms",
    "retryTimeoutMs": "retry_timeout_ms",
    "accessKey": "access_key",
    "secretKey": "secret_key",
    "securityToken": "security_token",
    "tlsConfigFile": "tls_config_file",
}


def check_key_pair(texts: Mapping[str, str]) -> None:
    """Raise ClientError for an access key without a secret key, or the reverse."""
    if bool(texts.get("accessKey", "").strip()) != bool(texts.get("secretKey", "").strip()):
        raise ClientError("accessKey and secretKey go together.")
