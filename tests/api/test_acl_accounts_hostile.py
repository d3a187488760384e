"""Accounts and white list of ACL 1.0: bad input, and names with special characters."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.api.conftest import Api, browser
from tests.api.test_acl_accounts import ACCOUNTS, PAGES, WHITE, signs_in
from tests.api.test_acl_accounts import api as api  # noqa: PLC0414 - fixtures of these tests too
from tests.api.test_acl_accounts import folder as folder  # noqa: PLC0414
from tests.api.test_acl_accounts import secured as secured  # noqa: PLC0414
from tests.support.cluster import Cluster


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "short1"},
        {"name": " account"},
        {"name": "account\n1"},
        {"name": "a" * 256},
        {"name": "account-x", "secret_key": "short1"},
        {"name": "account-x", "secret_key": "secret\u0000key"},
        {"name": "account-x", "secret_key": " blanks "},
        {"name": "account-x", "secret_key": "s" * 1_025},
        {"name": "account-x", "admin": "perhaps"},
        {"name": "account-x", "super": True},
        {"name": "account-x", "default_topic_perm": "pub"},
        {"name": "account-x", "default_group_perm": "ANY"},
        {"name": "account-x", "topic_perms": ["orders"]},
        {"name": "account-x", "topic_perms": ["=PUB"]},
        {"name": "account-x", "topic_perms": ["orders=FLY"]},
        {"name": "account-x", "topic_perms": ["a,b=PUB"]},
        {"name": "account-x", "topic_perms": ["a=PUB=SUB"]},
        {"name": "account-x", "topic_perms": ["a\nb=PUB"]},
        {"name": "account-x", "topic_perms": ["a=PUB", "a=SUB"]},
        {"name": "account-x", "topic_perms": ["%RETRY%g=SUB"]},
        {"name": "account-x", "topic_perms": ["a" * 256 + "=SUB"]},
        {"name": "account-x", "topic_perms": [f"t{i}=SUB" for i in range(1_001)]},
        {"name": "account-x", "topic_perms": "orders=PUB"},
        {"name": "account-x", "group_perms": [{"g": "SUB"}]},
        {"name": "account-x", "white_remote_address": "localhost"},
        {"name": "account-x", "white_remote_address": "10.0.0.0/33"},
        {"name": "account-x", "white_remote_address": "*.1.2.3"},
        {"name": "account-x", "brokers": ["nowhere"]},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_bad_accounts_are_refused_before_a_broker_changes(wrong: dict[str, Any], api: Api) -> None:
    answer = api("post", ACCOUNTS, wrong)
    assert answer.status_code in (400, 404), answer.content
    assert api.get(ACCOUNTS)["total"] == 1


@pytest.mark.parametrize(
    "patterns",
    [
        ["localhost"],
        ["10.0.0.1,10.0.0.2"],
        ["10.0.0.{1,2"],
        ["10.0.0.0-0"],
        ["300.*.*.*"],
        ["a: b"],
        ["*" * 5_000],
        [f"10.0.{i // 256}.{i % 256}" for i in range(1_001)],
        "10.0.0.1",
        [["10.0.0.1"]],
    ],
    ids=lambda patterns: str(patterns)[:40],
)
def test_bad_patterns_are_refused_before_a_broker_changes(patterns: Any, api: Api) -> None:
    assert api("patch", WHITE, {"patterns": patterns}).status_code == 400
    assert api.get(WHITE)["configs"][0]["patterns"] == ["10.99.99.99"]


@pytest.mark.parametrize(
    "name",
    [
        "a/b/c/d",
        "yes: no",
        "- dash #x",
        "<script>alert(1)</script>",
        "'\"{[&*!|>%@`",
        "ä用户帐户名称",
    ],
)
def test_unusual_access_keys_work_everywhere(
    name: str, api: Api, secured: Cluster, staff: User
) -> None:
    created = api("post", ACCOUNTS, {"name": name, "secret_key": "0123: 'x' #y"})
    assert created.status_code == 201, created.content
    assert signs_in(secured, name, "0123: 'x' #y")
    place = created.headers["Location"].removeprefix("/api/v1/clusters/local")
    assert api.get(place)["name"] == name
    page = browser(staff)
    for path in (f"{PAGES}/", *(f"/clusters/local{place}/{each}" for each in ("", "edit/"))):
        answer = page.get(path)
        assert answer.status_code == 200, path
        assert b"<script>alert" not in answer.content, path
    assert api("delete", place).status_code == 200
