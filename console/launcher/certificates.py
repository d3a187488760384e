"""The certificate authority of a home folder, and the certificate of its servers.

ca.pem, ca.key          the authority, made once; clients trust ca.pem
server.pem, server.key  certificate of name server, brokers and controllers
replica.pem, replica.key  certificate of replicas and controllers as clients of each other; signed
                        by itself, and trusted by their ports for copies and for Raft only

PEM files with P-256 keys in PKCS#8, which Java needs; the keys are not encrypted, and readable by
the owner only. A certificate of the authority is renewed RENEWAL_DAYS before its end, or when it
lacks a name; a certificate of another authority belongs to the operator and stays.
"""

import ipaddress
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from core_broker.durable_files import replace_file

AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 825
#: Days before the end of validity at which the next start renews a certificate.
RENEWAL_DAYS: Final = 60
#: Certificates are valid from the day before, for peers whose clock is behind.
_CLOCK_SKEW: Final = timedelta(days=1)


class Files(NamedTuple):
    """A certificate and its key."""

    cert: Path
    key: Path


def authority_files(folder: Path) -> Files:
    return Files(folder / "ca.pem", folder / "ca.key")


def server_files(folder: Path) -> Files:
    return Files(folder / "server.pem", folder / "server.key")


def replica_files(folder: Path) -> Files:
    return Files(folder / "replica.pem", folder / "replica.key")


def ensure_replica_certificate(folder: Path, now: datetime) -> None:
    """Make the certificate of replicas, unless one is valid for a while.

    Raises OSError, and ValueError for a damaged file.
    """
    files = replica_files(folder)
    if files.cert.exists() and files.key.exists():
        cert = x509.load_pem_x509_certificate(files.cert.read_bytes())
        is_pair = cert.public_key() == _key(files.key).public_key()
        if is_pair and cert.not_valid_after_utc - now > timedelta(days=RENEWAL_DAYS):
            return
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Gantry replicas {secrets.token_hex(4)}")
    draft = (
        _draft(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    _write(files, draft.sign(key, hashes.SHA256()), key)


def ensure_certificates(folder: Path, names: Collection[str], now: datetime) -> None:
    """Make the missing files, and renew the server's certificate when necessary.

    `names` are the host names and IP addresses of the servers. Raises OSError, and ValueError for a
    damaged file; a damaged file is not replaced.
    """
    authority, server = authority_files(folder), server_files(folder)
    if not authority.cert.exists():
        _make_authority(authority, now)
    issuer = x509.load_pem_x509_certificate(authority.cert.read_bytes()).subject
    if not server.cert.exists() or _needs_renewal(server, issuer, names, now):
        _issue(server, issuer, _key(authority.key), names, now)


def _make_authority(files: Files, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Gantry CA {secrets.token_hex(4)}")
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    draft = (
        _draft(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(constraints, critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
    )
    _write(files, draft.sign(key, hashes.SHA256()), key)


def _issue(
    files: Files,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: Collection[str],
    now: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
    draft = (
        _draft(_name("Gantry server"), issuer, key.public_key(), now, SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(alternatives, critical=False)
    )
    _write(files, draft.sign(issuer_key, hashes.SHA256()), key)


def _needs_renewal(files: Files, issuer: x509.Name, names: Collection[str], now: datetime) -> bool:
    cert = x509.load_pem_x509_certificate(files.cert.read_bytes())
    if cert.issuer != issuer:
        return False
    if not files.key.exists() or cert.public_key() != _key(files.key).public_key():
        return True  # after a power cut between the two files
    alternatives = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    is_named = {_general_name(name) for name in names} <= {*alternatives}
    return not is_named or cert.not_valid_after_utc - now < timedelta(days=RENEWAL_DAYS)


def _draft(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} is not an elliptic curve key")  # noqa: TRY004 - the file is wrong
    return key


def _write(files: Files, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    replace_file(files.key, [pem], is_private=True)
    replace_file(files.cert, [cert.public_bytes(Encoding.PEM)])
