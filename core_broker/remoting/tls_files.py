"""Certificates, keys and CA bundles as files: loading, changes, end of validity.

PEM files. Keys may be encrypted with the algorithms of OpenSSL's default provider, which does not
include RC4: RocketMQ's guide encrypts keys with PBE-SHA1-RC4-128.
"""

import os
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from core_broker.errors import SettingProblem, SettingsError

#: (modification time in ns, size, inode) of a file; None for a missing file.
Stamp = tuple[int, int, int] | None

_PEM_BEGIN = "-----BEGIN CERTIFICATE-----"
_PEM_END = "-----END CERTIFICATE-----"
_UTC_TIME = 0x17
_EXPLICIT_VERSION = 0xA0


def stamps(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Return the stamp of each file; a changed file has another stamp."""
    return tuple(_stamp(path) for path in paths)


def load_chain(context: ssl.SSLContext, side: str, cert: str, key: str, password: str) -> None:
    """Load certificate chain and private key of a `side`, "server" or "client".

    Raises SettingsError, which names the key to set, for unreadable files, a wrong password, and a
    key of another certificate.
    """
    if not cert or not key:
        missing, other = ("certPath", key) if not cert else ("keyPath", cert)
        expected = f"expected a PEM file, because {other} is set"
        raise SettingsError([SettingProblem(f"tls.{side}.{missing}", expected, "")])
    _check_readable(f"tls.{side}.certPath", cert)
    _check_readable(f"tls.{side}.keyPath", key)
    try:
        # Without a function OpenSSL would ask for the password on the terminal.
        context.load_cert_chain(cert, key, lambda: password)
    except (ssl.SSLError, ValueError) as error:
        expected = (
            f"expected the PEM key of {cert}, not encrypted, or with tls.{side}.keyPassword in"
            f" tls.config.file or the environment, and not with RC4 ({_reason(error)})"
        )
        raise SettingsError([SettingProblem(f"tls.{side}.keyPath", expected, key)]) from None


def load_trust(context: ssl.SSLContext, side: str, path: str, purpose: ssl.Purpose) -> None:
    """Load the CA bundle of a side, or the system's CAs without a path; raises SettingsError."""
    if not path:
        context.load_default_certs(purpose)
        return
    setting = f"tls.{side}.trustCertPath"
    _check_readable(setting, path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        expected = f"expected CA certificates in PEM ({_reason(error)})"
        raise SettingsError([SettingProblem(setting, expected, path)]) from None


def expires_at_s(cert: str) -> float:
    """Return the end of validity of the first certificate in a PEM file, seconds since 1970.

    Raises ValueError for a file without a certificate.
    """
    text = Path(cert).read_text(encoding="latin-1")
    begin = text.find(_PEM_BEGIN)
    end = text.find(_PEM_END, begin)
    if begin < 0 or end < 0:
        raise ValueError(f"{cert} contains no certificate")
    return not_after_s(ssl.PEM_cert_to_DER_cert(text[begin : end + len(_PEM_END)]))


def not_after_s(der: bytes) -> float:
    """Return the end of validity of a certificate (RFC 5280, section 4.1), seconds since 1970."""
    try:
        body, _ = _element(_element(der, 0)[0], 0)
        at = 0
        if body[0] == _EXPLICIT_VERSION:
            _, at = _element(body, at)
        for _skipped in ("serialNumber", "signature", "issuer"):
            _, at = _element(body, at)
        validity, _ = _element(body, at)
        _, at = _element(validity, 0)
        text, _ = _element(validity, at)
        form = "%y%m%d%H%M%SZ" if validity[at] == _UTC_TIME else "%Y%m%d%H%M%SZ"
        return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC).timestamp()
    except (IndexError, UnicodeDecodeError):
        raise ValueError("the certificate is cut off") from None


def _element(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the content of the DER element at `at`, and the index behind the element."""
    size, begin = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    if begin + size > len(data):
        raise IndexError
    return data[begin : begin + size], begin + size


def _check_readable(setting: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except OSError as error:
        expected = f"expected a readable file ({error.strerror or error})"
        raise SettingsError([SettingProblem(setting, expected, path)]) from None


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116 - a path object per check is of no use
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _reason(error: Exception) -> str:
    """Return the words of an SSLError without OpenSSL's file and line."""
    reason = getattr(error, "reason", None) or str(error) or "wrong password"
    return str(reason).replace("_", " ").lower()
