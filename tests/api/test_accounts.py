"""Signing in and out, throttling, the password, theme and language; the commands for accounts."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from console.accounts.sign_in_limits import ACCOUNT_FAILURES_MAX, ADDRESS_FAILURES_MAX
from tests.support.cluster import Cluster

LOGIN = "/accounts/login/"
RIGHT = {"username": "staff", "password": "staff-password"}
WRONG = {"username": "staff", "password": "wrong"}


def test_signing_in_leads_to_the_page_that_was_asked_for(staff: User, local: Cluster) -> None:
    client = Client()
    answer = client.get("/clusters/local/topics/?q=a")
    assert answer.headers["Location"] == f"{LOGIN}?next=%2Fclusters%2Flocal%2Ftopics%2F%3Fq%3Da"
    answer = client.post(LOGIN, {**RIGHT, "next": "/clusters/local/topics/?q=a"})
    assert answer.headers["Location"] == "/clusters/local/topics/?q=a"
    cookie = client.cookies["gantry_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_signing_in_never_leads_elsewhere(staff: User, target: str) -> None:
    client = Client()
    answer = client.post(LOGIN, {**RIGHT, "next": target})
    assert answer.headers["Location"] == "/"
    client = Client()
    answer = client.post("/accounts/theme/", {"theme": "dark", "next": target})
    assert answer.headers["Location"] == "/"


def test_a_wrong_password_is_told_and_five_make_a_rest(staff: User) -> None:
    client = Client()
    for _ in range(4):
        assert client.post(LOGIN, WRONG).status_code == 200
    answer = client.post(LOGIN, WRONG)
    assert answer.status_code == 429
    assert b"Too many wrong passwords" in answer.content
    assert answer.headers["Retry-After"] == "300"
    assert client.post(LOGIN, RIGHT).status_code == 429, "also with the right one, for a while"
    other = Client(REMOTE_ADDR="192.0.2.9")
    assert other.post(LOGIN, RIGHT).status_code == 302, "from elsewhere they get in"


def guess(client: Client, name: str) -> int:
    return client.post(LOGIN, {"username": name, "password": "wrong"}).status_code


def test_one_address_gets_a_limited_number_of_guesses_for_all_names(staff: User) -> None:
    client = Client()
    statuses = [guess(client, f"name{number}") for number in range(ADDRESS_FAILURES_MAX)]
    assert statuses == [200] * (ADDRESS_FAILURES_MAX - 1) + [429]
    assert client.post(LOGIN, RIGHT).status_code == 429
    assert Client(REMOTE_ADDR="192.0.2.9").post(LOGIN, RIGHT).status_code == 302


def test_one_account_gets_a_limited_number_of_guesses_from_all_addresses(staff: User) -> None:
    statuses = [
        guess(Client(REMOTE_ADDR=f"192.0.2.{number}"), "staff")
        for number in range(ACCOUNT_FAILURES_MAX)
    ]
    assert statuses == [200] * (ACCOUNT_FAILURES_MAX - 1) + [429]
    assert Client(REMOTE_ADDR="198.51.100.1").post(LOGIN, RIGHT).status_code == 429


def test_an_own_sign_in_does_not_reset_the_guesses_at_others(staff: User, reader: User) -> None:
    client = Client()
    own = {"username": "reader", "password": "reader-password"}
    for _ in range(4):
        assert guess(client, "staff") == 200
    assert guess(client, "reader") == 200
    assert client.post(LOGIN, own).status_code == 302
    client.post("/accounts/logout/")
    assert guess(client, "staff") == 429
    assert client.post(LOGIN, own).status_code == 302, "the other name is not locked"


def test_signing_out_is_a_post_and_ends_the_session(staff: User, local: Cluster) -> None:
    client = Client()
    client.post(LOGIN, RIGHT)
    assert client.get("/accounts/logout/").status_code == 405
    assert client.get("/clusters/local/topics/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/clusters/local/topics/").status_code == 302


def test_the_password_can_be_changed(staff: User, local: Cluster) -> None:
    client = Client()
    client.post(LOGIN, RIGHT)
    form = {"old_password": "staff-password", "new_password1": "a-new-long-one"}
    answer = client.post("/accounts/password/", {**form, "new_password2": "a-new-long-one"})
    assert answer.status_code == 302, answer.content
    staff.refresh_from_db()
    assert staff.check_password("a-new-long-one")
    weak = {"old_password": "a-new-long-one", "new_password1": "1", "new_password2": "1"}
    assert b"too short" in client.post("/accounts/password/", weak).content


@pytest.mark.parametrize(("theme", "drawn"), [("dark", True), ("light", False), ("auto", False)])
def test_the_theme_is_drawn_by_the_server(db: None, theme: str, drawn: bool) -> None:
    client = Client()
    client.post("/accounts/theme/", {"theme": theme})
    text = client.get(LOGIN).content.decode()
    assert f'data-theme="{theme}"' in text
    assert ('data-bs-theme="dark"' in text) is drawn


def test_a_theme_that_does_not_exist_is_not_kept(db: None) -> None:
    client = Client()
    client.post("/accounts/theme/", {"theme": '"><script>'})
    assert "gantry_theme" not in client.cookies
    client.cookies["gantry_theme"] = "evil"
    assert 'data-theme="auto"' in client.get(LOGIN).content.decode()


def test_the_language_is_chosen_by_browser_and_by_hand(db: None) -> None:
    client = Client(headers={"Accept-Language": "zh-CN,zh;q=0.9"})
    assert 'lang="zh-hans"' in client.get(LOGIN).content.decode()
    client.post("/preferences/language/", {"language": "en", "next": LOGIN})
    assert 'lang="en"' in client.get(LOGIN).content.decode()


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_the_first_admin_gets_a_password_that_is_printed_once(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GANTRY_ADMIN_PASSWORD", raising=False)
    printed = run("ensure_admin")
    password = printed.rpartition(": ")[2].strip()
    admin = User.objects.get(username="admin")
    assert len(password) >= 16
    assert admin.check_password(password)
    assert admin.is_staff
    assert run("ensure_admin") == ""


def test_the_first_admin_takes_the_given_password(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTRY_ADMIN_PASSWORD", "given-by-hand")
    assert "given-by-hand" not in run("ensure_admin")
    assert User.objects.get(username="admin").check_password("given-by-hand")
    assert run("ensure_admin") == "", "nothing changed"
    monkeypatch.setenv("GANTRY_ADMIN_PASSWORD", "another")
    run("ensure_admin")
    assert User.objects.get(username="admin").check_password("another")


def test_no_admin_is_made_where_there_are_others(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GANTRY_ADMIN_PASSWORD", raising=False)
    User.objects.create_superuser("chief", password="x")
    assert run("ensure_admin") == ""
    assert not User.objects.filter(username="admin").exists()


def test_a_token_is_printed_alone_and_works(staff: User, local: Cluster) -> None:
    token = run("create_token", "staff").strip()
    assert " " not in token
    client = Client(headers={"Authorization": f"Token {token}"})
    assert client.get("/api/v1/clusters/local/topics").status_code == 200


def test_a_token_for_nobody_is_refused_with_the_names_there_are(staff: User) -> None:
    with pytest.raises(CommandError, match="there are: staff"):
        run("create_token", "nobody")
    with pytest.raises(CommandError, match="--days 0"):
        run("create_token", "staff", "--days=0")
    staff.is_active = False
    staff.save()
    with pytest.raises(CommandError, match="disabled"):
        run("create_token", "staff")
