"""Users, sessions and API tokens: administration, and secrets shown once."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from console.accounts.changes import issue_token
from console.accounts.models import Profile, SignIn, TokenFacts
from console.audit.models import AuditRow
from console.frame.access import Role, role_of
from tests.api.conftest import browser
from tests.support.cluster import Cluster

USERS = "/accounts/users/"
TOKENS = "/accounts/tokens/"
ASK = "/api/v1/clusters/local/topics"
CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"


def role(user: User) -> Role | None:
    return role_of(User.objects.get(pk=user.pk))


def with_token(text: str) -> Client:
    return Client(headers={"Authorization": f"Token {text}"})


def shown(answer: Any) -> str:
    """Return the text between <code> and </code>."""
    found = re.search(r"<code[^>]*>([^<…]{16,})</code>", answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1]


def test_a_new_user_signs_in_with_the_password_that_is_shown_once(staff: User, db: None) -> None:
    client = browser(staff)
    answer = client.post(f"{USERS}create/", {"username": "ann", "role": "operator"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    password = shown(answer)
    ann = User.objects.get(username="ann")
    assert role(ann) is Role.OPERATOR
    assert password not in client.get(f"{USERS}{ann.pk}/").content.decode()
    assert password not in str(list(AuditRow.objects.values_list("before", "after", "outcomes")))
    signed_in = Client()
    form = {"username": "ann", "password": password}
    assert signed_in.post("/accounts/login/", form).status_code == 302
    assert signed_in.get(TOKENS).status_code == 200


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"username": "STAFF", "role": "viewer"}, 409),
        ({"username": "a b", "role": "viewer"}, 400),
        ({"username": "x" * 200, "role": "viewer"}, 422),
        ({"username": "ok", "role": "root"}, 422),
        ({"username": "", "role": "viewer"}, 422),
        ({"username": "nul\x00", "role": "viewer"}, 422),
        ({"username": f"st{CYRILLIC_A}ff", "role": "viewer"}, 400),
        ({"username": "\uff53taff", "role": "viewer"}, 400),
        ({"username": "st\N{LATIN SMALL LETTER ALPHA}ff", "role": "viewer"}, 409),
        ({"username": "new\N{HANGUL CHOSEONG FILLER}", "role": "viewer"}, 400),
    ],
)
def test_a_user_that_cannot_be_is_told_why(form: dict[str, str], status: int, staff: User) -> None:
    assert browser(staff).post(f"{USERS}create/", form).status_code == status
    assert User.objects.count() == 1


@pytest.mark.parametrize(("language", "said"), [("en", "mixes scripts"), ("zh-hans", "文字")])
def test_a_refused_name_stays_in_the_form_with_the_reason(
    language: str, said: str, staff: User
) -> None:
    client = browser(staff)
    name, wanted = f"{CYRILLIC_A}nn", {"Accept-Language": language}
    answer = client.post(f"{USERS}create/", {"username": name, "role": "viewer"}, headers=wanted)
    page = answer.content.decode()
    assert f'value="{name}"' in page
    assert said in page
    assert "CYRILLIC SMALL LETTER A" in page


def test_an_account_from_before_keeps_signing_in(db: None) -> None:
    name = f"{CYRILLIC_A}dmin"
    User.objects.create_user(name, password="an-old-password")
    signed_in = Client()
    form = {"username": name, "password": "an-old-password"}
    assert signed_in.post("/accounts/login/", form).status_code == 302
    assert signed_in.get(TOKENS).status_code == 200


def test_a_role_is_changed_and_holds_at_once(staff: User, operator: User, local: Cluster) -> None:
    theirs = browser(operator)
    assert theirs.get("/clusters/local/create-topic/").status_code == 200
    browser(staff).post(f"{USERS}{operator.pk}/", {"role": "viewer"})
    assert role(operator) is Role.VIEWER
    assert theirs.get("/clusters/local/create-topic/").status_code == 403
    row = AuditRow.objects.get(action="user.role")
    assert (row.target, row.before, row.after) == (
        "operator", {"role": "operator", "roles": []}, {"role": "viewer", "roles": []},
    )  # fmt: skip


@pytest.mark.parametrize("form", [{"role": "viewer"}, {"off": "1"}])
def test_the_last_administrator_stays(form: dict[str, str], staff: User) -> None:
    answer = browser(staff).post(f"{USERS}{staff.pk}/", form)
    assert answer.status_code == 409
    assert b"last administrator" in answer.content
    staff.refresh_from_db()
    assert staff.is_active
    assert role(staff) is Role.ADMINISTRATOR


def test_switching_off_ends_sessions_and_tokens(
    staff: User, operator: User, local: Cluster
) -> None:
    theirs = browser(operator)
    _facts, text = issue_token(operator, "t", Role.OPERATOR, 1)
    admin = browser(staff)
    admin.post(f"{USERS}{operator.pk}/", {"off": "1"})
    assert theirs.get(TOKENS).status_code == 302
    assert with_token(text).get(ASK).status_code == 401
    admin.post(f"{USERS}{operator.pk}/", {"on": "1"})
    assert theirs.get(TOKENS).status_code == 302, "the session is gone for good"
    assert with_token(text).get(ASK).status_code == 200


def test_a_reset_password_is_shown_once_and_ends_sessions(staff: User, operator: User) -> None:
    theirs = browser(operator)
    answer = browser(staff).post(f"{USERS}{operator.pk}/", {"password": "1"})
    operator.refresh_from_db()
    assert operator.check_password(shown(answer))
    assert theirs.get(TOKENS).status_code == 302


def test_sessions_are_listed_and_ended_one_by_one(staff: User, operator: User) -> None:
    first, second = browser(operator), browser(operator)
    admin = browser(staff)
    page = admin.get(f"{USERS}{operator.pk}/").content.decode()
    numbers = re.findall(r'name="end" value="(\d+)"', page)
    assert len(numbers) == 2
    newest = SignIn.objects.get(session_key=second.session.session_key)
    admin.post(f"{USERS}{operator.pk}/", {"end": str(newest.pk)})
    assert second.get(TOKENS).status_code == 302
    assert first.get(TOKENS).status_code == 200
    for strange in ("9" * 30, "x", "-1", ""):
        assert admin.post(f"{USERS}{operator.pk}/", {"end": strange}).status_code == 302
    assert first.get(TOKENS).status_code == 200
    admin.post(f"{USERS}{operator.pk}/", {"end": "all"})
    assert first.get(TOKENS).status_code == 302


def test_changing_ones_password_keeps_the_session_in_the_list(operator: User) -> None:
    client = browser(operator)
    form = {"old_password": "operator-password", "new_password1": "a-new-long-one"}
    client.post("/accounts/password/", {**form, "new_password2": "a-new-long-one"})
    assert SignIn.objects.filter(session_key=client.session.session_key).exists()
    client.post("/accounts/logout/")
    assert client.get(TOKENS).status_code == 302


def test_a_token_is_shown_once_and_kept_as_a_hash(operator: User, local: Cluster) -> None:
    client = browser(operator)
    answer = client.post(TOKENS, {"name": "deploy", "role": "viewer", "days": "7"})
    assert answer.headers["Cache-Control"] == "no-store"
    text = shown(answer)
    token = AuthToken.objects.get(user=operator)
    assert text not in (token.digest, token.token_key)
    assert text not in client.get(TOKENS).content.decode()
    assert token.expiry - timezone.now() < timedelta(days=7, seconds=1)
    assert with_token(text).get(ASK).status_code == 200
    assert with_token(text).post(ASK, {"name": "t"}, "application/json").status_code == 403
    facts = TokenFacts.objects.get(token=token)
    assert facts.last_used_at is not None
    row = AuditRow.objects.get(result="denied")
    assert (row.username, row.role, row.token) == ("operator", "viewer", "deploy")
    client.post(TOKENS, {"revoke": token.token_key})
    assert with_token(text).get(ASK).status_code == 401


def test_a_token_never_may_more_than_its_owner(operator: User, local: Cluster) -> None:
    client = browser(operator)
    answer = client.post(TOKENS, {"name": "root", "role": "administrator", "days": "7"})
    assert answer.status_code == 422
    _facts, text = issue_token(operator, "t", Role.OPERATOR, 1)
    Profile.objects.filter(user=operator).update(role=Role.VIEWER)
    answer = with_token(text).post(ASK, {"name": "t"}, "application/json")
    assert answer.status_code == 403, "the owner is a viewer by now"


@pytest.mark.parametrize("days", ["0", "-1", "3651", "1e9", ""])
def test_a_token_has_an_end(days: str, operator: User) -> None:
    form = {"name": "t", "role": "viewer", "days": days}
    assert browser(operator).post(TOKENS, form).status_code == 422


def test_tokens_are_ones_own_and_bounded(operator: User, reader: User, staff: User) -> None:
    for number in range(20):
        issue_token(operator, f"t{number}", Role.VIEWER, 1)
    form = {"name": "one more", "role": "viewer", "days": "1"}
    assert browser(operator).post(TOKENS, form).status_code == 409
    key = AuthToken.objects.filter(user=operator)[0].token_key
    assert browser(reader).post(TOKENS, {"revoke": key}).status_code == 404
    browser(staff).post(f"{USERS}{operator.pk}/", {"revoke": key})
    assert AuthToken.objects.filter(user=operator).count() == 19


@pytest.mark.parametrize("header", [b"Token \xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", "Token é" * 3])
def test_a_token_of_strange_bytes_is_refused(header: Any, db: None, local: Cluster) -> None:
    text = header.decode("latin-1") if isinstance(header, bytes) else header
    assert Client(HTTP_AUTHORIZATION=text).get(ASK).status_code == 401


@pytest.mark.must_beat(38)
def test_times_are_shown_in_the_chosen_zone_with_milliseconds(
    operator: User, local: Cluster
) -> None:
    client = browser(operator)
    client.post("/accounts/time-zone/", {"time_zone": "Asia/Shanghai"})
    assert re.search(
        r"\d\d:\d\d:\d\d\.\d{3} CST", client.get("/accounts/time-zone/").content.decode()
    )
    client.post("/accounts/time-zone/", {"time_zone": "America/New_York"})
    assert re.search(r"\.\d{3} E[SD]T", client.get("/accounts/time-zone/").content.decode())
    answer = client.post("/accounts/time-zone/", {"time_zone": "Mars/Olympus"})
    assert answer.status_code == 422
    Profile.objects.filter(user=operator).update(time_zone="Mars/Olympus")
    assert " UTC" in client.get("/accounts/time-zone/").content.decode(), "it may be gone one day"


def test_an_account_from_before_there_were_roles_is_a_viewer_until_it_is_told(
    operator: User, local: Cluster
) -> None:
    Profile.objects.filter(user=operator).delete()
    client = browser(operator)
    assert client.get("/clusters/local/topics/").status_code == 200
    assert client.get("/clusters/local/create-topic/").status_code == 403
    client.post("/accounts/time-zone/", {"time_zone": "UTC"})
    assert role(operator) is Role.VIEWER
