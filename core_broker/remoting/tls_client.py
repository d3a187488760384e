"""TLS of a client: trusted CAs, client certificate, name check.

Compatible with the keys tls.client.* of RocketMQ. New connections use the files of that
time: a renewed certificate needs no restart.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from core_broker.config.tls import TlsSettings, tls_in_force, tls_of_environment
from core_broker.errors import ClientError, SettingsError
from core_broker.remoting.tls_files import Stamp, load_chain, load_trust, not_after_s, stamps

#: Contexts kept for reuse, of different settings or file versions.
CONTEXTS_MAX = 32


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The TLS settings of a client; an object may be shared by clients and pickled.

    With `auth_server`, the default, a server needs a certificate of a trusted CA. Without it, as in
    RocketMQ's default, the connection is encrypted, but any server is accepted. RocketMQ never
    compares names: the addresses in routes are often not in the certificates.
    """

    #: CA bundle, PEM; "" for the CAs of the system.
    trust_cert_path: str = ""
    #: Certificate chain and key of the client, PEM; "" for no client certificate.
    cert_path: str = ""
    key_path: str = ""
    key_password: str = field(default="", repr=False)
    auth_server: bool = True
    #: Compare the host name or IP address of the server with its certificate.
    check_host_name: bool = False

    @classmethod
    def of(cls, settings: TlsSettings, environ: Mapping[str, str] = os.environ) -> Self:
        """Return the client's part of settings; raises SettingsError as `tls_in_force`."""
        loaded = tls_in_force(settings, environ)
        return cls(
            trust_cert_path=loaded.settings.tls_client_trust_cert_path,
            cert_path=loaded.settings.tls_client_cert_path,
            key_path=loaded.settings.tls_client_key_path,
            key_password=loaded.client_key_password,
            auth_server=loaded.settings.tls_client_auth_server,
            check_host_name=loaded.settings.tls_client_check_host_name,
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self | None:
        """Return the settings of the variables ROCKETMQ_TLS_…, None while tls.enable is false.

        Raises ClientError for wrong values.
        """
        try:
            settings = tls_of_environment(environ)
            return cls.of(settings, environ) if settings.tls_enable else None
        except SettingsError as error:
            raise ClientError(str(error)) from None

    @classmethod
    def from_file(cls, file: str) -> Self:
        """Return the settings of a file like RocketMQ's tls.properties, keys tls.client.*.

        Servers are verified unless the file has tls.client.authServer=false. Raises ClientError for
        an unreadable file and for wrong values.
        """
        try:
            return cls.of(TlsSettings(tls_config_file=file, tls_client_auth_server=True), {})
        except SettingsError as error:
            raise ClientError(str(error)) from None

    def context(self) -> ssl.SSLContext:
        """Return the context for new connections; raises ClientError for unusable files."""
        paths = (self.trust_cert_path, self.cert_path, self.key_path)
        try:
            return _context(self, stamps(path for path in paths if path))
        except SettingsError as error:
            raise ClientError(f"TLS cannot be used: {error}") from None


async def server_certificate_expiry_s(addr: str, tls: ClientTls, timeout_s: float) -> float | None:
    """Return the end of validity of a server's certificate, seconds since 1970; None if unknown.

    One TLS handshake without verification, so that an expired certificate is reported too. Nothing
    else is sent. Raises ClientError for unusable files of `tls`.
    """
    host, _, port = addr.rpartition(":")
    context = replace(tls, auth_server=False, check_host_name=False).context()
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    except (OSError, TimeoutError, ValueError):
        return None
    writer.transport.abort()
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    try:
        return not_after_s(der) if der else None
    except ValueError:
        return None


def handshake_failure(error: ssl.SSLError) -> str:
    """Return the reason of a failed handshake in words, with the setting that may remedy it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"no trust in its certificate ({error.verify_message}); see tls.client.trustCertPath"
    reason = (error.reason or str(error)).replace("_", " ").lower()
    return f"the TLS handshake failed ({reason}); see tls.server.mode of the server"


@lru_cache(CONTEXTS_MAX)
def _context(tls: ClientTls, versions: tuple[Stamp, ...]) -> ssl.SSLContext:
    """Build a context; `versions` makes a changed file another entry of the cache."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.auth_server and tls.check_host_name
    if tls.auth_server:
        load_trust(context, "client", tls.trust_cert_path, ssl.Purpose.SERVER_AUTH)
    else:
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_path or tls.key_path:
        load_chain(context, "client", tls.cert_path, tls.key_path, tls.key_password)
    return context
