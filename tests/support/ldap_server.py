"""LDAP servers for tests: ldaptor, in Python, as a program of its own; OpenLDAP's slapd where
installed. Both serve LDAP with StartTLS, and LDAPS.

    python -m tests.support.ldap_server FOLDER    # prints both ports; runs until its input ends
"""

import io
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.support.certificates import Authority
from tests.support.processes import stop_program

SLAPD = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin")
BASE = "dc=example,dc=org"
SEARCHER = f"cn=searcher,{BASE}"
START_S_MAX = 60
STARTTLS_OID = b"1.3.6.1.4.1.1466.20037"
LDIF = f"""\
dn: {BASE}
objectClass: organization
objectClass: dcObject
o: Example
dc: example

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups

dn: {SEARCHER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: searcher
userPassword: secret-searcher

dn: uid=ann,ou=people,{BASE}
objectClass: inetOrgPerson
uid: ann
cn: Ann
sn: Example
mail: ann@example.org
userPassword: secret-ann

dn: uid=bob*,ou=people,{BASE}
objectClass: inetOrgPerson
uid: bob*
cn: Bob
sn: Example
userPassword: secret-bob

dn: cn=operators,ou=groups,{BASE}
objectClass: groupOfNames
cn: operators
member: uid=ann,ou=people,{BASE}
member: uid=bob*,ou=people,{BASE}

dn: cn=payments,ou=groups,{BASE}
objectClass: groupOfNames
cn: payments
member: uid=ann,ou=people,{BASE}
"""


@dataclass(frozen=True, slots=True)
class LdapServer:
    """Ports of a running server, and the file with the authority of its certificate."""

    port: int
    tls_port: int
    ca_file: str


@contextmanager
def running(kind: str, folder: Path) -> Iterator[LdapServer]:
    """A server of the kind `ldaptor` or `slapd`, with the entries of LDIF."""
    authority = Authority(folder, "ca")
    authority.issue("server")
    start = _ldaptor if kind == "ldaptor" else _slapd
    with start(folder) as (port, tls_port):
        yield LdapServer(port, tls_port, authority.pair.cert)


@contextmanager
def _ldaptor(folder: Path) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.ldap_server", str(folder)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        port, tls_port = map(int, program.stdout.readline().split())
        yield port, tls_port
    finally:
        program.communicate("")


@contextmanager
def _slapd(folder: Path) -> Iterator[tuple[int, int]]:
    assert SLAPD is not None
    (folder / "db").mkdir()
    schema = "".join(
        f"include /etc/ldap/schema/{name}.schema\n" for name in ("core", "cosine", "inetorgperson")
    )
    (folder / "slapd.conf").write_text(
        f"{schema}modulepath /usr/lib/ldap\nmoduleload back_mdb\n"
        f"pidfile {folder}/slapd.pid\nTLSCACertificateFile {folder}/ca.pem\n"
        f"TLSCertificateFile {folder}/server.pem\nTLSCertificateKeyFile {folder}/server.key\n"
        f'database mdb\nsuffix "{BASE}"\nrootdn "cn=root,{BASE}"\ndirectory {folder}/db\n'
        "access to attrs=userPassword by * auth\naccess to * by users read by * none\n"
    )
    add = shutil.which("slapadd") or "/usr/sbin/slapadd"
    configured = ["-f", str(folder / "slapd.conf")]
    subprocess.run([add, *configured], input=LDIF, text=True, check=True, capture_output=True)
    ports = [_free_port(), _free_port()]
    urls = f"ldap://127.0.0.1:{ports[0]}/ ldaps://127.0.0.1:{ports[1]}/"
    with (folder / "slapd.log").open("wb") as log:
        program = subprocess.Popen(
            [SLAPD, *configured, "-h", urls, "-d", "0"], stdout=log, stderr=log
        )
        try:
            _wait_for(ports[1], program)
            yield ports[0], ports[1]
        finally:
            stop_program(program)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, program: "subprocess.Popen[Any]") -> None:
    until_s = monotonic() + START_S_MAX
    while True:
        assert program.poll() is None, "slapd has ended; see slapd.log"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert monotonic() < until_s, "slapd does not listen"
            sleep(0.05)
        else:
            return


def serve(folder: Path) -> None:
    """Run ldaptor's server until the input ends."""
    warnings.simplefilter("ignore")
    from ldaptor.inmemory import fromLDIFFile
    from ldaptor.interfaces import IConnectedLDAPEntry
    from ldaptor.protocols import pureldap
    from ldaptor.protocols.ldap.ldapserver import LDAPServer
    from twisted.internet import reactor as running_reactor
    from twisted.internet import ssl, threads
    from twisted.internet.protocol import ServerFactory
    from twisted.python.components import registerAdapter

    reactor: Any = running_reactor
    context = ssl.DefaultOpenSSLContextFactory(
        str(folder / "server.key"), str(folder / "server.pem")
    )

    class Server(LDAPServer):  # type: ignore[misc]
        def extendedRequest_StartTLS(self, data: Any, reply: Any) -> Any:
            reactor.callLater(0, self.transport.startTLS, context)
            return pureldap.LDAPExtendedResponse(resultCode=0, responseName=STARTTLS_OID)

        extendedRequest_StartTLS.oid = STARTTLS_OID  # type: ignore[attr-defined]

    class Factory(ServerFactory):  # type: ignore[misc]
        protocol = Server

        def __init__(self, root: Any) -> None:
            self.root = root

    registerAdapter(lambda factory: factory.root, Factory, IConnectedLDAPEntry)

    def ready(root: Any) -> None:
        factory = Factory(root)
        plain = reactor.listenTCP(0, factory, interface="127.0.0.1")
        secure = reactor.listenSSL(0, factory, context, interface="127.0.0.1")
        print(plain.getHost().port, secure.getHost().port, flush=True)
        threads.deferToThread(sys.stdin.read).addBoth(lambda _text: reactor.stop())

    fromLDIFFile(io.BytesIO(f"{LDIF}\n".encode())).addCallback(ready)
    reactor.run()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
