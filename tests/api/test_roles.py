"""Roles of the console: editor, REST, who may what, names and clusters, no gain of rights."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken
from knox.settings import CONSTANTS

from console.accounts.models import CustomRole, Profile
from console.audit.models import AuditRow
from console.frame.access import Role
from tests.api.conftest import API, Api, browser
from tests.api.traffic import Traffic
from tests.support.cluster import Cluster

ROLES = "/accounts/roles/"


def member(name: str, *permissions: str) -> User:
    """An account with one role of these permissions, and without a built-in role."""
    user = User.objects.create_user(name, password="x")
    role = CustomRole.objects.create(name=f"role-{name}", permissions=list(permissions))
    Profile.objects.filter(user=user).update(role=Role.NONE)
    user.profile.roles.add(role)
    return User.objects.get(pk=user.pk)


def rest(user: User, method: str, path: str, body: Any = None) -> Any:
    more = {} if body is None else {"data": body, "content_type": "application/json"}
    return getattr(Api(user).client, method)(path, **more)


def test_an_account_without_a_permission_may_only_change_itself(db: None, local: Cluster) -> None:
    page = browser(member("nobody"))
    assert page.get("/accounts/password/").status_code == 200
    for path in ("/clusters/local/", "/clusters/local/topics/", ROLES, "/audit/"):
        assert page.get(path).status_code == 403, path
    assert page.get("/api/v1/whoami").json()["permissions"] == []
    assert page.get("/api/v1/clusters").status_code == 403


def test_lists_show_the_permitted_names_only(
    db: None, local: Cluster, traffic: Traffic, staff: User
) -> None:
    for name in ("pay-a", "pay-b", "other"):
        assert rest(staff, "post", f"{API}/topics", {"name": name}).status_code == 201
    user = member("ann", "topics:write:pay-*@local", "messages:read:pay-a", "search:read")
    page = browser(user)
    names = [each["name"] for each in rest(user, "get", f"{API}/topics").json()["items"]]
    assert names == ["pay-a", "pay-b"]
    listed = page.get("/clusters/local/topics/").content.decode()
    assert "pay-b" in listed
    assert "other" not in listed
    assert page.get("/clusters/local/topics/other/").status_code == 403
    assert page.get("/clusters/local/messages/?topic=pay-a").status_code == 200
    assert page.get("/clusters/local/messages/?topic=pay-b").status_code == 403
    assert page.get("/clusters/local/messages/?topic=pay-a&topic=pay-b").status_code == 403
    chooser = page.get("/clusters/local/messages/").content.decode()
    assert "pay-a" in chooser
    assert "pay-b" not in chooser
    found = page.get(f"{API}/search?q=o").content.decode()
    assert "other" not in found
    for name, status in (("pay-c", 201), ("elsewhere", 403)):
        assert rest(user, "post", f"{API}/topics", {"name": name}).status_code == status, name
    denied = AuditRow.objects.filter(result="denied", action="topic.create").get()
    assert denied.reason == "needs topics:write"
    assert page.get("/").headers["Location"] == "/clusters/local/topics/"


def test_a_parameter_without_a_name_names_no_object(db: None, local: Cluster) -> None:
    rights = ("topics:*", "messages:*", "groups:*", "deadletters:*", "clusters:*", "offsets:*")
    page = browser(member("eve", *(f"{each}:mine@local" for each in rights)))
    reads = ("messages/find/?q=x&", "messages/send/?", "exports/topics/?", "broker-settings/?")
    for path in reads:
        assert page.get(f"/clusters/local/{path}=mine").status_code == 403, path
    chosen = {"names": ["other"], "typed_count": "1", "delete": "1"}
    for path in ("delete-topics/", "delete-groups/"):
        assert page.post(f"/clusters/local/{path}?=mine", chosen).status_code == 403, path
    for path in ("message/queryMessageByTopicAndKey.query?topic=other&key=x", "topic/list.query?x"):
        assert page.get(f"/{path}&=mine").status_code == 403, path
    assert page.get("/clusters/local/messages/?topic=mine").status_code in (200, 404)


def test_a_stored_message_of_another_topic_stays_closed(
    db: None, local: Cluster, traffic: Traffic, staff: User
) -> None:
    rest(staff, "post", f"{API}/topics", {"name": "closed"})
    sent = rest(staff, "post", f"{API}/messages", {"topic": "closed", "body": "secret"}).json()
    number = sent["items"][0]["offset_msg_id"]
    user = member("bob", "messages:read:open")
    for path in (f"{API}/messages/{number}", f"{API}/messages/{number}/body"):
        answer = rest(user, "get", path)
        assert answer.status_code == 403
        assert b"secret" not in answer.content
    assert browser(user).get(f"/clusters/local/messages/{number}/").status_code == 403


def test_the_editor_creates_changes_and_deletes_a_role(staff: User, reader: User) -> None:
    page = browser(staff)
    form = {"name": "payments", "description": "d", "permissions": "topics:read:pay-*"}
    assert page.post(f"{ROLES}create/", form).status_code == 302
    assert page.post(f"{ROLES}create/", form).status_code == 409
    for bad in ({"permissions": "cows:read"}, {"name": "viewer"}, {"name": "a b"}):
        assert page.post(f"{ROLES}create/", {**form, **bad}).status_code in (400, 422), bad
    url = f"/accounts/users/{reader.pk}/"
    page.post(url, {"role": "none", "roles": ["payments"]})
    shown = page.get(url).content.decode()
    assert "topics:read:pay-*" in shown
    asked = page.get(ROLES, {"resource": "topics", "action": "read", "name": "pay-1"})
    holders = {each.username: str(each.held.permission) for each in asked.context["holders"]}
    assert holders == {"reader": "topics:read:pay-*", "staff": "*:*"}
    every = page.get(ROLES, {"resource": "topics", "action": "read"}).context
    assert [each.username for each in every["holders"]] == ["staff"]
    assert dict(every["built_in"]) == {"none": 1, "viewer": 0, "operator": 0, "administrator": 1}
    page.post(f"{ROLES}one/payments/", {"permissions": "topics:read:x"})
    assert CustomRole.objects.get().permissions == ["topics:read:x"]
    page.post(f"{ROLES}one/payments/", {"delete": "1"})
    assert not CustomRole.objects.exists()
    done = AuditRow.objects.filter(result="done").values_list("action", flat=True).order_by("pk")
    assert list(done) == ["role.create", "user.role", "role.update", "role.delete"]
    assert AuditRow.objects.get(action="role.update").before == {
        "description": "d",
        "permissions": ["topics:read:pay-*"],
    }


def test_the_resources_do_the_same(staff: User, reader: User) -> None:
    body = {"name": "payments", "permissions": ["topics:read:pay-*"]}
    assert rest(staff, "post", "/api/v1/roles", body).status_code == 201
    assert rest(staff, "post", "/api/v1/roles", {**body, "permissions": ["x"]}).status_code == 400
    given = {"role": "none", "roles": ["payments"]}
    said = rest(staff, "put", "/api/v1/users/reader/roles", given).json()
    assert said["permissions"] == [{"role": "payments", "permission": "topics:read:pay-*"}]
    missing = {"role": "none", "roles": ["nope"]}
    assert rest(staff, "put", "/api/v1/users/reader/roles", missing).status_code == 404
    assert rest(staff, "get", "/api/v1/users/nobody/roles").status_code == 404
    who = "/api/v1/who-may?resource=topics&action=read&name=pay-1&cluster=x"
    assert rest(staff, "get", who).status_code == 400, "no such cluster"
    names = rest(staff, "get", who.removesuffix("&cluster=x")).json()
    assert [each["username"] for each in names] == ["reader", "staff"]
    asked = f"{ROLES}?resource=topics&action=read&name=pay-1&cluster="
    page = browser(staff).get(asked, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "<td>管理员</td>" in page
    assert "<td>payments</td>" in page, "a role of this console has only its name"
    assert rest(staff, "put", "/api/v1/roles/payments", {"permissions": []}).status_code == 200
    assert rest(staff, "delete", "/api/v1/roles/payments").status_code == 204
    assert [each["name"] for each in rest(staff, "get", "/api/v1/roles").json()] == [
        each.value for each in Role
    ]


@pytest.mark.must_beat(16)
def test_nobody_gives_or_takes_over_rights_beyond_his_own(staff: User, reader: User) -> None:
    keeper = member("keeper", "users:admin", "topics:write:pay-*")
    for wanted in ("*:*", "topics:admin:pay-*", "topics:write", "groups:read", "users:*"):
        body = {"name": "more", "permissions": [wanted]}
        assert rest(keeper, "post", "/api/v1/roles", body).status_code == 409, wanted
    body = {"name": "less", "permissions": ["topics:read:pay-x*"]}
    assert rest(keeper, "post", "/api/v1/roles", body).status_code == 201
    for given in ({"role": "administrator", "roles": []}, {"role": "viewer", "roles": []}):
        assert rest(keeper, "put", "/api/v1/users/keeper/roles", given).status_code == 409
    page: Client = browser(keeper)
    for user in (staff, reader):
        url = f"/accounts/users/{user.pk}/"
        _token, text = AuthToken.objects.create(user)
        revoke = {"revoke": text[: CONSTANTS.TOKEN_KEY_LENGTH]}
        for form in ({"password": "1"}, {"off": "1"}, {"role": "none"}, {"end": "all"}, revoke):
            assert page.post(url, form).status_code == 409, (user, form)
        user.refresh_from_db()
        assert user.is_active
        assert AuthToken.objects.filter(user=user).count() == 1
        assert user.check_password(f"{user.username}-password")
    form = {"username": "eve", "role": "viewer"}
    assert page.post("/accounts/users/create/", form).status_code == 409
    assert page.post("/accounts/users/create/", {**form, "role": "none"}).status_code == 200


def test_roles_of_the_account_limit_its_tokens(db: None, local: Cluster) -> None:
    user = member("carl", "topics:read:TBW*")
    page = browser(user)
    form = {"name": "t", "role": "none", "days": "1"}
    assert page.post("/accounts/tokens/", form).status_code == 400, "no permission"
    refused = page.post("/accounts/tokens/", {**form, "permissions": "topics:read"})
    assert refused.status_code == 400
    made = page.post("/accounts/tokens/", {**form, "permissions": "topics:read:TBW1*"})
    token = made.context["new_token"]
    script = Client(headers={"Authorization": f"Bearer {token}"})
    assert script.get(f"{API}/topics/TBW102").status_code == 200
    CustomRole.objects.update(permissions=[])
    assert script.get(f"{API}/topics/TBW102").status_code == 403, "the owner lost the right"


def test_rules_of_users_are_on_the_page_of_a_topic_for_their_administrators(
    db: None, local: Cluster, staff: User, reader: User
) -> None:
    url = "/clusters/local/topics/TBW102/permissions/"
    for user, shown in ((staff, True), (reader, False), (member("tom", "topics:*"), False)):
        answer = browser(user).get(url)
        assert answer.status_code == 200
        assert ("rules-heading" in answer.content.decode()) is shown, user
