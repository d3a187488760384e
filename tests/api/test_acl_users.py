"""Users and access control lists of a cluster with ACL 2.0: pages, REST resources, refusals."""

import asyncio
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.api.models import KeptAnswer
from console.audit.models import AuditRow
from console.gateway import gateway
from console.resources.models import Change
from core_broker.client import Credentials, Message, Producer
from core_broker.errors import RequestRefused
from tests.api.conftest import Api, browser
from tests.api.traffic import Traffic, poll
from tests.support.cluster import Cluster
from tests.support.secured_cluster import ROOT, secured_cluster, signed

PAGES = "/clusters/local/acl-users"
USERS = "/acl-users"
PUB = {"resource": "Topic:orders*", "actions": ["Pub"], "decision": "Allow"}
LINES = "Allow Pub,Sub on Topic:orders*\ndeny all on group:billing from 10.0.0.0/8,::1"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
def api(secured: Cluster, staff: User, settings: Settings) -> Iterator[Api]:
    """The API of an administrator, on a cluster whose only user is ROOT."""
    settings.CONSOLE_CLUSTERS = {"local": secured.namesrv_addr}
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": ROOT}
    yield Api(staff)
    asyncio.run(_only_root(secured))


async def _only_root(cluster: Cluster) -> None:
    async with signed(cluster, ROOT) as admin:
        for user in await admin.users(cluster.broker_addr):
            if user.username != ROOT.access_key:
                await admin.delete_user(cluster.broker_addr, user.username or "")


def acl(cluster: Cluster, name: str) -> list[str]:
    """The list of a user as the broker returns it."""

    async def ask() -> list[str]:
        async with signed(cluster, ROOT) as admin:
            found = await admin.acl(cluster.broker_addr, f"User:{name}")
        return [
            f"{policy.policy_type} {entry.decision} {entry.actions} {entry.resource} "
            f"{entry.source_ips}"
            for policy in (found.policies if found else None) or ()
            for entry in policy.entries or ()
        ]

    return asyncio.run(ask())


def signs_in(cluster: Cluster, name: str, password: str) -> bool:
    """Whether the broker accepts the signature of a super user."""

    async def ask() -> bool:
        async with signed(cluster, Credentials(name, password)) as admin:
            try:
                await admin.users(cluster.broker_addr)
            except RequestRefused:
                return False
        return True

    return asyncio.run(ask())


def shown_password(content: bytes) -> str:
    found = re.search(r"<dt>secretKey</dt><dd[^>]*>(\S+)", content.decode())
    assert found, content.decode()
    return html.unescape(found[1])


def create(api: Api, name: str, **more: Any) -> Any:
    answer = api("post", USERS, {"name": name, **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_user_is_created_changed_and_deleted_by_rest(api: Api, secured: Cluster) -> None:
    answer = api("post", f"{USERS}?dry_run=true", {"name": "alice", "entries": [PUB]})
    assert answer.status_code == 200, answer.content
    preview = answer.json()
    lines = {line["field"]: line["after"] for line in preview["changes"]}
    assert lines == {"userType": "Normal", "userStatus": "enable", "Topic:orders*": "Allow Pub"}
    assert api.get(USERS)["total"] == 1

    made = create(api, "alice", entries=[PUB], user_type="Super")
    assert len(made["password"]) == 32
    assert signs_in(secured, "alice", made["password"])
    assert acl(secured, "alice") == ["Custom Allow ['Pub'] Topic:orders* None"]
    assert api("post", USERS, {"name": "alice"}).status_code == 409
    row = next(each for each in api.get(USERS)["items"] if each["name"] == "alice")
    assert (row["user_type"], row["entries"], row["drift"]) == ("Super", 1, False)

    answer = api("get", f"{USERS}/alice")
    assert made["password"] not in answer.content.decode()
    etag = answer.headers["ETag"]
    entries = [
        {
            "resource": "topic:pay",
            "actions": ["sub", "PUB"],
            "decision": "deny",
            "source_ips": ["10.0.0.0/8"],
        }
    ]
    change = {"user_type": "Normal", "entries": entries}
    dry = api("patch", f"{USERS}/alice?dry_run=true", change).json()["changes"]
    assert [(line["field"], line["before"], line["after"]) for line in dry] == [
        ("userType", "Super", "Normal"),
        ("Topic:orders*", "Allow Pub", None),
        ("Topic:pay", None, "Deny Sub,Pub from 10.0.0.0/8"),
    ]
    assert api("patch", f"{USERS}/alice", change, **{"If-Match": etag}).status_code == 200
    assert acl(secured, "alice") == ["Custom Deny ['Sub', 'Pub'] Topic:pay ['10.0.0.0/8']"]
    assert api("patch", f"{USERS}/alice", change, **{"If-Match": etag}).status_code == 412

    assert api("delete", f"{USERS}/alice").status_code == 200
    assert api("get", f"{USERS}/alice").status_code == 404
    assert acl_audit("acl_user.delete")
    assert made["password"] not in acl_audit("")


def test_the_deletion_of_a_connected_user_needs_the_name(api: Api, secured: Cluster) -> None:
    made = create(api, "sender", entries=[{**PUB, "resource": "Topic:connected"}])
    assert api("post", "/topics", {"name": "connected"}).status_code == 201

    hook = Credentials("sender", made["password"]).hook()
    producer = Producer("senders", secured.namesrv_addr, rpc_hooks=[hook])
    traffic = Traffic(secured.namesrv_addr, secured.broker_addr)
    try:
        traffic.run(producer.start())
        traffic.run(producer.send(Message("connected", b"1")))
        path = f"{USERS}/sender"
        poll(lambda: api.get(f"{path}/impact")["clients"] == 1)
        assert api("delete", path).status_code == 409
        assert api("delete", f"{path}?confirm=sender").status_code == 200
    finally:
        traffic.run(producer.stop())
        traffic.close()
    assert api("delete", "/topics/connected").status_code == 200


def acl_audit(action: str) -> str:
    return str([row for row in AuditRow.house.values() if row["action"].startswith(action)])


def test_a_given_password_is_never_returned_nor_recorded(api: Api, secured: Cluster) -> None:
    answer = create(api, "bob", password="given by hand ", user_type="Super")
    assert answer["password"] is None
    assert signs_in(secured, "bob", "given by hand ")
    dry = api("post", f"{USERS}/bob/password?dry_run=true", {}).json()
    assert [line["field"] for line in dry["changes"]] == ["password"]
    assert signs_in(secured, "bob", "given by hand ")
    changed = api("post", f"{USERS}/bob/password", {})
    assert changed.status_code == 200, changed.content
    assert changed.headers["Cache-Control"] == "no-store"
    assert not signs_in(secured, "bob", "given by hand ")
    assert signs_in(secured, "bob", changed.json()["password"])
    for secret in ("given by hand", changed.json()["password"]):
        assert secret not in acl_audit("")


def test_a_repeated_request_does_not_return_the_password_again(api: Api) -> None:
    key = {"Idempotency-Key": "make-carol"}
    first = api("post", USERS, {"name": "carol"}, **key).json()
    again = api("post", USERS, {"name": "carol"}, **key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert {**first, "password": None} == again.json()
    assert first["password"] not in str(list(KeptAnswer.objects.values()))


def test_the_page_creates_shows_the_password_once_previews_and_undoes(
    api: Api, secured: Cluster, staff: User
) -> None:
    page = browser(staff)
    given = {
        "name": "dora",
        "user_type": "Super",
        "user_status": "enable",
        "entries": LINES,
        "brokers": ["broker-a"],
    }
    created = page.post("/clusters/local/create-acl-user/", given)
    assert created.status_code == 200, created.content.decode()
    assert created.headers["Cache-Control"] == "no-store"
    password = shown_password(created.content)
    assert signs_in(secured, "dora", password)
    before = acl(secured, "dora")
    assert before == [
        "Custom Allow ['Pub', 'Sub'] Topic:orders* None",
        "Custom Deny ['All'] Group:billing ['10.0.0.0/8', '::1']",
    ]
    for path in ("", "dora/", "dora/edit/", "dora/delete/", "dora/password/"):
        answer = page.get(f"{PAGES}/{path}")
        assert answer.status_code == 200, path
        assert password not in answer.content.decode(), path

    given |= {"entries": "Allow Pub,Sub on Topic:orders*\nAllow Sub on Topic:*"}
    preview = page.post(f"{PAGES}/dora/edit/", {**given, "preview": ""}).content.decode()
    assert "Group:billing" in preview
    assert acl(secured, "dora") == before, "a preview changes nothing"
    assert page.post(f"{PAGES}/dora/edit/", {**given, "save": ""}).status_code == 302
    assert acl(secured, "dora") == [before[0], "Custom Allow ['Sub'] Topic:* None"]
    assert signs_in(secured, "dora", password), "an edit keeps the password"

    change = Change.objects.get(name="dora")
    assert page.post(f"{PAGES}/dora/undo/{change.pk}/").status_code == 302
    assert acl(secured, "dora") == before
    assert page.post(f"{PAGES}/dora/undo/{change.pk}/").status_code == 409
    gone = page.post(f"{PAGES}/dora/delete/", {"typed_name": "dora"})
    assert gone.status_code == 302
    assert page.get(f"{PAGES}/dora/").status_code == 404


def test_the_page_changes_a_password(api: Api, secured: Cluster, staff: User) -> None:
    old = create(api, "eve", user_type="Super")["password"]
    page = browser(staff)
    password = shown_password(page.post(f"{PAGES}/eve/password/").content)
    assert signs_in(secured, "eve", password)
    assert not signs_in(secured, "eve", old)
    own = page.post(f"{PAGES}/eve/password/", {"password": "my own"})
    assert "my own" not in own.content.decode()
    assert signs_in(secured, "eve", "my own")


def test_the_console_does_not_lock_itself_out(api: Api, secured: Cluster) -> None:
    root = ROOT.access_key
    for refused in (
        api("delete", f"{USERS}/{root}"),
        api("patch", f"{USERS}/{root}", {"user_status": "disable"}),
        api("patch", f"{USERS}/{root}", {"user_type": "Normal"}),
        api("post", f"{USERS}/{root}/password", {}),
    ):
        assert refused.status_code == 409
        assert "Credentials" in refused.json()["hint"]
    assert signs_in(secured, root, ROOT.secret_key)
    assert api("patch", f"{USERS}/{root}", {"entries": [PUB]}).status_code == 200
    assert api("patch", f"{USERS}/{root}", {"entries": []}).status_code == 200


def test_a_disabled_user_is_refused(api: Api, secured: Cluster) -> None:
    password = create(api, "fay", user_type="Super")["password"]
    assert api("patch", f"{USERS}/fay", {"user_status": "disable"}).status_code == 200
    assert not signs_in(secured, "fay", password)
    assert api("patch", f"{USERS}/fay", {"user_status": "enable"}).status_code == 200
    assert signs_in(secured, "fay", password)


@pytest.mark.parametrize(
    "name", ["a/b", "..", "~", "<script>alert(1)</script>", "ä 用户", "'; drop table", "a" * 255]
)
def test_unusual_names_work_everywhere(name: str, api: Api, staff: User) -> None:
    created = api("post", USERS, {"name": name, "entries": [PUB]})
    assert created.status_code == 201, created.content
    place = created.headers["Location"].removeprefix("/api/v1/clusters/local")
    assert api.get(place)["name"] == name
    page = browser(staff)
    home = f"/clusters/local{place}/"
    for path in (f"{PAGES}/", home, f"{home}edit/", f"{home}delete/", f"{home}password/"):
        answer = page.get(path)
        assert answer.status_code == 200, path
        assert b"<script>alert" not in answer.content, path
    assert api("delete", place).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": " a"},
        {"name": "a\nb"},
        {"name": "a" * 256},
        {"name": "x", "user_type": "Root"},
        {"name": "x", "user_status": "on"},
        {"name": "x", "password": "   "},
        {"name": "x", "password": "p" * 1_025},
        {"name": "x", "super": True},
        {"name": "x", "entries": [{**PUB, "resource": "orders"}]},
        {"name": "x", "entries": [{**PUB, "resource": "Topic:"}]},
        {"name": "x", "entries": [{**PUB, "resource": "Topic:a*b"}]},
        {"name": "x", "entries": [{**PUB, "resource": "Queue:a"}]},
        {"name": "x", "entries": [{**PUB, "resource": "Topic:" + "a" * 256}]},
        {"name": "x", "entries": [{**PUB, "resource": "Topic:a\u0000"}]},
        {"name": "x", "entries": [{**PUB, "actions": []}]},
        {"name": "x", "entries": [{**PUB, "actions": ["Any"]}]},
        {"name": "x", "entries": [{**PUB, "actions": ["Pub", "Fly"]}]},
        {"name": "x", "entries": [{**PUB, "decision": "Maybe"}]},
        {"name": "x", "entries": [{**PUB, "source_ips": ["10.0.0.0/33"]}]},
        {"name": "x", "entries": [{**PUB, "source_ips": ["::1%eth0"]}]},
        {"name": "x", "entries": [{**PUB, "source_ips": ["10.0.0.0/255.0.0.0"]}]},
        {"name": "x", "entries": [{**PUB, "source_ips": ["10.0.0.1"] * 257}]},
        {"name": "x", "entries": [{**PUB, "policy_type": "Other"}]},
        {"name": "x", "entries": [PUB, {**PUB, "decision": "Deny"}]},
        {"name": "x", "entries": [{**PUB, "resource": f"Topic:t{i}"} for i in range(1_001)]},
        {"name": "x", "entries": "Allow Pub on Topic:a"},
        {"name": "x", "brokers": ["nowhere"]},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_bad_input_is_refused_before_a_broker_changes(wrong: dict[str, Any], api: Api) -> None:
    answer = api("post", USERS, wrong)
    assert answer.status_code in (400, 404), answer.content
    assert api.get(USERS)["total"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "Allow Pub",
        "Allow Pub on orders",
        "Allow on Topic:a",
        "Permit Pub on Topic:a",
        "Allow Fly on Topic:a",
        "Allow Pub on Topic:a from everywhere",
        "Allow Pub on Topic:a\nDeny Pub on Topic:a",
        "<script>alert(1)</script>",
    ],
)
def test_a_wrong_line_is_named(line: str, api: Api, staff: User) -> None:
    page = browser(staff)
    given = {"name": "x", "user_type": "Normal", "user_status": "enable", "brokers": ["broker-a"]}
    answer = page.post("/clusters/local/create-acl-user/", {**given, "entries": line})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "Line 1" in text or "Two entries" in text
    assert "<script>alert" not in text
    assert api.get(USERS)["total"] == 1


def test_default_entries_are_kept_apart(api: Api, secured: Cluster) -> None:
    default = {**PUB, "policy_type": "Default", "decision": "Deny"}
    create(api, "gus", entries=[PUB, default])
    assert len(acl(secured, "gus")) == 2
    assert api("patch", f"{USERS}/gus", {"entries": [default]}).status_code == 200
    assert acl(secured, "gus") == ["Default Deny ['Pub'] Topic:orders* None"]


def test_an_account_without_permission_is_led_to_the_credentials(
    api: Api, secured: Cluster, staff: User, settings: Settings
) -> None:
    password = create(api, "hal")["password"]
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": Credentials("hal", password)}
    gateway.close()
    refused = Api(staff)("get", USERS)
    assert refused.status_code == 502
    assert "Credentials" in refused.json()["hint"], refused.content
    assert "Credentials" in browser(staff).get(f"{PAGES}/").content.decode()


def test_operators_neither_see_nor_change_users(api: Api, operator: User) -> None:
    assert Api(operator)("get", USERS).status_code == 403
    page: Client = browser(operator)
    assert page.get(f"{PAGES}/").status_code == 403
    assert "acl-users" not in page.get("/clusters/local/credentials/").content.decode()


def test_a_cluster_without_access_control_names_the_settings(staff: User, local: Cluster) -> None:
    refused = Api(staff)("get", USERS)
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:gantry:problem:no-access-control"
    assert "authenticationEnabled" in refused.json()["hint"]
    shown = browser(staff).get(f"{PAGES}/")
    assert shown.status_code == 200
    assert "authorizationEnabled=true" in shown.content.decode()
