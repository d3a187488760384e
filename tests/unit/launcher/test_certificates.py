"""The certificate authority of a home folder: validity, renewal, and files of the operator."""

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.launcher.certificates import (
    AUTHORITY_DAYS,
    RENEWAL_DAYS,
    SERVER_DAYS,
    authority_files,
    ensure_certificates,
    ensure_replica_certificate,
    replica_files,
    server_files,
)
from tests.support.certificates import Authority

NAMES = {"localhost", "127.0.0.1", "::1"}
NOW = datetime.now(UTC)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def openssl(*arguments: str) -> str:
    command = ["openssl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=180).stdout


def test_clients_that_trust_the_authority_accept_the_server(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    server, authority = server_files(tmp_path), authority_files(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(server.cert, server.key)
    for name in (("-verify_ip", "127.0.0.1"), ("-verify_hostname", "localhost")):
        strict = ("-x509_strict", "-purpose", "sslserver", *name)
        openssl("verify", *strict, "-CAfile", str(authority.cert), str(server.cert))
    other = ("verify", "-verify_hostname", "example.org", "-CAfile", str(authority.cert))
    with pytest.raises(subprocess.CalledProcessError):
        openssl(*other, str(server.cert))


def test_replicas_accept_their_certificate_and_no_other(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    ensure_replica_certificate(tmp_path, NOW)
    own = replica_files(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(own.cert, own.key)
    trusted = ("verify", "-purpose", "sslclient", "-CAfile", str(own.cert))
    openssl(*trusted, str(own.cert))
    for stranger in (server_files(tmp_path), authority_files(tmp_path)):
        with pytest.raises(subprocess.CalledProcessError):
            openssl(*trusted, str(stranger.cert))


def test_the_certificate_of_replicas_is_renewed_before_its_end(tmp_path: Path) -> None:
    ensure_replica_certificate(tmp_path, NOW)
    before = contents(tmp_path)
    ensure_replica_certificate(tmp_path, NOW + timedelta(days=AUTHORITY_DAYS - RENEWAL_DAYS - 1))
    assert contents(tmp_path) == before
    ensure_replica_certificate(tmp_path, NOW + timedelta(days=AUTHORITY_DAYS - RENEWAL_DAYS + 1))
    assert contents(tmp_path) != before


def test_keys_are_private_and_of_a_form_that_java_reads(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    ensure_replica_certificate(tmp_path, NOW)
    for files in (server_files(tmp_path), authority_files(tmp_path), replica_files(tmp_path)):
        assert files.key.stat().st_mode & 0o777 == 0o600
        assert files.key.read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    before = contents(tmp_path)
    ensure_certificates(tmp_path, {"127.0.0.1"}, NOW + timedelta(days=1))
    assert contents(tmp_path) == before


@pytest.mark.parametrize("cause", ["validity", "name", "lost key", "key of a cut renewal"])
def test_the_servers_certificate_is_renewed_and_the_authority_stays(
    tmp_path: Path, cause: str
) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    before, key = contents(tmp_path), server_files(tmp_path).key
    names, now = NAMES, NOW
    match cause:
        case "validity":
            now = NOW + timedelta(days=SERVER_DAYS - RENEWAL_DAYS + 1)
        case "name":
            names = NAMES | {"192.0.2.7"}
        case "lost key":
            key.unlink()
        case _:
            shutil.copy(authority_files(tmp_path).key, key)
    ensure_certificates(tmp_path, names, now)
    after = contents(tmp_path)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"server.pem", "server.key"}
    server = server_files(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(server.cert, server.key)


def test_an_unfinished_authority_is_made_again(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    authority = authority_files(tmp_path)
    authority.cert.unlink()
    ensure_certificates(tmp_path, NAMES, NOW)
    openssl("verify", "-CAfile", str(authority.cert), str(authority.cert))


def test_a_certificate_of_the_operator_stays(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    pair = Authority(tmp_path / "ca").issue("server", days=1)
    shutil.copy(pair.cert, server_files(folder).cert)
    shutil.copy(pair.key, server_files(folder).key)
    ensure_certificates(folder, {"elsewhere.example.org"}, NOW)
    assert server_files(folder).cert.read_bytes() == Path(pair.cert).read_bytes()


def test_without_the_authoritys_key_only_a_renewal_fails(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    authority_files(tmp_path).key.unlink()
    ensure_certificates(tmp_path, NAMES, NOW)
    with pytest.raises(FileNotFoundError, match=r"ca\.key"):
        ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=AUTHORITY_DAYS))


@pytest.mark.parametrize("name", ["ca.pem", "server.pem", "server.key"])
def test_damaged_files_are_not_replaced(tmp_path: Path, name: str) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    (tmp_path / name).write_text("damaged")
    with pytest.raises(ValueError, match=r"."):
        ensure_certificates(tmp_path, NAMES, NOW)
    assert (tmp_path / name).read_text() == "damaged"
