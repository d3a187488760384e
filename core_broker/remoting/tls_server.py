"""TLS of a server: the certificate in use, its renewal, the certificate of the test mode.

Compatible with the keys tls.server.* and with the reload of RocketMQ's FileWatchService. Two rules
differ: the change of a single file is enough for a reload, and a set certificate replaces the
certificate of the test mode.
"""

import asyncio
import logging
import ssl
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from core_broker.config.tls import TlsInForce, TlsServerMode, TlsSettings, tls_in_force
from core_broker.errors import SettingProblem, SettingsError
from core_broker.remoting.tls_files import Stamp, expires_at_s, load_chain, load_trust, stamps

#: Interval between two checks of the files, s. Changed files are loaded when two checks have found
#: the same change: certificate and key are rarely replaced at the same time.
CHECK_INTERVAL_S = 0.5
#: Days before the end of validity at which the log warns.
WARNING_DAYS = (30, 7, 1, 0)

_DAY_S = 86_400
_OPENSSL_TIMEOUT_S = 20
_TEST_COMMAND = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-nodes", "-days", "30", "-subj", "/CN=RocketMQ test mode"),
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What one read of all files has found."""

    #: None without a certificate.
    context: ssl.SSLContext | None
    #: End of validity, seconds since 1970.
    expires_s: float | None
    files: tuple[str, ...]
    #: Stamps of the files, taken before the read.
    stamps: tuple[Stamp, ...]
    is_test_mode: bool


class ServerTls:
    """The TLS settings and the certificate of one server. Event loop only.

    The constructor reads the files, and raises SettingsError for files that cannot be used. A port
    that `needs_certificates` of its peers speaks TLS only, whatever mode the settings have.
    """

    def __init__(
        self, settings: TlsSettings, name: str, *, needs_certificates: bool = False
    ) -> None:
        self.mode: TlsServerMode = "enforcing" if needs_certificates else settings.tls_server_mode
        self.name = name
        self._needs_certificates = needs_certificates
        #: Successful and failed reloads, and the reason of the last failure, "" after a success.
        self.reloads = 0
        self.reload_failures = 0
        self.problem = ""
        self._settings = settings
        self._warned_days = WARNING_DAYS[0] + 1
        self._making: asyncio.Task[ssl.SSLContext | None] | None = None
        self._loaded = _Loaded(None, None, (), (), is_test_mode=False)
        if self.mode != "disabled":
            self._loaded = self._read()

    @property
    def expires_s(self) -> float | None:
        """End of validity of the certificate, seconds since 1970; None without a certificate."""
        return self._loaded.expires_s

    def varz(self) -> dict[str, object]:
        """Return the state for /varz."""
        return {
            "mode": self.mode,
            "test_certificate": self._loaded.is_test_mode,
            "certificate_expires_s": self.expires_s,
            "reloads": self.reloads,
            "reload_failures": self.reload_failures,
            "problem": self.problem,
        }

    async def context(self) -> ssl.SSLContext | None:
        """Return the context for a new connection; None while the server has no certificate."""
        if self._loaded.context is not None or not self._loaded.is_test_mode:
            return self._loaded.context
        if self._making is None:
            self._making = asyncio.get_running_loop().create_task(self._test_context())
        return await asyncio.shield(self._making)

    async def watch(self) -> None:
        """Reload changed files and warn before the end of validity, until cancelled."""
        used = before = self._loaded.stamps
        while True:
            self._warn_of_expiry(time.time())
            await asyncio.sleep(CHECK_INTERVAL_S)
            now = await asyncio.to_thread(self._stamps)
            if now != used and now == before:
                used = self._loaded.stamps if await self._reload() else now
            before = now

    async def _reload(self) -> bool:
        try:
            self._loaded = await asyncio.to_thread(self._read)
        except SettingsError as error:
            self.reload_failures += 1
            self.problem = str(error)
            log.error("%s: keeping the TLS certificate in use: %s", self.name, error)  # noqa: TRY400
            return False
        self.reloads += 1
        self.problem = ""
        self._warned_days = WARNING_DAYS[0] + 1
        log.info("%s: new connections use the changed TLS files", self.name)
        return True

    def _stamps(self) -> tuple[Stamp, ...]:
        return stamps(self._loaded.files)

    def _read(self) -> _Loaded:
        in_force = tls_in_force(self._settings)
        if self._needs_certificates:
            certified = replace(
                in_force.settings,
                tls_server_need_client_auth="require",
                tls_server_auth_client=True,
            )
            in_force = replace(in_force, settings=certified)
        settings = in_force.settings
        cert, key = settings.tls_server_cert_path, settings.tls_server_key_path
        paths = (settings.tls_config_file, cert, key, settings.tls_server_trust_cert_path)
        files = tuple(path for path in paths if path)
        found = stamps(files)
        if cert or key:
            context = _context(in_force)
            try:
                return _Loaded(context, expires_at_s(cert), files, found, is_test_mode=False)
            except (OSError, ValueError) as error:
                raise _wrong("tls.server.certPath", cert, f"a certificate ({error})") from None
        if not settings.tls_test_mode_enable and self.mode == "enforcing":
            raise _wrong("tls.server.certPath", "", "a PEM file, as tls.server.mode is enforcing")
        return _Loaded(None, None, files, found, is_test_mode=settings.tls_test_mode_enable)

    async def _test_context(self) -> ssl.SSLContext | None:
        """Make the certificate of the test mode, at the first connection with TLS."""
        try:
            context = await asyncio.to_thread(_self_signed)
        except (OSError, subprocess.SubprocessError) as error:
            log.error(  # noqa: TRY400
                "%s: no TLS: the program openssl made no test certificate (%s); set"
                " tls.server.certPath and tls.server.keyPath",
                self.name,
                error,
            )
            return None
        log.warning(
            "%s: TLS TEST MODE: connections use a certificate made for this run, which clients"
            " cannot verify; set tls.server.certPath and tls.server.keyPath, or"
            " tls.test.mode.enable=false",
            self.name,
        )
        return context

    def _warn_of_expiry(self, now_s: float) -> None:
        if self.expires_s is None:
            return
        days = (self.expires_s - now_s) / _DAY_S
        passed = [limit for limit in WARNING_DAYS if days <= limit]
        if not passed or min(passed) >= self._warned_days:
            return
        self._warned_days = min(passed)
        if days <= 0:
            log.error("%s: the TLS certificate has expired", self.name)
        else:
            log.warning("%s: the TLS certificate expires in %.1f days", self.name, days)


def _context(in_force: TlsInForce[TlsSettings]) -> ssl.SSLContext:
    settings = in_force.settings
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_chain(
        context,
        "server",
        settings.tls_server_cert_path,
        settings.tls_server_key_path,
        in_force.server_key_password,
    )
    auth = settings.tls_server_need_client_auth
    if auth == "none":
        return context
    if not settings.tls_server_auth_client:
        # OpenSSL cannot ask for a certificate and accept any.
        raise _wrong(
            "tls.server.need.client.auth",
            auth,
            "tls.server.authClient=true beside it: client certificates are verified, or not asked"
            " for (none)",
        )
    load_trust(context, "server", settings.tls_server_trust_cert_path, ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED if auth == "require" else ssl.CERT_OPTIONAL
    return context


def _self_signed() -> ssl.SSLContext:
    """Return a context with a new self-signed certificate."""
    # Only the test mode needs the module, which imports those of compression.
    import tempfile

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="tls-test-mode-") as folder:
        cert, key = str(Path(folder) / "cert.pem"), str(Path(folder) / "key.pem")
        subprocess.run(
            [*_TEST_COMMAND, "-keyout", key, "-out", cert],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_OPENSSL_TIMEOUT_S,
        )
        context.load_cert_chain(cert, key)
    return context


def _wrong(setting: str, value: str, expected: str) -> SettingsError:
    return SettingsError([SettingProblem(setting, f"expected {expected}", value)])
