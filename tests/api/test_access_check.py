"""Access checks: page and REST resource agree with the decisions of real brokers."""

import asyncio
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import gateway
from core_broker.client import AdminClient, Credentials
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from core_broker.remoting.codes import RequestCode as Code
from tests.api.conftest import Api, browser
from tests.support.access_checks import refusal_of, secret_of, without_place
from tests.support.acl1_matrix import FILE
from tests.support.cluster import Cluster
from tests.support.secured_cluster import ROOT, secured_cluster

CHECK = "/access-check"
PAGE = f"/clusters/local{CHECK}/"
LOOPBACK = "127.0.0.1"
ENTRIES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "writer": (("Topic:orders*", "Pub", "Allow"), ("Topic:orders-eu", "All", "Deny")),
    "reader": (("Topic:orders*", "Sub", "Allow"), ("Group:billing", "Sub", "Allow")),
    "keeper": (("Topic:*", "Create", "Allow"), ("Group:*", "Delete", "Allow")),
    "cluster-admin": (("Cluster:*", "All", "Allow"), ("Topic:orders", "Delete", "Allow")),
    "idle": (),
}
#: Header of the request of each action, from topic and group.
REQUESTS: dict[str, tuple[Code, tuple[str, ...]]] = {
    "publish": (Code.SEND_MESSAGE_V2, ("b",)),
    "consume": (Code.PULL_MESSAGE, ("topic", "consumerGroup")),
    "create-topic": (Code.UPDATE_AND_CREATE_TOPIC, ("topic",)),
    "delete-topic": (Code.DELETE_TOPIC_IN_BROKER, ("topic",)),
    "delete-group": (Code.DELETE_SUBSCRIPTIONGROUP, ("", "groupName")),
    "change-settings": (Code.UPDATE_BROKER_CONFIG, ()),
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        asyncio.run(make_users(cluster))
        yield cluster


async def make_users(cluster: Cluster) -> None:
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=[ROOT.hook()]) as admin:
        for name, entries in ENTRIES.items():
            user = UserInfo(username=name, password=secret_of(name))
            await admin.create_user(cluster.broker_addr, user)
            infos = [
                PolicyEntryInfo(resource=resource, actions=[action], decision=decision)
                for resource, action, decision in entries
            ]
            policy = PolicyInfo(policy_type="Custom", entries=infos)
            if infos:
                acl = AclInfo(subject=f"User:{name}", policies=[policy])
                await admin.create_acl(cluster.broker_addr, acl)


@pytest.fixture
def api(secured: Cluster, staff: User, settings: Settings) -> Api:
    return signed_api(secured, staff, settings, ROOT)


def signed_api(cluster: Cluster, staff: User, settings: Settings, signer: Credentials) -> Api:
    settings.CONSOLE_CLUSTERS = {"local": cluster.namesrv_addr}
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": signer}
    return Api(staff)


def ask(api: Api, **asked: str) -> dict[str, Any]:
    """The only broker's decision."""
    (only,) = api.get(f"{CHECK}?{urlencode({'address': LOOPBACK, **asked})}")["brokers"]
    decision: dict[str, Any] = only
    return decision


def agree(api: Api, cluster: Cluster, account: str, action: str, topic: str, group: str) -> bool:
    """Compare the answer with the broker's decision about a real request."""
    code, names = REQUESTS[action]
    given = zip(names, (topic, group), strict=False)
    header = {name: value for name, value in given if name}
    shown = ask(api, account=account, action=action, topic=topic, group=group)
    decided = asyncio.run(refusal_of(cluster.broker_addr, account, code, **header))
    found = (shown["code"] or 0, without_place(shown["remark"]))
    assert found == decided, (account, action, topic, group)
    assert shown["allowed"] == (not decided[0]), (account, action, topic, group)
    return bool(shown["allowed"])


def test_the_answers_agree_with_a_broker_with_users(api: Api, secured: Cluster) -> None:
    names = (*ENTRIES, ROOT.access_key, "nobody", "")
    topics, groups = ("orders", "orders-eu", "%RETRY%billing"), ("billing", "audit")
    allowed = {
        (account, action)
        for account, action, topic, group in product(names, REQUESTS, topics, groups)
        if agree(api, secured, account, action, topic, group)
    }
    assert {("writer", "publish"), ("reader", "consume"), ("keeper", "create-topic")} <= allowed
    assert {("keeper", "delete-group"), ("cluster-admin", "change-settings")} <= allowed
    assert not {each for each in allowed if each[0] in ("idle", "nobody", "")}


def test_the_answers_agree_with_a_broker_with_accounts(
    staff: User, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "home/conf/plain_acl.yml"
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    with Cluster(tmp_path, acl_enable=True, rocketmq_home=tmp_path / "home") as cluster:
        admin = Credentials("admin-1", secret_of("admin-1"))
        api = signed_api(cluster, staff, settings, admin)
        names = ("nothing", "defaults", "listed-1", "admin-1", "admin-2", "nobody-1", "")
        cases = list(product(names, REQUESTS, ("P", "S", "D"), ("G", "GD")))
        allowed = {case[:2] for case in cases if agree(api, cluster, *case)}
        assert {("listed-1", "publish"), ("listed-1", "consume")} <= allowed
        assert {("admin-1", "change-settings"), ("admin-1", "delete-topic")} <= allowed
        shown = ask(api, account="listed-1", action="publish", topic="X")
        assert [path["generation"] for path in shown["paths"]] == ["ACL 1.0"]
        assert shown["rules"] == [{"resource": "Topic:X", "rule": "defaultTopicPerm: DENY"}]
        content = browser(staff).get(f"{PAGE}?action=publish&account=listed-1&topic=P&address=::1")
        assert "topicPerms: P=PUB" in content.content.decode()

        gateway.close()
        ordinary = Credentials("nothing", secret_of("nothing"))
        api = signed_api(cluster, staff, settings, ordinary)
        hidden = ask(api, account="listed-1", action="publish", topic="P")
        assert (hidden["allowed"], hidden["rules"], hidden["code"]) == (None, [], None)
        assert "admin" in hidden["unknown"]


def test_the_path_names_the_entries_in_order_of_priority(api: Api, staff: User) -> None:
    shown = ask(api, account="writer", action="publish", topic="orders-eu")
    (path,) = shown["paths"]
    assert [step["check"] for step in path["steps"]] == [
        *("account", "signature", "administrator", "permissions")
    ]
    assert path["steps"][-1] == {
        "check": "permissions",
        "outcome": "refused",
        "resource": "Topic:orders-eu",
        "rules": ["Deny All on Topic:orders-eu", "Allow Pub on Topic:orders*"],
    }
    asked = urlencode(
        {"account": "writer", "action": "publish", "topic": "orders-eu", "address": LOOPBACK}
    )
    content = browser(staff).get(f"{PAGE}?{asked}").content.decode()
    assert "NO_PERMISSION" in content
    assert "the decision is deny." in content
    assert "/clusters/local/acl-users/writer/" in content
    assert 'value="orders-eu"' in content
    assert '<option value="writer">' in content


def test_source_addresses_decide(api: Api, secured: Cluster, staff: User) -> None:
    entry = {
        "resource": "Topic:orders",
        "actions": ["Pub"],
        "decision": "Allow",
        "source_ips": ["10.0.0.0/8"],
    }
    made = api("post", "/acl-users", {"name": "inside", "entries": [entry]})
    assert made.status_code == 201, made.content
    try:
        asked = {"account": "inside", "action": "publish", "topic": "orders"}
        assert ask(api, **asked, address="10.1.2.3")["allowed"]
        refused = ask(api, **asked, address="11.1.2.3")
        assert not refused["allowed"]
        assert "from 11.1.2.3" in refused["remark"]
    finally:
        assert api("delete", "/acl-users/inside").status_code == 200


def test_a_signer_without_permission_leaves_the_decision_unknown(
    secured: Cluster, staff: User, settings: Settings
) -> None:
    api = signed_api(secured, staff, settings, Credentials("idle", secret_of("idle")))
    shown = ask(api, account="writer", action="publish", topic="orders")
    assert shown["allowed"] is None
    assert "idle" in shown["unknown"]
    page = browser(staff).get(f"{PAGE}?action=publish&account=writer&topic=orders&address=::1")
    assert page.status_code == 200
    assert "unknown" in page.content.decode()


def test_a_broker_without_access_control_admits_everybody(staff: User, local: Cluster) -> None:
    shown = ask(Api(staff), account="anybody", action="publish", topic="orders")
    assert shown["allowed"]
    assert shown["paths"] == []
    assert "aclEnable" in shown["rules"][0]["rule"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"action": "publish", "topic": "a", "address": ""},
        {"action": "publish", "topic": "a", "address": "10.0.0.0/8"},
        {"action": "publish", "topic": "a", "address": "localhost"},
        {"action": "publish", "topic": "", "address": "::1"},
        {"action": "consume", "topic": "a", "address": "::1"},
        {"action": "delete-group", "topic": "a", "address": "::1"},
        {"action": "fly", "topic": "a", "address": "::1"},
        {"action": "<script>alert(1)</script>", "topic": "a", "address": "::1"},
        {"action": "publish", "topic": "a" * 256, "address": "::1"},
        {"action": "publish", "topic": "a\x00", "address": "::1"},
        {"action": "publish", "topic": "a", "address": "::1", "account": "x" * 1_025},
        {"action": "publish", "topic": "a", "address": "::1", "account": "x\x00"},
        {"action": "publish", "topic": "a", "address": "::1", "unheard": "1"},
        [("action", "publish"), ("topic", "a"), ("topic", "b"), ("address", "::1")],
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong: Any, api: Api, staff: User) -> None:
    answer = api("get", f"{CHECK}?{urlencode(wrong)}")
    assert answer.status_code == 400, answer.content
    page = browser(staff).get(f"{PAGE}?{urlencode(wrong)}")
    assert page.status_code in (200, 400)
    assert b"<script>alert" not in page.content


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "ä 用户", "a/b", "'; drop", " "])
def test_unusual_accounts_are_unknown_to_the_broker(name: str, api: Api, staff: User) -> None:
    asked = {"account": name, "action": "publish", "topic": name, "address": "fe80::1"}
    assert ask(api, **{**asked, "topic": "a"})["allowed"] is False
    page = browser(staff).get(f"{PAGE}?{urlencode({**asked, 'topic': 'a'})}")
    assert page.status_code == 200
    assert b"<script>alert" not in page.content


def test_operators_may_not_ask(operator: User, local: Cluster) -> None:
    assert Api(operator)("get", f"{CHECK}?action=publish").status_code == 403
    assert browser(operator).get(PAGE).status_code == 403
