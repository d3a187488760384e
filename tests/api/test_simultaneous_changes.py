"""Changes of the same version of an object: REST requests with `If-Match`, and two at once."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.accounts.changes import set_roles
from console.accounts.models import CustomRole
from console.audit.models import AuditRow
from console.frame.access import Role
from console.gateway import now_ms
from console.services.alarms.models import AlarmRule, Receiver
from console.services.clusters.models import ReadOnlyCluster
from console.services.masking.models import MaskingRule
from console.services.schemas.models import BodyRule, BodySchema
from tests.api.conftest import Api
from tests.api.test_body_schemas import upload
from tests.support.django_programs import printed_json
from tests.support.postgres import PostgreSql, why_not


def conditional(client: Client, method: str, path: str, first: Any, second: Any) -> Any:
    """Change an object with its ETag; the old ETag is refused; without one, the change is made.

    A deletion with the old ETag is refused. Returns the body of the refused change.
    """
    etag = client.get(path).headers["ETag"]

    def change(body: Any, **headers: str) -> Any:
        call = getattr(client, method)
        return call(path, data=body, content_type="application/json", headers=headers)

    changed = change(first, **{"If-Match": etag})
    assert changed.status_code == 200, changed.content
    assert changed.headers["ETag"] == client.get(path).headers["ETag"] != etag
    before = client.get(path).json()
    refused = change(second, **{"If-Match": etag})
    assert refused.status_code == 412
    assert refused.headers["ETag"] == changed.headers["ETag"]
    assert client.get(path).json() == before
    assert change(second, **{"If-Match": changed.headers["ETag"]}).status_code == 200
    assert change(first).status_code == 200
    assert change(second, **{"If-Match": "*"}).status_code == 200
    if not path.endswith("/roles"):
        refused = client.delete(path, headers={"If-Match": etag})
        assert refused.status_code == 412, refused.content
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert client.get(path).status_code == 200
    return refused.json()


def test_accounts_and_read_only_state(api: Api, staff: User) -> None:
    ann, path = User.objects.create_user("ann"), "/api/v1/users/ann"
    etag = api.client.get(path).headers["ETag"]
    set_roles(staff, ann, Role.OPERATOR, ())
    more: dict[str, Any] = {"content_type": "application/json", "headers": {"If-Match": etag}}
    refused = api.client.patch(path, data={"is_active": False}, **more)
    assert refused.status_code == 412
    assert User.objects.get(pk=ann.pk).is_active
    more["headers"] = {"If-Match": refused.headers["ETag"]}
    changed = api.client.patch(path, data={"is_active": False}, **more)
    assert changed.status_code == 200, changed.content
    assert changed.headers["ETag"] == api.client.get(path).headers["ETag"]
    assert api.client.delete(path, headers={"If-Match": etag}).status_code == 412
    deleted(api.client, path)
    path = "/api/v1/clusters/local/read-only"
    conditional(api.client, "put", path, {"reason": "a"}, {"reason": "b"})
    assert ReadOnlyCluster.objects.get().reason == "b"


def test_credentials_of_a_cluster(api: Api) -> None:
    path = "/api/v1/clusters/local/credentials"
    keys = [{"access_key": "key", "secret_key": f"secret {number}"} for number in (1, 2)]
    etag = api.client.get(path).headers["ETag"]
    made = api("put", "/credentials?force=true", keys[0], **{"If-Match": etag})
    assert made.status_code == 200, made.content
    refused = api("put", "/credentials?force=true", keys[1], **{"If-Match": etag})
    assert refused.status_code == 412
    assert refused.headers["ETag"] == made.headers["ETag"]
    assert api.client.delete(path, headers={"If-Match": etag}).status_code == 412
    assert api.client.get(path).json()["signer"]["access_key"] == "key"
    assert api.client.delete(path, headers={"If-Match": made.headers["ETag"]}).status_code == 204
    assert api.client.get(path).json()["signer"] is None


def test_a_condition_that_a_write_would_ignore_is_refused(api: Api) -> None:
    path = "/topics/TBW102/protection"
    answer = api("put", path, **{"If-Match": '"0123456789abcdef"'})
    assert answer.status_code == 400
    assert "If-Match" in answer.json()["errors"]
    assert api("put", path, **{"If-Match": "*"}).status_code == 200


def deleted(client: Client, path: str) -> None:
    """Delete an object with its ETag."""
    etag = client.get(path).headers["ETag"]
    assert client.delete(path, headers={"If-Match": etag}).status_code == 204
    assert client.get(path).status_code == 404
    assert client.delete(path, headers={"If-Match": etag}).status_code == 404
    assert not AuditRow.objects.filter(action__endswith=".delete").exclude(result="done").exists()


def test_alarms_masks_and_rules_of_bodies(api: Api) -> None:
    base = "/api/v1/clusters/local"
    values = {"name": "slow", "source": "finding", "severity": "warning"}
    rule = AlarmRule.objects.create(cluster="local", changed_ms=1, **values)
    path = f"{base}/alarm-rules/{rule.pk}"
    problem = conditional(api.client, "patch", path, {"note": "a"}, {"note": "b"})
    assert "Somebody changed this since you read it." in problem["detail"]
    assert AlarmRule.objects.get(pk=rule.pk).note == "b"
    deleted(api.client, path)
    mail = {"name": "duty", "kind": "mail", "recipients": "a@example.org", "language": "en"}
    made = api("post", "/alarm-receivers", mail)
    assert made.status_code == 201
    path = made.headers["Location"]
    assert made.headers["ETag"] == api.client.get(path).headers["ETag"]
    of = [{"recipients": f"{name}@example.org"} for name in "bc"]
    conditional(api.client, "patch", path, *of)
    assert Receiver.objects.get().recipients == "c@example.org"
    deleted(api.client, path)
    mask = {"name": "cards", "topic": "*", "kind": "json", "expression": "$..card"}
    path = api("post", "/masking-rules", mask).headers["Location"]
    conditional(api.client, "patch", path, {"note": "a"}, {"note": "b"})
    assert MaskingRule.objects.get().note == "b"
    deleted(api.client, path)
    upload(api)
    body = {"topic": "orders", "schema": "shop", "type_name": "shop.v1.Order", "framing": "raw"}
    path = api("post", "/body-rules", body).headers["Location"]
    conditional(api.client, "put", path, body | {"topic": "a"}, body | {"topic": "b"})
    assert BodyRule.objects.get().topic == "b"
    deleted(api.client, path)


def test_schemas_of_bodies(api: Api) -> None:
    def avro(text: str) -> dict[str, str]:
        return {"format": "avro", "content_base64": base64.b64encode(text.encode()).decode()}

    path, put = "/api/v1/clusters/local/body-schemas/orders", api.client.put
    new: dict[str, Any] = {"data": avro('"int"'), "content_type": "application/json"}
    for etag in ('"0123456789abcdef"', "*"):
        refused = put(path, **new, headers={"If-Match": etag})
        assert refused.status_code == 412, "a condition on a schema that does not exist"
        assert not BodySchema.objects.exists()
    made = put(path, **new)
    assert made.status_code == 200, made.content
    assert made.headers["ETag"] == api.client.get(path).headers["ETag"]
    problem = conditional(api.client, "put", path, avro('"string"'), avro('"long"'))
    assert problem["type"] == "urn:gantry:problem:changed"
    assert bytes(BodySchema.objects.get().content) == b'"long"'
    deleted(api.client, path)


@pytest.mark.parametrize("module", ["alarms.rules_api", "alarms.receivers_api", "masking.api"])
def test_a_patch_takes_back_no_field_of_a_change_meanwhile(
    api: Api, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    bodies = {
        "alarms.rules_api": (
            "/alarm-rules",
            {"name": "slow", "source": "finding", "severity": "warning"},
        ),
        "alarms.receivers_api": (
            "/alarm-receivers",
            {"name": "duty", "kind": "mail", "recipients": "a@example.org", "language": "en"},
        ),
        "masking.api": (
            "/masking-rules",
            {"name": "cards", "topic": "*", "kind": "json", "expression": "$..card"},
        ),
    }
    models: dict[str, Any] = {"alarms.rules_api": AlarmRule, "alarms.receivers_api": Receiver}
    collection, body = bodies[module]
    made = api("post", collection, body)
    assert made.status_code == 201, made.content
    stored = models.get(module, MaskingRule).objects.filter(name=body["name"])
    check = f"console.services.{module}.check_scope"
    # The check is between the read of the object and its save.
    monkeypatch.setattr(check, lambda *_: stored.update(name="renamed", changed_ms=now_ms()))
    path = made.headers["Location"]
    refused = api.client.patch(path, {"enabled": False}, content_type="application/json")
    assert refused.status_code == 412, refused.content
    assert models.get(module, MaskingRule).objects.get(name="renamed").enabled


def test_roles(api: Api, reader: User) -> None:
    CustomRole.objects.create(name="payments", permissions=["topics:read"])
    path, texts = "/api/v1/roles/payments", (["groups:read"], ["messages:read"])
    conditional(api.client, "put", path, *({"permissions": each} for each in texts))
    assert CustomRole.objects.get().permissions == ["messages:read"]
    deleted(api.client, path)
    CustomRole.objects.create(name="payments", permissions=["topics:read"])
    assert not AuditRow.objects.filter(action="role.update", result="failed").exists()
    path = f"/api/v1/users/{reader.username}/roles"
    roles = [{"role": "viewer", "roles": ["payments"]}, {"role": "operator", "roles": []}]
    conditional(api.client, "put", path, *roles)
    assert User.objects.get(pk=reader.pk).profile.role == "operator"


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        url = ""
        if request.param == "PostgreSQL":
            if reason := why_not():
                pytest.skip(reason)
            url = stack.enter_context(PostgreSql()).url
        yield outcomes_on(url, tmp_path_factory)


def outcomes_on(url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    found: dict[str, Any] = printed_json("tests.api.simultaneous_changes", url, home)
    return found


@pytest.mark.parametrize(
    "kind",
    [
        *("alarm rule", "receiver", "mask", "body rule", "body schema", "labels"),
        *("role", "roles of a user"),
        "last administrator",
    ],
)
def test_of_two_simultaneous_changes_one_is_refused(outcomes: dict[str, Any], kind: str) -> None:
    found = outcomes[kind]
    assert sorted(found["outcomes"]) == ["refused", f"saved {found['stored']}"]
