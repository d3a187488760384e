"""REST resources of accounts and API tokens: secrets shown once, rights that do not grow."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken

from console.accounts.changes import issue_token
from console.accounts.models import CustomRole, SecondFactor
from console.audit.models import AuditRow
from console.frame.access import Role
from console.frame.permissions import read_permissions
from tests.api.conftest import browser

pytestmark = pytest.mark.must_beat(28)
USERS, TOKENS = "/api/v1/users", "/api/v1/tokens"
PERMISSION = "topics:read:pay-*"


class Caller:
    """Calls with an API token of an account."""

    def __init__(
        self, user: User, role: Role = Role.ADMINISTRATOR, days: int = 30, *permissions: str
    ) -> None:
        asked = read_permissions(permissions)
        facts, text = issue_token(user, "test", role, days, permissions=asked)
        self.key = facts.token.token_key
        self.client = Client(headers={"Authorization": f"Bearer {text}"})

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        call = getattr(self.client, method)
        if method == "get":
            return call(path)
        return call(path, data=body, content_type="application/json", headers=headers)


def signs_in(name: str, password: str) -> bool:
    form = {"username": name, "password": password}
    return bool(Client().post("/accounts/login/", form).status_code == 302)


@pytest.fixture
def admin(staff: User) -> Caller:
    return Caller(staff)


def test_an_account_is_created_listed_disabled_and_gets_a_new_password(admin: Caller) -> None:
    made = admin("post", USERS, {"username": "ann", "role": "operator"}, **{"Idempotency-Key": "1"})
    assert made.status_code == 201, made.content
    assert made.headers["Cache-Control"] == "no-store"
    password = made.json()["password"]
    assert signs_in("ann", password)
    again = admin(
        "post", USERS, {"username": "ann", "role": "operator"}, **{"Idempotency-Key": "1"}
    )
    assert (again.status_code, again.json()["password"]) == (201, None)
    found = admin("get", f"{USERS}?q=AN&ordering=-name").json()
    assert [each["username"] for each in found["items"]] == ["ann"]
    one = admin("get", f"{USERS}/ann").json()
    assert one == found["items"][0]
    assert (one["role"], one["is_active"], one["is_external"], one["tokens"]) == (
        "operator", True, False, 0,
    )  # fmt: skip
    assert one["has_second_factor"] is False
    fresh = admin("post", f"{USERS}/ann/password").json()["password"]
    ann = User.objects.get(username="ann")
    assert ann.check_password(fresh)
    assert not ann.check_password(password)
    off = admin("patch", f"{USERS}/ann", {"is_active": False})
    assert (off.status_code, off.json()["is_active"]) == (200, False)
    assert not signs_in("ann", fresh)
    said = str(list(AuditRow.objects.values_list("before", "after", "outcomes")))
    assert password not in said
    assert fresh not in said
    actions = set(AuditRow.objects.values_list("action", flat=True))
    assert {"user.create", "user.password", "user.disable"} <= actions


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "STAFF"}, 409),
        ({"username": "st\N{CYRILLIC SMALL LETTER A}ff"}, 400),
        ({"username": "ok", "role": "root"}, 400),
        ({"username": ""}, 400),
        ({"username": "x" * 200}, 400),
        ({"username": "ok", "is_superuser": True}, 400),
    ],
)
def test_an_account_that_cannot_be_is_refused(
    admin: Caller, body: dict[str, Any], status: int
) -> None:
    before = User.objects.count()
    assert admin("post", USERS, body).status_code == status
    assert User.objects.count() == before


def test_accounts_are_walked_by_cursor(admin: Caller) -> None:
    for number in range(5):
        User.objects.create_user(f"u{number}")
    names, cursor = [], ""
    while cursor is not None:
        page = admin("get", f"{USERS}?limit=2&cursor={cursor}").json()
        names += [each["username"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert names == sorted(User.objects.values_list("username", flat=True))


def test_the_last_administrator_stays(admin: Caller) -> None:
    assert admin("patch", f"{USERS}/staff", {"is_active": False}).status_code == 409
    assert admin("get", f"{USERS}/staff").json()["is_active"]
    assert admin("get", f"{USERS}/nobody").status_code == 404


def test_an_account_is_deleted_with_all_that_signs_in(admin: Caller, operator: User) -> None:
    theirs, session = Caller(operator, Role.VIEWER), browser(operator)
    assert (theirs("get", TOKENS).status_code, session.get("/topics/").status_code) != (401, 302)
    audited = AuditRow.objects.filter(username="operator").count()
    assert admin("delete", f"{USERS}/operator").status_code == 204
    assert theirs("get", TOKENS).status_code == 401
    assert "/login/" in session.get("/accounts/tokens/").headers["Location"]
    assert not User.objects.filter(username="operator").exists()
    assert AuditRow.objects.filter(username="operator").count() == audited
    row = AuditRow.objects.get(action="user.delete")
    assert (row.target, row.result) == ("operator", "done")
    assert row.before == {"role": "operator", "roles": [], "is_active": True}
    for method in ("get", "delete"):
        assert admin(method, f"{USERS}/operator").status_code == 404
    assert admin("post", USERS, {"username": "operator"}).status_code == 201


def test_nobody_deletes_the_own_account_nor_the_last_administrator(
    admin: Caller, staff: User, operator: User
) -> None:
    own = admin("delete", f"{USERS}/staff")
    assert (own.status_code, "delete itself" in own.json()["detail"]) == (409, True)
    assert User.objects.filter(pk=staff.pk).exists()
    keeper = CustomRole.objects.create(name="keeper", permissions=["users:admin"])
    operator.profile.roles.add(keeper)
    above = Caller(operator, Role.NONE, 30, "users:admin")("delete", f"{USERS}/staff")
    assert above.status_code in {403, 409}
    assert User.objects.filter(pk=staff.pk).exists()


def test_the_second_factor_of_an_account_is_reset(admin: Caller, operator: User) -> None:
    path = f"{USERS}/operator/second-factor"
    assert admin("delete", path).status_code == 404
    SecondFactor.objects.create(user=operator, encrypted="x", is_confirmed=True)
    assert admin("get", f"{USERS}/operator").json()["has_second_factor"] is True
    assert admin("delete", path).status_code == 204
    assert admin("get", f"{USERS}/operator").json()["has_second_factor"] is False
    assert AuditRow.objects.filter(action="user.second-factor.reset", result="done").exists()


def test_a_token_is_created_listed_and_revoked(admin: Caller, staff: User) -> None:
    wish = {"name": "deploy", "role": "viewer", "days": 3, "permissions": [PERMISSION]}
    made = admin("post", TOKENS, wish)
    assert made.status_code == 201, made.content
    assert made.headers["Cache-Control"] == "no-store"
    new = made.json()
    text = new.pop("token")
    assert (new["role"], new["permissions"]) == ("viewer", [PERMISSION])
    listed = admin("get", TOKENS).json()["items"]
    assert listed[0] == new
    assert text not in str(listed)
    assert admin("get", f"{USERS}/staff/tokens").json()["items"][0]["key"] == new["key"]
    bearer = Client(headers={"Authorization": f"Bearer {text}"})
    assert bearer.get("/api/v1/whoami").json()["token"]["name"] == "deploy"
    assert admin("delete", f"{TOKENS}/{new['key']}").status_code == 204
    assert bearer.get("/api/v1/whoami").status_code == 401
    assert admin("delete", f"{TOKENS}/{new['key']}").status_code == 404
    targets = AuditRow.objects.filter(action__startswith="token.").values_list("target", flat=True)
    assert set(targets) == {"staff/deploy"}


@pytest.mark.parametrize(
    "wish",
    [
        {"role": "administrator"},
        {"role": "viewer"},
        {"role": "none", "permissions": ["topics:read"]},
        {"role": "none", "permissions": ["topics:write:pay-1"]},
        {"role": "none", "permissions": [PERMISSION], "days": 30},
    ],
)
def test_a_token_creates_no_token_with_more_rights_or_a_longer_life(
    staff: User, wish: dict[str, Any]
) -> None:
    narrow = Caller(staff, Role.NONE, 5, PERMISSION)
    refused = narrow("post", TOKENS, {"name": "more", "days": 2, **wish})
    assert refused.status_code == 409, refused.content
    assert AuthToken.objects.count() == 1
    same = {"name": "same", "role": "none", "permissions": ["topics:read:pay-1"], "days": 2}
    assert narrow("post", TOKENS, same).status_code == 201


def test_a_token_revokes_itself_and_no_token_with_more_rights(staff: User) -> None:
    wide, narrow = Caller(staff), Caller(staff, Role.VIEWER)
    assert narrow("delete", f"{TOKENS}/{wide.key}").status_code == 409
    assert narrow("delete", f"{TOKENS}/{narrow.key}").status_code == 204
    assert narrow("get", TOKENS).status_code == 401
    assert wide("get", TOKENS).status_code == 200


def test_an_operator_sees_own_tokens_and_no_accounts(admin: Caller, operator: User) -> None:
    theirs = Caller(operator, Role.OPERATOR)
    assert [each["key"] for each in theirs("get", TOKENS).json()["items"]] == [theirs.key]
    assert theirs("delete", f"{TOKENS}/{admin.key}").status_code == 404
    for method, path in (("get", USERS), ("post", USERS), ("get", f"{USERS}/staff/tokens")):
        assert theirs(method, path, {}).status_code == 403
    assert admin("delete", f"{USERS}/operator/tokens/{theirs.key}").status_code == 204
    assert theirs("get", TOKENS).status_code == 401
