"""Settings of sign-in by OpenID Connect and LDAP; part of `environment.py`.

Groups of both are mapped to roles: `admins=administrator;cn=ops,ou=groups,dc=example=operator`. The
text after the last `=` is a built-in role or a role of the console; `*` stands for everybody.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
LDAP_SECURITIES = ("starttls", "none")
LDAP_SERVERS_MAX = 5
GROUPS_MAX = 200
SESSION_HOURS_MAX = 7 * 24
SESSION_HOURS_DEFAULT = 12
#: Every account that signs in has the roles of this group.
EVERYBODY = "*"


class Reader(Protocol):
    """The part of the environment's reader that these settings need."""

    def text(self, name: str) -> str: ...
    def words(self, name: str) -> tuple[str, ...]: ...
    def number(self, name: str, least: int, most: int, default: int) -> int: ...
    def complain(self, name: str, value: str, expected: str) -> None: ...


#: Roles by group.
Groups = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An OpenID Connect provider; an empty issuer means none."""

    issuer: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: str = "openid profile email"
    title: str = ""
    username_claim: str = "preferred_username"
    #: Path of a claim: `groups`, `realm_access.roles`.
    groups_claim: str = "groups"
    groups: Groups = ()
    ca_file: str = ""
    session_hours: int = SESSION_HOURS_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapSettings:
    """LDAP servers; no URL means none."""

    urls: tuple[str, ...] = ()
    security: str = "starttls"
    ca_file: str = ""
    #: Account that searches users; without it, users are bound as `user_dn`.
    bind_dn: str = ""
    bind_password: str = field(default="", repr=False)
    base_dn: str = ""
    user_filter: str = "(uid={user})"
    #: Name of a direct bind: `uid={user},ou=people,dc=example` or `{user}@example.org`.
    user_dn: str = ""
    groups_attribute: str = "memberOf"
    group_base_dn: str = ""
    group_filter: str = "(member={dn})"
    groups: Groups = ()
    session_hours: int = SESSION_HOURS_DEFAULT


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """Settings of both ways to sign in beside local accounts."""

    oidc: OidcSettings
    ldap: LdapSettings


def read_identity_settings(read: Reader) -> IdentitySettings:
    """Read the variables; problems go to the reader."""
    return IdentitySettings(read_oidc_settings(read), read_ldap_settings(read))


def read_oidc_settings(read: Reader) -> OidcSettings:
    """Read the variables; problems go to the reader."""
    issuer = read.text("CONSOLE_OIDC_ISSUER")
    if not issuer:
        return OidcSettings()
    parts = urlsplit(issuer)
    is_safe = parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    )
    if not is_safe or not parts.hostname or parts.query or parts.fragment:
        read.complain("CONSOLE_OIDC_ISSUER", issuer, "https://host/path, as the provider names it")
    client_id = read.text("CONSOLE_OIDC_CLIENT_ID")
    if not client_id:
        read.complain("CONSOLE_OIDC_CLIENT_ID", "", "the identifier of the console's client")
    scopes = " ".join(read.words("CONSOLE_OIDC_SCOPES")) or OidcSettings().scopes
    if "openid" not in scopes.split():
        read.complain("CONSOLE_OIDC_SCOPES", scopes, "scopes with openid")
    return OidcSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=_secret(read, "CONSOLE_OIDC_CLIENT_SECRET_FILE"),
        scopes=scopes,
        title=read.text("CONSOLE_OIDC_TITLE"),
        username_claim=read.text("CONSOLE_OIDC_USERNAME_CLAIM") or "preferred_username",
        groups_claim=read.text("CONSOLE_OIDC_GROUPS_CLAIM") or "groups",
        groups=_groups(read, "CONSOLE_OIDC_GROUPS"),
        ca_file=_file(read, "CONSOLE_OIDC_CA_FILE"),
        session_hours=_hours(read, "CONSOLE_OIDC_SESSION_HOURS"),
    )


def read_ldap_settings(read: Reader) -> LdapSettings:
    """Read the variables; problems go to the reader."""
    urls = read.words("CONSOLE_LDAP_URL")
    if not urls:
        return LdapSettings()
    for url in urls:
        if not re.fullmatch(r"ldaps?://[^/\s@?#]+/?", url) or len(urls) > LDAP_SERVERS_MAX:
            read.complain("CONSOLE_LDAP_URL", url, "one to five of ldaps://host[:port]")
    security = read.text("CONSOLE_LDAP_SECURITY").lower() or "starttls"
    if security not in LDAP_SECURITIES:
        read.complain("CONSOLE_LDAP_SECURITY", security, f"one of {', '.join(LDAP_SECURITIES)}")
    user_filter = read.text("CONSOLE_LDAP_USER_FILTER") or LdapSettings().user_filter
    group_filter = read.text("CONSOLE_LDAP_GROUP_FILTER") or LdapSettings().group_filter
    user_dn, base_dn = read.text("CONSOLE_LDAP_USER_DN"), read.text("CONSOLE_LDAP_BASE_DN")
    for name, value, placeholder in (
        ("CONSOLE_LDAP_USER_FILTER", user_filter, "{user}"),
        ("CONSOLE_LDAP_GROUP_FILTER", group_filter, "{"),
        ("CONSOLE_LDAP_USER_DN", user_dn or "{user}", "{user}"),
    ):
        if placeholder not in value:
            read.complain(name, value, "a text with {user}, in group filters also {dn}")
    if not base_dn and not user_dn:
        read.complain("CONSOLE_LDAP_BASE_DN", "", "where users are, or CONSOLE_LDAP_USER_DN")
    bind_dn = read.text("CONSOLE_LDAP_BIND_DN")
    bind_password = _secret(read, "CONSOLE_LDAP_BIND_PASSWORD_FILE")
    if bind_dn and not bind_password:
        read.complain(
            "CONSOLE_LDAP_BIND_PASSWORD_FILE", "", f"a file with the password of {bind_dn}"
        )
    return LdapSettings(
        urls=urls,
        security=security,
        ca_file=_file(read, "CONSOLE_LDAP_CA_FILE"),
        bind_dn=bind_dn,
        bind_password=bind_password,
        base_dn=base_dn,
        user_filter=user_filter,
        user_dn=user_dn,
        groups_attribute=read.text("CONSOLE_LDAP_GROUPS_ATTRIBUTE") or "memberOf",
        group_base_dn=read.text("CONSOLE_LDAP_GROUP_BASE_DN"),
        group_filter=group_filter,
        groups=_groups(read, "CONSOLE_LDAP_GROUPS"),
        session_hours=_hours(read, "CONSOLE_LDAP_SESSION_HOURS"),
    )


def _hours(read: Reader, name: str) -> int:
    return read.number(name, 1, SESSION_HOURS_MAX, SESSION_HOURS_DEFAULT)


def _groups(read: Reader, name: str) -> Groups:
    """Parse `group=role;…`."""
    entries = [part.strip() for part in read.text(name).split(";") if part.strip()]
    found = []
    for entry in entries[:GROUPS_MAX]:
        group, sign, role = (part.strip() for part in entry.rpartition("="))
        if not sign or not group or not role:
            read.complain(name, entry, "group=role")
        found.append((group, role))
    if not entries or len(entries) > GROUPS_MAX:
        read.complain(name, "", f"1 to {GROUPS_MAX} entries group=role, separated by “;”")
    return tuple(found)


def _secret(read: Reader, name: str) -> str:
    """Read a file, so that no list of processes shows the secret."""
    file = read.text(name)
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        read.complain(name, file, f"a readable file ({problem})")
        return ""


def _file(read: Reader, name: str) -> str:
    file = read.text(name)
    if file and not Path(file).is_file():
        read.complain(name, file, "a file with certificates (PEM)")
    return file
