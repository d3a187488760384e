"""Sign-in by OpenID Connect against a real provider: flow, groups, hostile tokens and requests."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from pytest_django import Settings

from console.accounts.external import ProviderFailed
from console.accounts.models import CustomRole
from console.accounts.oidc import attempts
from console.accounts.oidc import provider as console_provider
from console.accounts.oidc.provider import Attempt
from console.audit.models import AuditRow
from console.identity_settings import OidcSettings
from tests.support.cluster import Cluster
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider

START = "/accounts/oidc/"
CALLBACK = "/accounts/oidc/callback/"
LOGIN = "/accounts/login/"
DEADLINE_S = 60


@pytest.fixture(scope="module")
def shared() -> Iterator[OidcProvider]:
    found = OidcProvider()
    yield found
    found.close()


@pytest.fixture
def provider(shared: OidcProvider, settings: Settings, local: Cluster, db: None) -> OidcProvider:
    """A well-behaved provider that knows ann, an operator."""
    shared.person = {
        "sub": "248289761001",
        "preferred_username": "ann",
        "email": "ann@example.org",
        "groups": ["operators"],
    }
    shared.claims = shared.metadata = lambda value: value
    shared.sign, shared.user_info, shared.is_up = shared.signed, None, True
    shared.published = [shared.key]
    console_provider.forget()
    settings.OIDC = OidcSettings(
        issuer=shared.issuer,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        title="Example ID",
        groups=(("operators", "operator"), ("Payments", "payments"), ("admins", "administrator")),
    )
    return shared


def begin(client: Client, target: str = "") -> str:
    answer: Any = client.get(START, {"next": target} if target else {})
    assert answer.status_code == 302, answer.content
    return str(answer.url)


def sign_in(provider: OidcProvider, client: Client | None = None, target: str = "") -> Any:
    """The answer of the callback."""
    client = client or Client()
    return client.get(f"{CALLBACK}?{provider.authorize(begin(client, target))}")


def refused(answer: Any, *words: str) -> None:
    text = answer.content.decode()
    assert answer.status_code in (403, 503), answer.status_code
    for word in words:
        assert word in text, text
    assert not User.objects.filter(username="ann").exists()


@pytest.mark.must_beat(19)
def test_the_first_sign_in_creates_the_account_with_the_roles_of_its_groups(
    provider: OidcProvider,
) -> None:
    CustomRole.objects.create(name="payments", permissions=["topics:admin:pay-*"])
    provider.person["groups"] = ["operators", "payments", "unrelated"]
    client = Client()
    answer = sign_in(provider, client, "/clusters/local/topics/")
    assert (answer.status_code, answer.url) == (302, "/clusters/local/topics/")
    user = User.objects.get(username="ann")
    assert (user.email, user.has_usable_password()) == ("ann@example.org", False)
    whoami = client.get("/api/v1/whoami").json()
    assert (whoami["username"], whoami["roles"]) == ("ann", ["operator", "payments"])
    assert "topics:admin:pay-*" in str(whoami["permissions"])
    assert client.session.get_expiry_age() <= 12 * 3600
    assert AuditRow.objects.filter(action="user.external", target="ann", result="done").exists()
    assert client.get(LOGIN).status_code == 302


def test_groups_count_at_each_sign_in(provider: OidcProvider) -> None:
    provider.person["groups"] = ["admins"]
    assert sign_in(provider).status_code == 302
    provider.person["groups"] = ["OPERATORS"]
    assert sign_in(provider).status_code == 302
    user = User.objects.get(username="ann")
    assert (user.profile.role, user.is_superuser) == ("operator", False)
    provider.person["groups"] = ["others"]
    answer = sign_in(provider)
    assert answer.status_code == 403
    assert "CONSOLE_OIDC_GROUPS" in answer.content.decode()
    user.refresh_from_db()
    assert (user.profile.role, user.is_staff) == ("none", False), "open sessions have no role"
    assert AuditRow.objects.filter(action="user.external", after__role="none").exists()


def test_a_name_change_at_the_provider_keeps_the_account(provider: OidcProvider) -> None:
    sign_in(provider)
    provider.person["preferred_username"] = "anna"
    client = Client()
    sign_in(provider, client)
    assert client.get("/api/v1/whoami").json()["username"] == "ann"
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    "name", ["admin", "ADMIN", "\uff41dmin", "\N{LATIN SMALL LETTER ALPHA}dmin"]
)
def test_no_account_of_somebody_else_is_taken_over(provider: OidcProvider, name: str) -> None:
    User.objects.create_superuser("admin", password="local-password")
    provider.person["preferred_username"] = name
    client = Client()
    answer = sign_in(provider, client)
    assert answer.status_code == 403
    assert "belongs to another account" in answer.content.decode()
    assert client.get("/api/v1/whoami").status_code == 401


def test_a_new_account_has_one_script(provider: OidcProvider) -> None:
    provider.person["preferred_username"] = "\N{CYRILLIC SMALL LETTER A}nn"
    answer = sign_in(provider)
    assert answer.status_code == 403
    assert "mixes scripts" in answer.content.decode()
    provider.person["preferred_username"] = "m\N{LATIN SMALL LETTER U}\N{COMBINING DIAERESIS}ller"
    assert sign_in(provider).status_code == 302
    assert User.objects.get().username == "m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller"


def test_a_disabled_account_stays_out(provider: OidcProvider) -> None:
    sign_in(provider)
    User.objects.update(is_active=False)
    assert sign_in(provider).status_code == 403


def unsigned(claims: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, claims)
    text = ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts
    )
    return f"{text}."


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another"}, "CONSOLE_OIDC_CLIENT_ID"),
        ({"aud": []}, "CONSOLE_OIDC_CLIENT_ID"),
        ({"aud": [CLIENT_ID, "another"]}, "azp"),
        ({"azp": "another"}, "azp"),
        ({"iss": "https://evil.example"}, "CONSOLE_OIDC_ISSUER"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "exp"),
        ({"iat": 1}, "expired"),
        ({"iat": 4_000_000_000}, "not valid yet"),
        ({"nbf": 4_000_000_000}, "not valid yet"),
        ({"sub": ""}, "sub"),
        ({"at_hash": "AAAA"}, "at_hash"),
        ({"preferred_username": None, "name": "x"}, "CONSOLE_OIDC_USERNAME_CLAIM"),
    ],
)
def test_tokens_with_wrong_claims_are_refused(
    provider: OidcProvider, change: dict[str, Any], word: str
) -> None:
    def changed(claims: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in {**claims, **change}.items() if value is not None}

    provider.claims = changed
    refused(sign_in(provider), word)


def test_clocks_may_differ_a_little(provider: OidcProvider) -> None:
    now_s = int(time.time())
    provider.claims = lambda claims: {**claims, "iat": now_s + 30, "exp": now_s - 30}
    assert sign_in(provider).status_code == 302


@pytest.mark.parametrize("kind", ["none", "hmac-secret", "hmac-key", "other-key", "cut", "no-jwt"])
def test_tokens_with_wrong_signatures_are_refused(provider: OidcProvider, kind: str) -> None:
    other = RSAKey.generate_key(2048, {"kid": "one"})
    public = provider.key.as_pem(private=False)
    forge = {
        "none": unsigned,
        "hmac-secret": lambda claims: jwt.encode(
            {"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET.ljust(32))
        ),
        "hmac-key": lambda claims: jwt.encode(
            {"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(base64.b64encode(public))
        ),
        "other-key": lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, other),
        "cut": lambda claims: provider.signed(claims)[:-8],
        "no-jwt": lambda claims: "nonsense",
    }
    provider.sign = forge[kind]
    refused(sign_in(provider), "ID token is refused")


def test_keys_are_read_again_when_the_provider_has_new_ones(
    provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(provider)
    new = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
    provider.published = [new]
    provider.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "two"}, claims, new)
    assert sign_in(provider).status_code == 403, "keys were read a moment ago"
    monkeypatch.setattr(console_provider, "KEYS_AGAIN_S", 0.0)
    assert sign_in(provider).status_code == 302


def test_a_state_counts_once_and_in_its_browser(provider: OidcProvider) -> None:
    client = Client()
    query = provider.authorize(begin(client))
    refused(Client().get(f"{CALLBACK}?{query}"), "another browser")
    refused(client.get(f"{CALLBACK}?code=x&state=guess"), "another browser")
    refused(client.get(f"{CALLBACK}?code=x"), "another browser")
    assert client.get(f"{CALLBACK}?{query}").status_code == 302
    assert client.get(f"{CALLBACK}?{query}").status_code == 503


def test_an_old_attempt_and_another_issuer_are_refused(
    provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    query = provider.authorize(begin(client))
    refused(client.get(f"{CALLBACK}?{query}&iss=https://evil.example"), "iss")
    query = provider.authorize(begin(client))
    monkeypatch.setattr(attempts, "ATTEMPT_S_MAX", -1)
    refused(client.get(f"{CALLBACK}?{query}"), "has ended")


def test_a_code_of_another_attempt_is_worthless(provider: OidcProvider) -> None:
    """PKCE: the verifier of the victim's session does not fit the attacker's code."""
    victim, attacker = Client(), Client()
    stolen = dict(each.split("=", 1) for each in provider.authorize(begin(attacker)).split("&"))
    own = dict(each.split("=", 1) for each in provider.authorize(begin(victim)).split("&"))
    refused(victim.get(f"{CALLBACK}?code={stolen['code']}&state={own['state']}"), "invalid_grant")


def test_the_refusal_of_the_provider_is_shown_as_text(provider: OidcProvider) -> None:
    client = Client()
    query = provider.authorize(begin(client)).partition("state=")[2]
    answer = client.get(f"{CALLBACK}?error=access_denied&error_description=<b>no</b>&state={query}")
    refused(answer, "&lt;b&gt;no&lt;/b&gt;")


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_the_way_back_stays_on_this_site(provider: OidcProvider, target: str) -> None:
    assert sign_in(provider, target=target).url == "/"


def test_groups_come_from_the_user_info_and_from_nested_claims(
    provider: OidcProvider, settings: Settings
) -> None:
    settings.OIDC = replace(settings.OIDC, groups_claim="realm_access.roles")
    del provider.person["groups"]
    provider.user_info = {"sub": "somebody else", "realm_access": {"roles": ["admins"]}}
    refused(sign_in(provider), "another person")
    provider.user_info["sub"] = provider.person["sub"]
    assert sign_in(provider).status_code == 302
    assert User.objects.get(username="ann").profile.role == "administrator"


def test_everybody_can_have_a_role_and_a_missing_role_is_named(
    provider: OidcProvider, settings: Settings
) -> None:
    provider.person["groups"] = []
    settings.OIDC = replace(settings.OIDC, groups=(("*", "lost"),))
    refused(sign_in(provider), "CONSOLE_OIDC_GROUPS", "lost")
    settings.OIDC = replace(settings.OIDC, groups=(("*", "viewer"),))
    assert sign_in(provider).status_code == 302
    assert User.objects.get(username="ann").profile.role == "viewer"


def test_a_provider_that_is_down_is_named_and_local_accounts_sign_in(
    provider: OidcProvider,
) -> None:
    User.objects.create_superuser("admin", password="local-password")
    provider.is_up = False
    answer = Client().get(START)
    assert answer.status_code == 503
    assert "CONSOLE_OIDC_ISSUER" in answer.content.decode()
    page = Client()
    shown = page.get(LOGIN).content.decode()
    assert "Sign in with Example ID" in shown
    signed = page.post(LOGIN, {"username": "admin", "password": "local-password"})
    assert signed.status_code == 302


def test_a_failure_counts_for_others_for_a_while(
    provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.is_up = False
    assert Client().get(START).status_code == 503
    provider.is_up = True
    assert Client().get(START).status_code == 503
    monkeypatch.setattr(console_provider, "FAILED_S", 0.0)
    assert Client().get(START).status_code == 302


def test_a_slow_provider_does_not_keep_others_waiting(
    provider: OidcProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_provider, "WAIT_S_MAX", 0.05, raising=False)
    asked, go_on, second_ends = Event(), Event(), Event()
    failures: list[str] = []

    def slow(metadata: Any) -> Any:
        asked.set()
        go_on.wait(DEADLINE_S)
        return metadata

    def second() -> None:
        try:
            console_provider.authorization_url(settings.OIDC, Attempt.new(), "http://x")
        except ProviderFailed as failure:
            failures.append(str(failure.detail))
        second_ends.set()

    provider.metadata = slow
    first = Thread(
        target=console_provider.authorization_url,
        args=(settings.OIDC, Attempt.new(), "http://x"),
    )
    first.start()
    assert asked.wait(DEADLINE_S)
    other = Thread(target=second)
    other.start()
    is_free = second_ends.wait(DEADLINE_S / 10)
    go_on.set()
    first.join()
    other.join()
    assert is_free
    assert failures == ["The sign-in provider is slow."]


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://another.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
    ],
)
def test_metadata_of_another_provider_or_without_tls_are_refused(
    provider: OidcProvider, change: dict[str, Any]
) -> None:
    provider.metadata = lambda found: {**found, **change}
    assert Client().get(START).status_code == 503


def test_without_a_provider_there_is_no_such_page(
    settings: Settings, local: Cluster, db: None
) -> None:
    settings.OIDC = OidcSettings()
    assert Client().get(START).status_code == 404
    assert Client().get(CALLBACK).status_code == 404
    assert "Sign in with" not in Client().get(LOGIN).content.decode()
