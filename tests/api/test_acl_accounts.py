"""Accounts and white list of a cluster with ACL 1.0: pages, REST resources, refusals."""

import asyncio
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.audit.models import AuditRow
from console.gateway import gateway
from console.resources.models import Change
from core_broker.client import Credentials
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AccessEntry
from tests.api.conftest import Api, browser
from tests.support.accounts_cluster import ADMINISTRATOR, RULES, accounts_cluster, write_rules
from tests.support.cluster import Cluster
from tests.support.secured_cluster import further_broker, signed

PAGES = "/clusters/local/acl-accounts"
ACCOUNTS = "/acl-accounts"
WHITE = "/acl-white-list"
SETTINGS = {"topic_perms": ["orders=PUB|SUB"], "group_perms": ["billing=SUB"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("accounts")


@pytest.fixture(scope="module")
def secured(folder: Path) -> Iterator[Cluster]:
    with accounts_cluster(folder) as cluster:
        yield cluster


@pytest.fixture
def api(secured: Cluster, staff: User, settings: Settings) -> Iterator[Api]:
    """The API of an administrator, on a cluster whose only account is ADMINISTRATOR."""
    settings.CONSOLE_CLUSTERS = {"local": secured.namesrv_addr}
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": ADMINISTRATOR}
    yield Api(staff)
    asyncio.run(_only_the_administrator(secured))


async def _only_the_administrator(cluster: Cluster) -> None:
    async with signed(cluster, ADMINISTRATOR) as admin:
        for account in (await admin.access_inventory(cluster.broker_addr)).accounts:
            if account.access_key != ADMINISTRATOR.access_key:
                await admin.delete_access_account(cluster.broker_addr, account.access_key)
        await admin.update_white_list(cluster.broker_addr, "10.99.99.99")


def on_broker(cluster: Cluster, name: str) -> AccessEntry:
    """The account as the broker has it in force."""

    async def ask() -> AccessEntry:
        async with signed(cluster, ADMINISTRATOR) as admin:
            found = (await admin.access_inventory(cluster.broker_addr)).accounts
        return next(each for each in found if each.access_key == name)

    return asyncio.run(ask())


def signs_in(cluster: Cluster, name: str, secret_key: str) -> bool:
    """Whether the broker accepts the signature."""

    async def ask() -> bool:
        async with signed(cluster, Credentials(name, secret_key)) as admin:
            try:
                await admin.runtime_info(cluster.broker_addr)
            except RequestRefused:
                return False
        return True

    return asyncio.run(ask())


def create(api: Api, name: str, **more: Any) -> Any:
    answer = api("post", ACCOUNTS, {"name": name, **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def audited(action: str) -> str:
    return str([row for row in AuditRow.house.values() if row["action"].startswith(action)])


def test_an_account_is_created_changed_and_deleted_by_rest(api: Api, secured: Cluster) -> None:
    wanted = {"name": "billing-1", **SETTINGS}
    preview = api("post", f"{ACCOUNTS}?dry_run=true", wanted).json()
    lines = {line["field"]: line["after"] for line in preview["changes"]}
    assert lines["Topic:orders"] == "PUB|SUB"
    assert lines["defaultTopicPerm"] == "DENY"
    assert api.get(ACCOUNTS)["total"] == 1

    made = create(api, **wanted)
    assert len(made["secret_key"]) == 32
    assert signs_in(secured, "billing-1", made["secret_key"])
    assert on_broker(secured, "billing-1").topic_perms == ["orders=PUB|SUB"]
    assert api("post", ACCOUNTS, wanted).status_code == 409

    answer = api("get", f"{ACCOUNTS}/billing-1")
    assert made["secret_key"] not in answer.content.decode()
    etag = answer.headers["ETag"]
    change = {
        "admin": True,
        "topic_perms": [],
        "group_perms": ["billing=SUB|PUB"],
        "white_remote_address": "10.0.0.{1,2}",
    }
    dry = api("patch", f"{ACCOUNTS}/billing-1?dry_run=true", change).json()["changes"]
    assert [(line["field"], line["before"], line["after"]) for line in dry] == [
        ("admin", False, True),
        ("whiteRemoteAddress", "", "10.0.0.{1,2}"),
        ("Topic:orders", "PUB|SUB", None),
        ("Group:billing", "SUB", "PUB|SUB"),
    ]
    assert on_broker(secured, "billing-1").admin is False, "a dry run changes nothing"
    assert api("patch", f"{ACCOUNTS}/billing-1", change, **{"If-Match": etag}).status_code == 200
    account = on_broker(secured, "billing-1")
    assert (account.admin, account.topic_perms) == (True, [])
    assert (account.group_perms, account.white_remote_address) == (
        ["billing=PUB|SUB"],
        "10.0.0.{1,2}",
    )
    assert signs_in(secured, "billing-1", made["secret_key"]), "a change keeps the secret key"
    assert api("patch", f"{ACCOUNTS}/billing-1", change, **{"If-Match": etag}).status_code == 412

    assert api("delete", f"{ACCOUNTS}/billing-1").status_code == 200
    assert api("get", f"{ACCOUNTS}/billing-1").status_code == 404
    assert audited("acl_account.delete") != "[]"
    assert made["secret_key"] not in audited("")


def test_a_secret_key_is_replaced_and_never_returned(api: Api, secured: Cluster) -> None:
    given = create(api, "billing-2", secret_key="given-by-hand")
    assert given["secret_key"] is None
    assert signs_in(secured, "billing-2", "given-by-hand")
    path = f"{ACCOUNTS}/billing-2/secret-key"
    assert api("post", f"{path}?dry_run=true", {}).json()["changes"][0]["after"] == "***"
    assert signs_in(secured, "billing-2", "given-by-hand")
    changed = api("post", path, {})
    assert changed.headers["Cache-Control"] == "no-store"
    assert not signs_in(secured, "billing-2", "given-by-hand")
    assert signs_in(secured, "billing-2", changed.json()["secret_key"])
    for secret in ("given-by-hand", changed.json()["secret_key"], ADMINISTRATOR.secret_key):
        assert secret not in audited("")
        for read in (ACCOUNTS, f"{ACCOUNTS}/billing-2", "/acl-states", WHITE):
            assert secret not in api("get", read).content.decode(), read


def test_the_page_creates_previews_saves_and_undoes(
    api: Api, secured: Cluster, staff: User
) -> None:
    page = browser(staff)
    given = {
        "name": "shop-1: {a} #b",
        "default_topic_perm": "DENY",
        "default_group_perm": "SUB",
        "topic_perms": "orders=PUB|SUB\nyes=PUB\n- x: 'y'=SUB",
        "group_perms": "",
        "white_remote_address": "",
        "brokers": ["broker-a"],
    }
    created = page.post("/clusters/local/create-acl-account/", given)
    assert created.status_code == 200, created.content.decode()
    assert created.headers["Cache-Control"] == "no-store"
    found = re.search(r"<dt>secretKey</dt><dd[^>]*>(\S+)", created.content.decode())
    assert found
    secret_key = html.unescape(found[1])
    name = given["name"]
    assert signs_in(secured, str(name), secret_key)
    before = on_broker(secured, str(name))
    assert before.topic_perms == ["orders=PUB|SUB", "yes=PUB", "- x: 'y'=SUB"]
    change = Change.objects.filter(name=name)
    home = f"{PAGES}/shop-1:%20%7Ba%7D%20%23b/"
    for path in ("", "edit/", "delete/", "secret-key/"):
        answer = page.get(f"{home}{path}")
        assert answer.status_code == 200, path
        assert secret_key not in answer.content.decode(), path

    given |= {"topic_perms": "orders=SUB", "admin": "on"}
    preview = page.post(f"{home}edit/", {**given, "preview": ""}).content.decode()
    assert "Topic:orders" in preview
    assert on_broker(secured, str(name)) == before, "a preview changes nothing"
    assert page.post(f"{home}edit/", {**given, "save": ""}).status_code == 302
    assert on_broker(secured, str(name)).topic_perms == ["orders=SUB"]
    assert page.post(f"{home}undo/{change.get().pk}/").status_code == 302
    assert set(on_broker(secured, str(name)).topic_perms) == set(before.topic_perms)
    assert on_broker(secured, str(name)).admin is False
    assert signs_in(secured, str(name), secret_key)
    assert page.post(f"{home}delete/", {"typed_name": name}).status_code == 302
    assert page.get(home).status_code == 404


def test_the_white_list_is_previewed_changed_and_undone(
    api: Api, secured: Cluster, staff: User
) -> None:
    assert api.get(WHITE)["configs"][0]["patterns"] == ["10.99.99.99"]
    wanted = {"patterns": ["10.99.99.99", "10.0.0.{1,2}", "fd00::/64", "*:*:*:*:*:*:*:*"][:3]}
    dry = api("patch", f"{WHITE}?dry_run=true", wanted).json()["changes"]
    assert dry[0]["after"] == "10.99.99.99, 10.0.0.{1,2}, fd00::/64"
    assert len(api.get(WHITE)["configs"][0]["patterns"]) == 1
    etag = api("get", WHITE).headers["ETag"]
    assert api("patch", WHITE, wanted, **{"If-Match": etag}).status_code == 200
    assert api.get(WHITE)["configs"][0]["patterns"] == wanted["patterns"]
    assert api("patch", WHITE, wanted, **{"If-Match": etag}).status_code == 412
    assert audited("acl_white_list.update") != "[]"

    page = browser(staff)
    form = {"patterns": "10.99.99.99\n10.0.0.5-20", "brokers": ["broker-a"]}
    edit = "/clusters/local/acl-white-list/edit/"
    assert page.get(edit).status_code == 200
    assert "10.0.0.5-20" in page.post(edit, {**form, "preview": ""}).content.decode()
    assert page.post(edit, {**form, "save": ""}).status_code == 302
    assert api.get(WHITE)["configs"][0]["patterns"] == ["10.99.99.99", "10.0.0.5-20"]
    shown = page.get(f"{PAGES}/").content.decode()
    change = Change.objects.filter(kind="acl_white_list").first()
    assert change is not None
    undo = f"/clusters/local/acl-white-list/{change.name}/undo/{change.pk}/"
    assert undo in shown
    assert page.post(undo).status_code == 302
    assert api.get(WHITE)["configs"][0]["patterns"] == wanted["patterns"]
    assert api("patch", WHITE, {"patterns": []}).status_code == 200
    assert api.get(WHITE)["configs"][0]["patterns"] == []


def test_versions_count_the_changes_of_each_broker(api: Api, folder: Path) -> None:
    def version() -> int:
        (state,) = api.get("/acl-states")["items"]
        assert (state["state"], state["problem"]) == ("on", None)
        (file,) = state["files"]
        assert file["path"] == str(folder / "home/conf/plain_acl.yml")
        return int(file["counter"])

    before = version()
    create(api, "counted-1")
    assert version() == before + 1


def test_the_console_does_not_lock_itself_out(
    api: Api, secured: Cluster, staff: User, settings: Settings, tmp_path: Path
) -> None:
    own = f"{ACCOUNTS}/{ADMINISTRATOR.access_key}"
    for refused in (
        api("delete", own),
        api("patch", own, {"admin": False}),
        api("post", f"{own}/secret-key", {}),
    ):
        assert refused.status_code == 409, refused.content
        assert "Credentials" in refused.json()["hint"]
    assert signs_in(secured, ADMINISTRATOR.access_key, ADMINISTRATOR.secret_key)
    gateway.close()
    with accounts_cluster(tmp_path, RULES.replace("10.99.99.99", "127.0.0.1")) as open_cluster:
        settings.CONSOLE_CLUSTERS = {"local": open_cluster.namesrv_addr}
        settings.CONSOLE_CLUSTER_CREDENTIALS = {}
        unsigned = Api(staff)
        refused = unsigned("patch", WHITE, {"patterns": ["10.0.0.1"]})
        assert refused.status_code == 409, refused.content
        more = {"patterns": ["127.0.0.1", "10.0.0.1"]}
        assert unsigned("patch", WHITE, more).status_code == 200


def test_differences_between_brokers_and_switched_off_brokers_are_shown(
    staff: User, settings: Settings, tmp_path: Path
) -> None:
    homes = {name: tmp_path / f"home-{name}" for name in "bc"}
    for home in homes.values():
        write_rules(home)
    with (
        accounts_cluster(tmp_path) as cluster,
        further_broker(cluster, tmp_path / "b", broker_name="broker-b", rocketmq_home=homes["b"]),
        further_broker(
            cluster,
            tmp_path / "c",
            broker_name="broker-c",
            rocketmq_home=homes["c"],
            acl_enable=False,
        ),
    ):
        settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
        settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": ADMINISTRATOR}
        api, page = Api(staff), browser(staff)
        states = {each["broker"]: each["state"] for each in api.get("/acl-states")["items"]}
        assert states == {"broker-a": "on", "broker-b": "on", "broker-c": "off"}
        offered = page.get("/clusters/local/create-acl-account/").content.decode()
        assert 'value="broker-b"' in offered
        assert 'value="broker-c"' not in offered
        refused = api("post", ACCOUNTS, {"name": "billing-3", "brokers": ["broker-c"]})
        assert refused.status_code == 404, refused.content
        assert api("post", ACCOUNTS, {"name": "billing-3", **SETTINGS}).status_code == 201
        change = {"topic_perms": ["orders=SUB"], "brokers": ["broker-b"]}
        outcomes = api("patch", f"{ACCOUNTS}/billing-3", change).json()["outcomes"]
        assert [each["broker"] for each in outcomes] == ["broker-b"]
        assert api.get(f"{ACCOUNTS}/billing-3")["drift"] is True
        shown = page.get(f"{PAGES}/billing-3/").content.decode()
        assert "PUB|SUB" in shown
        assert "different settings" in shown
        assert api("patch", WHITE, {"patterns": [], "brokers": ["broker-b"]}).status_code == 200
        assert api.get(WHITE)["drift"] is True
        listed = page.get(f"{PAGES}/").content.decode()
        assert "aclEnable=false" in listed
        assert "differs" in listed


def test_operators_neither_see_nor_change_accounts(api: Api, operator: User) -> None:
    for path in (ACCOUNTS, WHITE, "/acl-states"):
        assert Api(operator)("get", path).status_code == 403
    page = browser(operator)
    assert page.get(f"{PAGES}/").status_code == 403
    assert page.get("/clusters/local/acl-white-list/edit/").status_code == 403


def test_an_account_that_is_no_administrator_is_led_to_the_credentials(
    api: Api, staff: User, settings: Settings
) -> None:
    secret_key = create(api, "plain-1")["secret_key"]
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": Credentials("plain-1", secret_key)}
    gateway.close()
    refused = Api(staff)("get", ACCOUNTS)
    assert refused.status_code == 502, refused.content
    assert "Credentials" in refused.json()["hint"]
    assert "Credentials" in browser(staff).get(f"{PAGES}/").content.decode()


def test_a_cluster_without_accounts_names_the_setting(staff: User, local: Cluster) -> None:
    for path in (ACCOUNTS, WHITE):
        refused = Api(staff)("get", path)
        assert refused.status_code == 409
        assert refused.json()["type"] == "urn:gantry:problem:no-access-control"
        assert "aclEnable=true" in refused.json()["hint"]
    assert Api(staff).get("/acl-states")["items"][0]["state"] == "off"
    page = browser(staff)
    shown = page.get(f"{PAGES}/")
    assert shown.status_code == 200
    assert "aclEnable=false" in shown.content.decode()
    other = page.get("/clusters/local/acl-users/").content.decode()
    assert f'href="{PAGES}/"' in other, "each generation has a tab"
