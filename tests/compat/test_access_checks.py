"""`mqadmin checkAccess` explains the decisions of Java brokers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.mqadmin_runs import Mqadmin
from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.support.access_checks import agree, secret_of
from tests.support.acl1_matrix import FILE

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)

AUTH = "org.apache.rocketmq.auth"
SETTINGS = {
    "authentication_enabled": True,
    "authentication_metadata_provider": (
        f"{AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorization_enabled": True,
    "authorization_metadata_provider": (
        f"{AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "init_authentication_user": json.dumps({"username": "root", "password": secret_of("root")}),
    "inner_client_authentication_credentials": json.dumps(
        {"accessKey": "inner", "secretKey": secret_of("inner")}
    ),
}


def started(version: str, folder: Path, plain_acl: str = "", **settings: object) -> JavaBroker:
    """A running Java broker without name server."""
    try:
        broker = JavaBroker(version, folder, folder / "store", "127.0.0.1:1", **settings)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    if plain_acl:
        (broker.home / "conf" / "plain_acl.yml").write_text(plain_acl)
    broker.start()
    return broker


@pytest.fixture
def java5(tmp_path: Path) -> Iterator[JavaBroker]:
    broker = started(installing.JAVA5_VERSION, tmp_path, **SETTINGS)
    yield broker
    broker.kill()


@pytest.fixture
def java4(tmp_path: Path) -> Iterator[JavaBroker]:
    """A broker that answers code 54 with its accounts."""
    version = installing.JAVA_BROKER_VERSIONS[0]
    broker = started(version, tmp_path, FILE, acl_enable=True)
    yield broker
    broker.kill()


def test_users_of_rocketmq_5(java5: JavaBroker) -> None:
    """Of a literal name and a prefix, the later entry decides in RocketMQ 5.3.3."""
    mqadmin = Mqadmin("127.0.0.1:1", ("root", secret_of("root")))
    target = ("-b", java5.addr)
    allowed = {}
    for name, resources in (("first", ("orders", "orders*")), ("second", ("orders*", "orders"))):
        mqadmin("createUser", *target, "-u", name, "-p", secret_of(name))
        for resource in resources:
            decision = "Deny" if resource == "orders" else "Allow"
            entry = ("-s", f"User:{name}", "-r", f"Topic:{resource}", "-a", "Pub,Sub")
            mqadmin("createAcl", *target, *entry, "-d", decision)
        entry = ("-s", f"User:{name}", "-r", "Group:billing", "-a", "Sub")
        mqadmin("createAcl", *target, *entry, "-d", "Allow", "-i", "127.0.0.0/8")
        for topic in ("orders", "orders-eu", "other", "%RETRY%billing"):
            for group in ("", "billing", "audit"):
                if topic.startswith("%RETRY%") and not group:
                    continue  # Java checks the producer group of the send
                found = agree(mqadmin.document, java5.addr, name, topic, group)
                allowed[name, topic, group] = found
    assert allowed["first", "orders", ""] != allowed["second", "orders", ""]
    assert allowed["first", "orders-eu", "billing"]
    assert not allowed["first", "orders-eu", "audit"]
    assert agree(mqadmin.document, java5.addr, "root", "other", "audit")
    assert not agree(mqadmin.document, java5.addr, "nobody", "orders-eu", "")


def test_accounts_of_rocketmq_4(java4: JavaBroker) -> None:
    mqadmin = Mqadmin("127.0.0.1:1", ("admin-1", secret_of("admin-1")))
    allowed = {
        (account, topic, group)
        for account in ("nothing", "defaults", "listed-1", "admin-2", "nobody-1")
        for topic, group in (("P", ""), ("D", ""), ("S", "G"), ("S", "GD"))
        if agree(mqadmin.document, java4.addr, account, topic, group)
    }
    assert ("listed-1", "P", "") in allowed
    assert ("listed-1", "S", "GD") not in allowed
