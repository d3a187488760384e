"""Sign-ins between start and callback: cookies instead of rows, and a bound of those that wait."""

import base64
from threading import Event, Semaphore, Thread, Timer
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from console.accounts.oidc import attempts, http
from console.accounts.oidc import provider as console_provider
from console.accounts.oidc.provider import Attempt
from console.audit.models import AuditRow
from tests.api.test_oidc import (
    CALLBACK,
    DEADLINE_S,
    LOGIN,
    START,
    begin,
    provider,
    refused,
    shared,
    sign_in,
)
from tests.support.oidc_provider import OidcProvider

__all__ = ["provider", "shared"]


def held(client: Client) -> dict[str, Any]:
    """The cookies of pending sign-ins."""
    return {
        name: morsel
        for name, morsel in client.cookies.items()
        if name.startswith(attempts.COOKIE_PREFIX) and morsel.value
    }


def test_many_tabs_do_not_disturb_one_another_and_are_bounded(provider: OidcProvider) -> None:
    client = Client()
    queries = [provider.authorize(begin(client)) for _number in range(attempts.ATTEMPTS_MAX + 1)]
    assert len(held(client)) == attempts.ATTEMPTS_MAX
    assert client.get(f"{CALLBACK}?{queries[0]}").status_code == 503
    assert client.get(f"{CALLBACK}?{queries[2]}").status_code == 302
    assert len(held(client)) == attempts.ATTEMPTS_MAX - 1


def test_visits_without_an_account_store_nothing(provider: OidcProvider) -> None:
    for _number in range(3):
        client = Client()
        begin(client)
        client.get(f"{CALLBACK}?code=x&state=guess")
        client.get(f"{CALLBACK}?error=access_denied")
    assert not Session.objects.exists()
    assert not AuditRow.objects.exists()


def test_the_cookie_of_a_sign_in_is_short_sealed_and_only_for_its_pages(
    provider: OidcProvider,
) -> None:
    client = Client()
    query = provider.authorize(begin(client, "/clusters/local/topics/"))
    [(name, morsel)] = held(client).items()
    assert morsel["path"] == START
    assert morsel["httponly"]
    assert morsel["samesite"] == "Lax"
    assert 0 < morsel["max-age"] <= 600
    assert "verifier" not in base64.urlsafe_b64decode(f"{morsel.value}===").decode("latin-1")
    forged = Client()
    forged.cookies[name] = f"{morsel.value[:-6]}AAAAA="
    refused(forged.get(f"{CALLBACK}?{query}"), "another browser")
    other = Client()
    other.cookies[f"{attempts.COOKIE_PREFIX}mine"] = morsel.value
    refused(other.get(f"{CALLBACK}?code=x&state=mine"), "another browser")


def test_long_addresses_and_odd_cookies_do_no_harm(provider: OidcProvider) -> None:
    client = Client(headers={"cookie": "gantry_oidc_a b=1; gantry_oidc_\xff=2; gantry_oidc_x=3"})
    assert client.get(START).status_code == 302
    assert client.get(CALLBACK, {"state": "a b"}).status_code == 503
    client = Client()
    answer = sign_in(provider, client, "/" + "x" * attempts.NEXT_BYTES_MAX)
    assert (answer.status_code, answer.url) == (302, "/")


def test_a_local_sign_in_after_a_visit_of_the_start_page_lasts_as_usual(
    provider: OidcProvider, settings: Settings
) -> None:
    User.objects.create_superuser("admin", password="local-password")
    client = Client()
    begin(client)
    signed = client.post(LOGIN, {"username": "admin", "password": "local-password"})
    assert signed.status_code == 302
    assert "_session_expiry" not in client.session
    assert client.session.get_expiry_age() == settings.SESSION_COOKIE_AGE


def test_sign_ins_that_wait_for_the_provider_are_bounded(
    provider: OidcProvider, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REQUEST_S_MAX", 10 * DEADLINE_S)
    arrived, go_on = Semaphore(0), Event()

    def slow(claims: dict[str, Any]) -> dict[str, Any]:
        arrived.release()
        go_on.wait(10 * DEADLINE_S)
        return claims

    def wait_for_the_provider() -> None:
        attempt = Attempt.new()
        url = console_provider.authorization_url(settings.OIDC, attempt, "http://x")
        query = parse_qs(provider.authorize(url))
        console_provider.person_of(settings.OIDC, attempt, query["code"][0], "http://x")

    client = Client()
    query = provider.authorize(begin(client))
    provider.claims = slow
    waiting = [Thread(target=wait_for_the_provider) for _ in range(console_provider.WAITING_MAX)]
    for each in waiting:
        each.start()
    at_the_latest = Timer(2 * DEADLINE_S, go_on.set)
    at_the_latest.start()
    try:
        assert all(arrived.acquire(timeout=DEADLINE_S) for _each in waiting)
        answer = client.get(f"{CALLBACK}?{query}")
    finally:
        at_the_latest.cancel()
        go_on.set()
        for each in waiting:
            each.join()
    refused(answer, f"{console_provider.WAITING_MAX} sign-ins wait for the provider")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert sign_in(provider).status_code == 302, "places are free again"
