"""The console's users of access control on Java brokers: changes on 5.3, an explanation without."""

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

_AUTHORIZATION = "org.apache.rocketmq.auth.authorization.provider"
USERS = "/acl-users"
ORDERS = {"resource": "Topic:orders*", "actions": ["Pub", "Sub"], "decision": "Allow"}
BILLING = {
    "resource": "Group:billing",
    "actions": ["Sub"],
    "decision": "Deny",
    "source_ips": ["10.0.0.0/8"],
}


@pytest.fixture(autouse=True)
def _gateway_closes() -> Iterator[None]:
    yield
    gateway.close()


def rules(api: Api, name: str) -> list[str]:
    """Decision, actions and resource of the entries on the only broker."""
    (config,) = api.get(f"{USERS}/{name}")["configs"]
    return [
        f"{entry['decision']} {sorted(entry['actions'])} {entry['resource']} {entry['source_ips']}"
        for entry in config["entries"]
    ]


def test_users_of_5_3_are_created_changed_and_deleted(
    tmp_path: Path, staff: User, settings: Settings
) -> None:
    access: dict[str, Any] = {
        **WITH_ACCESS_CONTROL["5.3.3"],
        "authorization_enabled": "true",
        "authorization_provider": f"{_AUTHORIZATION}.DefaultAuthorizationProvider",
        "authorization_metadata_provider": f"{_AUTHORIZATION}.LocalAuthorizationMetadataProvider",
        "inner_client_authentication_credentials": (
            f'{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}'
        ),
    }
    with java_cluster("5.3.3", tmp_path, **access) as addr:
        settings.CONSOLE_CLUSTERS = {"local": addr}
        refused = Api(staff)("get", USERS)
        assert refused.status_code == 502, refused.content
        assert "Credentials" in refused.json()["hint"]
        gateway.close()
        settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": Credentials(ACCESS_KEY, SECRET_KEY)}
        api = Api(staff)
        listed = api("get", USERS)
        assert listed.json()["unenforced_on"] == []
        assert SECRET_KEY not in listed.content.decode(), "the broker returns passwords"

        made = api("post", USERS, {"name": "amy", "entries": [ORDERS, BILLING]})
        assert made.status_code == 201, made.content
        both = [
            "Allow ['Pub', 'Sub'] Topic:orders* []",
            "Deny ['Sub'] Group:billing ['10.0.0.0/8']",
        ]
        assert sorted(rules(api, "amy")) == both
        change = {"user_type": "Super", "user_status": "disable", "entries": [ORDERS]}
        assert api("patch", f"{USERS}/amy", change).status_code == 200
        assert rules(api, "amy") == both[:1]
        (config,) = api.get(f"{USERS}/amy")["configs"]
        assert (config["user_type"], config["user_status"]) == ("Super", "disable")
        assert api("post", f"{USERS}/amy/password", {}).status_code == 200
        shown = browser(staff).get("/clusters/local/acl-users/amy/").content.decode()
        assert "Topic:orders*" in shown
        assert api("delete", f"{USERS}/amy").status_code == 200
        assert api("get", f"{USERS}/amy").status_code == 404


@pytest.mark.parametrize("version", installing.JAVA_BROKER_VERSIONS)
def test_brokers_without_access_control_are_explained(
    version: str, tmp_path: Path, staff: User, settings: Settings
) -> None:
    with java_cluster(version, tmp_path) as addr:
        settings.CONSOLE_CLUSTERS = {"local": addr}
        answer = Api(staff)("get", USERS)
        assert answer.status_code == 409, answer.content
        assert answer.json()["type"] == "urn:gantry:problem:no-access-control"
        assert browser(staff).get("/clusters/local/acl-users/").status_code == 200
