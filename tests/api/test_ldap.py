"""Sign-in by LDAP against real servers: ldaptor always, OpenLDAP's slapd where it is installed."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from console.accounts import ldap_directory
from console.accounts.ldap_directory import DirectoryFailed, person_of
from console.accounts.models import CustomRole
from console.identity_settings import LdapSettings
from tests.support.certificates import Authority
from tests.support.cluster import Cluster
from tests.support.ldap_server import BASE, SEARCHER, SLAPD, LdapServer, running

LOGIN = "/accounts/login/"
WITHOUT_SLAPD = pytest.mark.skipif(SLAPD is None, reason="slapd is not installed")
KINDS = ["ldaptor", pytest.param("slapd", marks=WITHOUT_SLAPD)]


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LdapServer]:
    with running(request.param, tmp_path_factory.mktemp("ldap")) as found:
        yield found


@pytest.fixture
def ldap(server: LdapServer, settings: Settings, local: Cluster, db: None) -> LdapSettings:
    settings.LDAP = LdapSettings(
        urls=(f"ldap://127.0.0.1:{server.port}",),
        ca_file=server.ca_file,
        bind_dn=SEARCHER,
        bind_password="secret-searcher",
        base_dn=f"ou=people,{BASE}",
        group_base_dn=f"ou=groups,{BASE}",
        groups=(("operators", "operator"), (f"cn=payments,ou=groups,{BASE}", "payments")),
    )
    CustomRole.objects.create(name="payments", permissions=["topics:admin:pay-*"])
    return settings.LDAP


def sign_in(name: str, password: str, client: Client | None = None) -> Any:
    return (client or Client()).post(LOGIN, {"username": name, "password": password})


@pytest.mark.must_beat(19)
def test_a_person_signs_in_with_the_roles_of_the_groups(ldap: LdapSettings) -> None:
    client = Client()
    assert sign_in("ann", "secret-ann", client).status_code == 302
    whoami = client.get("/api/v1/whoami").json()
    assert (whoami["username"], whoami["roles"]) == ("ann", ["operator", "payments"])
    user = User.objects.get(username="ann")
    assert (user.email, user.has_usable_password()) == ("ann@example.org", False)
    ends = client.session.get_expiry_date()
    assert ends - timezone.now() <= timedelta(hours=12)
    session = client.session
    session["used"] = 1
    session.save()
    assert client.session.get_expiry_date() == ends, "an active session ends too"
    assert sign_in("ANN", "secret-ann").status_code == 302
    assert User.objects.count() == 1
    assert "directory" in Client().get(LOGIN).content.decode()


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", "wrong"),
        ("ann", ""),
        ("nobody", "secret-ann"),
        ("*", "secret-ann"),
        ("a*", "secret-ann"),
        ("ann)(uid=*", "secret-ann"),
        ("ann\x00", "secret-ann"),
        ("", ""),
        ("ann" * 100, "secret-ann"),
        ("ann", "x" * 2_000),
    ],
)
def test_wrong_names_and_passwords_are_refused(
    ldap: LdapSettings, name: str, password: str
) -> None:
    assert person_of(ldap, name, password) is None
    assert sign_in(name, password).status_code in (200, 429)
    assert not User.objects.exists()


def test_names_with_special_characters_are_escaped(ldap: LdapSettings) -> None:
    person = person_of(ldap, "bob*", "secret-bob")
    assert person is not None
    assert "operators" in person.groups


def test_an_empty_password_never_reaches_the_server(ldap: LdapSettings) -> None:
    """Servers answer it with success: an unauthenticated bind (RFC 4513, 5.1.2)."""
    broken = replace(ldap, urls=("ldap://127.0.0.1:1",))
    assert person_of(broken, "ann", "") is None


@pytest.mark.parametrize("is_tls", [False, True])
def test_direct_bind_with_a_pattern(ldap: LdapSettings, server: LdapServer, is_tls: bool) -> None:
    url = f"ldaps://127.0.0.1:{server.tls_port}" if is_tls else ldap.urls[0]
    direct = replace(
        ldap,
        urls=(url,),
        bind_dn="",
        bind_password="",
        base_dn="",
        user_dn=f"uid={{user}},ou=people,{BASE}",
    )
    person = person_of(direct, "ann", "secret-ann")
    assert person is not None
    assert {"operators", "payments"} <= person.groups
    assert person_of(direct, "ann", "wrong") is None
    assert person_of(direct, f"ann,ou=people,{BASE}", "secret-ann") is None


def test_direct_bind_enters_no_account_of_another_person(ldap: LdapSettings) -> None:
    """The name that binds and the name that the filter finds can be of two people."""
    direct = replace(ldap, bind_dn="", bind_password="", user_dn=f"uid={{user}},ou=people,{BASE}")
    assert person_of(direct, "ann", "secret-ann") is not None
    other = replace(direct, user_filter="(uid=bob\\2a)")
    assert person_of(other, "ann", "secret-ann") is None


def test_a_certificate_of_another_authority_is_refused(
    ldap: LdapSettings, server: LdapServer, tmp_path: Any
) -> None:
    other = Authority(tmp_path, "other").pair.cert
    for url in (ldap.urls[0], f"ldaps://127.0.0.1:{server.tls_port}"):
        with pytest.raises(DirectoryFailed):
            person_of(replace(ldap, urls=(url,), ca_file=other), "ann", "secret-ann")


def test_the_next_server_is_asked(ldap: LdapSettings) -> None:
    both = replace(ldap, urls=("ldap://127.0.0.1:1", *ldap.urls))
    assert person_of(both, "ann", "secret-ann") is not None


def test_a_server_that_is_down_is_named_and_local_accounts_sign_in(
    ldap: LdapSettings, settings: Settings
) -> None:
    settings.LDAP = replace(ldap, urls=("ldap://127.0.0.1:1",))
    User.objects.create_superuser("admin", password="local-password")
    answer = sign_in("ann", "secret-ann")
    assert "CONSOLE_LDAP_URL" in answer.content.decode()
    assert not AccessAttempt.objects.exists(), "an outage locks nobody out"
    assert sign_in("admin", "local-password").status_code == 302


def test_a_server_that_never_answers_is_given_up(
    ldap: LdapSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldap_directory, "ANSWER_S_MAX", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(DirectoryFailed):
            person_of(replace(ldap, urls=(f"ldap://127.0.0.1:{port}",)), "ann", "secret-ann")


def test_passwords_of_local_accounts_do_not_leave_the_console(
    ldap: LdapSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.create_user("ann", password="local-password")
    monkeypatch.setattr("console.accounts.ldap_backend.person_of", None)
    assert sign_in("ann", "secret-ann").status_code == 200
    assert sign_in("Ann", "secret-ann").status_code == 200
    assert sign_in("ann", "local-password").status_code == 302


def test_a_wrong_search_account_is_no_wrong_password(ldap: LdapSettings) -> None:
    with pytest.raises(DirectoryFailed, match="CONSOLE_LDAP_BIND_DN"):
        person_of(replace(ldap, bind_password="wrong"), "ann", "secret-ann")


def test_without_a_mapped_group_nobody_enters(ldap: LdapSettings, settings: Settings) -> None:
    settings.LDAP = replace(ldap, groups=(("others", "administrator"),))
    answer = sign_in("ann", "secret-ann")
    assert "CONSOLE_LDAP_GROUPS" in answer.content.decode()
    assert not User.objects.exists()


def test_wrong_passwords_lock_the_name(ldap: LdapSettings) -> None:
    answers = [sign_in("ann", "wrong").status_code for _number in range(6)]
    assert answers[-1] == 429
    assert sign_in("ann", "secret-ann").status_code == 429


def test_classic_and_the_second_factor(ldap: LdapSettings, settings: Settings) -> None:
    form = {"username": "ann", "password": "secret-ann"}
    client = Client()
    assert client.post("/login/login.do", form).json()["status"] == 0
    assert client.session.get_expiry_age() <= 12 * 3600
    settings.SECOND_FACTOR = "required"
    assert sign_in("ann", "secret-ann").url == "/accounts/login/enrol/"
