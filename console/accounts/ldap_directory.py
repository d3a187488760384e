"""Questions to LDAP servers: who has this name and password, and in which groups.

Two ways: the account CONSOLE_LDAP_BIND_DN searches the person, whose DN is then bound with the
password; or the DN is made from CONSOLE_LDAP_USER_DN. Names are escaped in filters and DNs. An
empty password is never sent: servers accept it as an anonymous bind. Referrals are not followed,
because they would send the password to a server that the reply names. Each server has a bounded
time, and the next server of CONSOLE_LDAP_URL is asked when one does not answer.
"""

import logging
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.accounts.external import Person, ProviderFailed
from console.identity_settings import LdapSettings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of pyasn1, in an import of ldap3
    import ldap3
    from ldap3.core.exceptions import LDAPException, LDAPInvalidCredentialsResult
    from ldap3.utils.conv import escape_filter_chars
    from ldap3.utils.dn import escape_rdn

log = logging.getLogger(__name__)

ISSUER: Final = "ldap"
#: Time to connect, and to wait for an answer, seconds.
CONNECT_S_MAX: Final = 4
ANSWER_S_MAX: Final = 4
#: Sign-ins that ask the directory at the same time, and the time that others wait, seconds.
AT_ONCE_MAX: Final = 8
WAIT_S_MAX: Final = 5.0
GROUPS_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 150
PASSWORD_CHARS_MAX: Final = 1_024
#: Attributes with a name that stays when a person is renamed or moved.
STABLE_ATTRIBUTES: Final = ("entryUUID", "objectGUID")
_gate = threading.BoundedSemaphore(AT_ONCE_MAX)


class DirectoryFailed(ProviderFailed):
    def __init__(self, reason: object) -> None:
        super().__init__(
            format_lazy(
                _("The directory does not answer as expected: {reason}"), reason=str(reason)[:200]
            ),
            hint=_("Accounts of this console still sign in. Setting: CONSOLE_LDAP_URL."),
        )


def person_of(ldap: LdapSettings, username: str, password: str) -> Person | None:
    """Return the person with this name and password; None when one of them is wrong.

    Raises DirectoryFailed when no server answers, or one answers with another error.
    """
    usable = 0 < len(username) <= NAME_CHARS_MAX and 0 < len(password) <= PASSWORD_CHARS_MAX
    if not usable or "\x00" in username + password:
        return None
    if not _gate.acquire(timeout=WAIT_S_MAX):
        raise DirectoryFailed("too many sign-ins at the same time")
    try:
        return _from_any_server(ldap, username, password)
    finally:
        _gate.release()


def _from_any_server(ldap: LdapSettings, username: str, password: str) -> Person | None:
    problem: object = ""
    for url in ldap.urls:
        try:
            return _from_server(ldap, url, username, password)
        except (LDAPException, OSError, ssl.SSLError) as failure:
            problem = f"{url}: {failure or type(failure).__name__}"
            log.warning("LDAP: %s", problem)
    raise DirectoryFailed(problem)


def _from_server(ldap: LdapSettings, url: str, username: str, password: str) -> Person | None:
    if ldap.user_dn:
        return _bound_directly(ldap, url, username, password)
    with _connection(ldap, url) as search:
        if ldap.bind_dn:
            _bind(search, ldap.bind_dn, ldap.bind_password, ldap)
        wanted = ldap.user_filter.replace("{user}", escape_filter_chars(username))
        found = _entries(search, ldap.base_dn, wanted, _attributes(ldap), most=2)
        if len(found) != 1:
            return None  # unknown, or ambiguous: nobody must sign in as somebody else
        with _connection(ldap, url) as own:
            if not _is_right(own, found[0]["dn"], password):
                return None
        return _person(ldap, search, found[0], username)


def _bound_directly(ldap: LdapSettings, url: str, username: str, password: str) -> Person | None:
    is_dn = "=" in ldap.user_dn
    name = ldap.user_dn.replace("{user}", escape_rdn(username) if is_dn else username)
    if not is_dn and not set(username).isdisjoint('@\\"/[]:;|=,+*?<> '):
        return None  # the name could lead to another domain than the pattern's
    with _connection(ldap, url) as own:
        if not _is_right(own, name, password):
            return None
        if ldap.base_dn:
            wanted = ldap.user_filter.replace("{user}", escape_filter_chars(username))
            found = _entries(own, ldap.base_dn, wanted, _attributes(ldap), most=2)
        else:
            found = _entries(own, name, "(objectClass=*)", _attributes(ldap), scope=ldap3.BASE)
        if len(found) != 1:
            return None
        # Servers bind names of several forms: the found entry may be of another person.
        with _connection(ldap, url) as proof:
            if not _is_right(proof, found[0]["dn"], password):
                return None
        return _person(ldap, own, found[0], username)


def _person(ldap: LdapSettings, connection: Any, entry: dict[str, Any], username: str) -> Person:
    dn, attributes = str(entry["dn"]), entry["raw_attributes"]
    groups = {_text(each) for each in attributes.get(ldap.groups_attribute, ())}
    if ldap.group_base_dn:
        wanted = ldap.group_filter.replace("{dn}", escape_filter_chars(dn))
        wanted = wanted.replace("{user}", escape_filter_chars(username))
        found = _entries(connection, ldap.group_base_dn, wanted, ["cn"], most=GROUPS_MAX)
        groups |= {str(each["dn"]) for each in found}
    names = {name for each in list(groups)[:GROUPS_MAX] for name in (each, _common_name(each))}
    stable = next((values[0] for a in STABLE_ATTRIBUTES if (values := attributes.get(a))), b"")
    subject = (stable.hex() if stable else dn.casefold())[-255:]
    mail = attributes.get("mail") or [b""]
    return Person(ISSUER, subject, username.casefold(), frozenset(names), _text(mail[0]))


def _attributes(ldap: LdapSettings) -> list[str]:
    return [ldap.groups_attribute, *STABLE_ATTRIBUTES, "mail"]


def _common_name(dn: str) -> str:
    first = dn.partition(",")[0]
    kind, _sign, value = first.partition("=")
    return value if kind.strip().lower() == "cn" else dn


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


class _Tls(ldap3.Tls):
    """TLS of Python's ssl, which checks authority and host name: ldap3's own check of names calls a
    function that Python 3.12 lacks."""

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(
            connection.socket,
            server_hostname=connection.server.host,
            do_handshake_on_connect=do_handshake,
        )


@contextmanager
def _connection(ldap: LdapSettings, url: str) -> Iterator[Any]:
    """An open connection, with TLS as the settings say. Raises LDAPException, OSError."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "ldaps"
    tls = _Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=ldap.ca_file or None)
    server = ldap3.Server(
        parts.hostname,
        port=parts.port or (636 if is_tls else 389),
        use_ssl=is_tls,
        tls=tls,
        get_info=ldap3.NONE,
        connect_timeout=CONNECT_S_MAX,
    )
    connection = ldap3.Connection(
        server,
        auto_referrals=False,
        raise_exceptions=True,
        receive_timeout=ANSWER_S_MAX,
        check_names=False,
        read_only=True,
    )
    try:
        connection.open()
        if not is_tls and ldap.security == "starttls" and not connection.start_tls():
            raise LDAPException("the server refuses StartTLS (CONSOLE_LDAP_SECURITY)")
        yield connection
    finally:
        sock = connection.socket
        try:
            connection.unbind()
        except (LDAPException, OSError) as problem:
            log.debug("LDAP: %s", problem)
        if sock is not None:
            sock.close()  # ldap3 leaves sockets open after some failures


def _is_right(connection: Any, dn: str, password: str) -> bool:
    """Bind with a name and a password that is not empty; False when one of them is wrong."""
    try:
        return bool(connection.rebind(user=dn, password=password))
    except LDAPInvalidCredentialsResult:
        return False


def _bind(connection: Any, dn: str, password: str, ldap: LdapSettings) -> None:
    if not _is_right(connection, dn, password):
        raise LDAPException(f"the password of CONSOLE_LDAP_BIND_DN {ldap.bind_dn} is wrong")


def _entries(
    connection: Any,
    base: str,
    wanted: str,
    attributes: list[str],
    *,
    scope: str = ldap3.SUBTREE,
    most: int = 1,
) -> list[dict[str, Any]]:
    """Search; referrals of the answer are left out."""
    try:
        connection.search(
            base,
            wanted,
            search_scope=scope,
            attributes=attributes,
            size_limit=most,
            time_limit=ANSWER_S_MAX,
        )
    except ldap3.core.exceptions.LDAPSizeLimitExceededResult:
        log.info("LDAP: more than %s entries for %s", most, wanted)
    except ldap3.core.exceptions.LDAPNoSuchObjectResult:
        return []
    return [each for each in connection.response or () if each["type"] == "searchResEntry"]
