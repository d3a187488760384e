"""A certificate authority of a test, made with the program openssl: P-256 keys, valid for days."""

import subprocess
from pathlib import Path
from typing import NamedTuple

#: openssl needs milliseconds; a busy test machine may need seconds.
_OPENSSL_S = 60


class Pair(NamedTuple):
    """The PEM files of a certificate and its key, PKCS#8 and not encrypted."""

    cert: str
    key: str


class Authority:
    """A CA in a folder; `issue` makes certificates for the loopback interface."""

    def __init__(self, folder: Path, name: str = "test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = name.replace(" ", "-")
        self.pair = self._files(self._name)
        _openssl(
            *("req", "-x509", "-nodes", "-days", "3650", "-subj", f"/CN={name}"),
            *(*_KEY, "-keyout", self.pair.key, "-out", self.pair.cert),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
        )

    def issue(
        self,
        name: str,
        *,
        days: int = 30,
        key: str = "",
        password: str = "",
        names: str = "IP:127.0.0.1,DNS:localhost",
    ) -> Pair:
        """Make a certificate; `key` is the file of an existing key, `password` encrypts a new one.

        Negative days make an expired certificate.
        """
        pair = Pair(self._files(name).cert, key or self._files(name).key)
        if not key:
            encryption = ("-aes256", "-pass", f"pass:{password}") if password else ()
            _openssl("genpkey", *_CURVE, *encryption, "-out", pair.key)
        request = str(self._folder / f"{name}.csr")
        _openssl(
            *("req", "-new", "-key", pair.key, "-passin", f"pass:{password}"),
            *("-subj", f"/CN={name}", "-out", request),
            *("-addext", f"subjectAltName={names}"),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.pair.cert, "-CAkey", self.pair.key),
            *("-CAcreateserial", "-days", str(days), "-copy_extensions", "copy"),
            *("-out", pair.cert),
        )
        return pair

    def _files(self, name: str) -> Pair:
        return Pair(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))


_CURVE = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1")
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(*arguments: str) -> None:
    subprocess.run(
        ["openssl", *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_OPENSSL_S,
    )
