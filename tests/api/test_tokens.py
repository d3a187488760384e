"""Scoped API tokens: both schemes, permissions, last use, whoami, `manage.py create_token`."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from console.accounts.changes import issue_token
from console.accounts.models import TokenFacts
from console.audit.models import AuditRow
from console.frame.access import Role
from console.frame.permissions import read_permissions
from tests.api.conftest import API, browser
from tests.support.cluster import Cluster

TOKENS = "/accounts/tokens/"


def client_with(user: User, *permissions: str, role: Role = Role.ADMINISTRATOR) -> Client:
    _facts, text = issue_token(user, "t", role, 1, permissions=read_permissions(permissions))
    return Client(headers={"Authorization": f"Bearer {text}"})


@pytest.mark.must_beat(19)
def test_a_token_with_topics_read_reads_topics_and_nothing_else(
    staff: User, local: Cluster
) -> None:
    script = client_with(staff, "topics:read")
    assert script.get(f"{API}/topics").status_code == 200
    assert script.get(f"{API}/topics/TBW102").status_code == 200
    refused = script.delete(f"{API}/topics/TBW102")
    assert refused.status_code == 403
    assert "topics:admin:TBW102" in refused.json()["detail"]
    for path in (f"{API}/groups", f"{API}/messages/find?text=x", "/api/v1/audit", API):
        assert script.get(path).status_code == 403, path
    assert script.post(f"{API}/topics", {"name": "t"}, "application/json").status_code == 403
    assert script.get("/topic/list.query").status_code == 200, "Classic's paths agree"
    assert script.get("/consumer/groupList.query").status_code == 403
    row = AuditRow.objects.filter(result="denied", action="topic.delete").get()
    assert (row.token, row.target, row.reason) == ("t", "TBW102", "needs topics:admin")


def test_names_and_clusters_limit_a_token(staff: User, local: Cluster) -> None:
    script = client_with(staff, "topics:read:TBW*", "groups:read@elsewhere")
    assert script.get(f"{API}/topics/TBW102").status_code == 200
    assert script.get(f"{API}/topics/SELF_TEST_TOPIC").status_code == 403
    listed = script.get(f"{API}/topics").json()["items"]
    assert [each["name"] for each in listed] == ["TBW102"]
    assert script.get(f"{API}/topology").status_code == 403, "the picture shows every name"
    assert script.get(f"{API}/groups").status_code == 403
    assert script.get("/api/v1/clusters").status_code == 403
    seeing = client_with(staff, "clusters:read@local")
    assert [each["name"] for each in seeing.get("/api/v1/clusters").json()] == ["local"]
    blind = client_with(staff, "clusters:read@elsewhere")
    assert blind.get("/api/v1/clusters").json() == []


def test_the_permissions_of_a_token_are_a_subset_of_its_role(operator: User) -> None:
    form: dict[str, Any] = {"name": "t", "role": "operator", "days": "7"}
    page = browser(operator)
    refused = page.post(TOKENS, {**form, "permissions": "topics:read\ntopics:admin"})
    assert refused.status_code == 400
    assert b"topics:admin" in refused.content
    for bad in ("cows:read", "topics:fly", "topics:read:" + "*" * 9, "x" * 100_000):
        assert page.post(TOKENS, {**form, "permissions": bad}).status_code == 422, bad[:20]
    assert not TokenFacts.objects.exists()
    assert page.post(TOKENS, {**form, "permissions": "topics:read\n\n"}).status_code == 200
    assert TokenFacts.objects.get().permissions == ["topics:read"]
    row = AuditRow.objects.filter(action="token.create", result="done").get()
    assert row.after == {"role": "operator", "days": 7, "permissions": ["topics:read"]}


def test_a_token_knows_its_caller_and_notes_its_use(operator: User) -> None:
    script = client_with(operator, "topics:read", role=Role.OPERATOR)
    said = script.get("/api/v1/whoami", REMOTE_ADDR="10.1.2.3").json()
    assert said["username"] == "operator"
    assert (said["roles"], said["permissions"]) == (["operator"], ["*:write"])
    assert said["token"]["permissions"] == ["topics:read"]
    facts = TokenFacts.objects.select_related("token").get()
    expiry = facts.token.expiry
    assert expiry is not None
    assert said["token"]["expires_ms"] == int(expiry.timestamp() * 1000)
    assert (facts.last_used_from, facts.last_used_at is not None) == ("10.1.2.3", True)
    assert b"10.1.2.3" in browser(operator).get(TOKENS).content
    assert browser(operator).get("/api/v1/whoami").json()["token"] is None
    assert Client().get("/api/v1/whoami").status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "Token", "TOKEN"])
def test_both_schemes_are_accepted(scheme: str, operator: User) -> None:
    _facts, text = issue_token(operator, "t", Role.VIEWER, 1)
    script = Client(headers={"Authorization": f"{scheme} {text}"})
    assert script.get("/api/v1/whoami").status_code == 200
    for broken in (f"{scheme} {text} x", scheme, f"{scheme}{text}", f"Basic {text}"):
        other = Client(headers={"Authorization": broken})
        assert other.get("/api/v1/whoami").status_code == 401, broken


def test_the_command_limits_a_token(operator: User, local: Cluster) -> None:
    out = StringIO()
    call_command(
        "create_token", "operator", permission=["topics:read", "groups:read:a*"], stdout=out
    )
    script = Client(headers={"Authorization": f"Bearer {out.getvalue().strip()}"})
    assert script.get("/api/v1/whoami").json()["token"]["permissions"] == [
        "topics:read",
        "groups:read:a*",
    ]
    for wrong in ("cows:read", "topics:admin"):
        with pytest.raises(CommandError):
            call_command("create_token", "operator", permission=[wrong])
