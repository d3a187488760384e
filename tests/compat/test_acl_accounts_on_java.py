"""The console's accounts of ACL 1.0 on Java brokers: changes on 4.9.7, an explanation on 5.3.3."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import gateway
from core_broker.client import Credentials
from tests.api.conftest import Api, browser
from tests.api.conftest import staff as staff  # noqa: PLC0414 - a fixture of these tests too
from tests.compat import installing
from tests.compat.test_client_on_java import (
    ACCESS_KEY,
    SECRET_KEY,
    WITH_ACCESS_CONTROL,
    java_cluster,
)

pytestmark = [
    pytest.mark.must_beat(1),
    pytest.mark.must_beat(22),
    pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200),
]

ACCOUNTS = "/acl-accounts"
WHITE = "/acl-white-list"


@pytest.fixture(autouse=True)
def _gateway_closes() -> Iterator[None]:
    yield
    gateway.close()


def test_accounts_of_4_9_7_are_created_changed_and_deleted(
    tmp_path: Path, staff: User, settings: Settings
) -> None:
    with java_cluster("4.9.7", tmp_path, **WITH_ACCESS_CONTROL["4.9.7"]) as addr:
        settings.CONSOLE_CLUSTERS = {"local": addr}
        settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": Credentials(ACCESS_KEY, SECRET_KEY)}
        api, page = Api(staff), browser(staff)
        file = tmp_path / "java-4.9.7" / "conf" / "plain_acl.yml"
        (state,) = api.get("/acl-states")["items"]
        assert state["state"] == "on"
        assert [each["path"] for each in state["files"]] == [str(file)]

        wanted = {"topic_perms": ["orders=PUB|SUB"], "group_perms": ["billing=SUB"]}
        made = api("post", ACCOUNTS, {"name": "billing-1", **wanted})
        assert made.status_code == 201, made.content
        secret_key = made.json()["secret_key"]
        assert secret_key in file.read_text()
        change = {"admin": True, "topic_perms": ["orders=SUB"], "white_remote_address": "10.0.0.*"}
        changed = api("patch", f"{ACCOUNTS}/billing-1", change)
        assert changed.status_code == 200, changed.content
        (config,) = api.get(f"{ACCOUNTS}/billing-1")["configs"]
        assert (config["admin"], config["topic_perms"]) == (True, ["orders=SUB"])
        assert (config["group_perms"], config["white_remote_address"]) == (
            ["billing=SUB"],
            "10.0.0.*",
        )
        assert secret_key in file.read_text(), "a change keeps the secret key"
        cleared = api("patch", f"{ACCOUNTS}/billing-1", {"white_remote_address": ""})
        assert cleared.status_code == 200, cleared.content
        (config,) = api.get(f"{ACCOUNTS}/billing-1")["configs"]
        assert config["white_remote_address"] == ""
        impossible: list[dict[str, Any]] = [
            {"topic_perms": []},
            {"white_remote_address": "10.0.0.0/8"},
        ]
        for refused in impossible:
            assert api("patch", f"{ACCOUNTS}/billing-1", refused).status_code == 409

        renewed = api("post", f"{ACCOUNTS}/billing-1/secret-key", {})
        assert renewed.status_code == 200, renewed.content
        assert secret_key not in file.read_text()
        secrets = (SECRET_KEY, secret_key, renewed.json()["secret_key"])
        for path in ("", "billing-1/", "billing-1/edit/", "billing-1/delete/"):
            shown = page.get(f"/clusters/local/acl-accounts/{path}")
            assert shown.status_code == 200, path
            assert not any(secret in shown.content.decode() for secret in secrets), path
        for path in (ACCOUNTS, f"{ACCOUNTS}/billing-1", WHITE, "/acl-states"):
            body = api("get", path).content.decode()
            assert not any(secret in body for secret in secrets), path

        assert api("patch", WHITE, {"patterns": ["10.0.0.{1,2}"]}).status_code == 409
        patterns = ["10.0.0.1", "10.0.1.*"]
        answer = api("patch", WHITE, {"patterns": patterns})
        assert answer.status_code == 200, answer.content
        assert api.get(WHITE)["configs"][0]["patterns"] == patterns
        assert api("patch", WHITE, {"patterns": []}).status_code == 200
        assert api.get(WHITE)["configs"][0]["patterns"] == []
        assert api("delete", f"{ACCOUNTS}/billing-1").status_code == 200
        assert api("get", f"{ACCOUNTS}/billing-1").status_code == 404


@pytest.mark.parametrize(("version", "state"), [("4.9.7", "off"), ("5.3.3", "unsupported")])
def test_java_brokers_without_accounts_are_explained(
    version: str, state: str, tmp_path: Path, staff: User, settings: Settings
) -> None:
    with java_cluster(version, tmp_path) as addr:
        settings.CONSOLE_CLUSTERS = {"local": addr}
        api = Api(staff)
        answer = api("get", ACCOUNTS)
        assert answer.status_code == 409, answer.content
        assert answer.json()["type"] == "urn:gantry:problem:no-access-control"
        assert [each["state"] for each in api.get("/acl-states")["items"]] == [state]
        assert browser(staff).get("/clusters/local/acl-accounts/").status_code == 200
