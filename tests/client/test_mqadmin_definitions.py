"""exportDefinitions and apply against a broker with access control."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.mqadmin_runs import Mqadmin
from tests.client.test_access_checks import signing
from tests.support.cluster import Cluster
from tests.support.secured_cluster import secured_cluster


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secured_cluster(tmp_path_factory.mktemp("definitions")) as cluster:
        yield cluster


def fill(mqadmin: Mqadmin, broker: str) -> None:
    for topic, queues in (("orders", "2"), ("payments", "4")):
        mqadmin("updateTopic", "-b", broker, "-t", topic, "-r", queues, "-w", queues)
    mqadmin("updateSubGroup", "-b", broker, "-g", "billing", "-r", "3")
    mqadmin("createUser", "-b", broker, "-u", "alice", "-p", "alice-password")
    entry = ("-r", "Topic:orders*", "-a", "Pub,Sub", "-d", "Allow", "-i", "10.0.0.0/8")
    mqadmin("createAcl", "-b", broker, "-s", "User:alice", *entry)


def wipe(mqadmin: Mqadmin, broker: str) -> None:
    for topic in ("orders", "payments"):
        mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", topic)
    mqadmin("deleteSubGroup", "-b", broker, "-g", "billing")
    mqadmin("deleteAcl", "-b", broker, "-s", "User:alice", "-r", "Topic:orders*")


def test_export_wipe_apply_export_gives_the_same_bytes(secured: Cluster, tmp_path: Path) -> None:
    mqadmin, broker = signing(secured), secured.broker_addr
    fill(mqadmin, broker)
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    mqadmin("exportDefinitions", "-f", str(first))
    text = first.read_text()
    assert "alice-password" not in text
    assert "retryMaxTimes: 3" in text
    assert mqadmin.document("apply", "-f", str(first), "--dry-run")["items"]
    wipe(mqadmin, broker)
    plan = mqadmin("apply", "-f", str(first), "--dry-run", code=2)
    assert "+ topics orders" in plan.stdout
    assert "+ acls User:alice" in plan.stdout
    mqadmin("apply", "-f", str(first))
    mqadmin("exportDefinitions", "-f", str(second))
    assert second.read_bytes() == first.read_bytes()
    assert mqadmin.lines("exportDefinitions") == text.splitlines()


def test_apply_changes_only_what_differs(secured: Cluster, tmp_path: Path) -> None:
    mqadmin, file = signing(secured), tmp_path / "change.yaml"
    file.write_text(
        "format: gantry/definitions/1\n"
        "topics:\n  changed: {readQueueNums: 2, writeQueueNums: 2}\n"
        "users:\n  bob: {password: bob-password, userType: Normal}\n"
        "acls:\n  User:bob:\n    Custom:\n"
        "      - {actions: [Sub], resource: 'Topic:a'}\n"
        "      - {actions: [Pub], resource: 'Topic:b'}\n"
        "protection: {topics: [changed]}\n"
    )
    done = mqadmin("apply", "-f", str(file))
    assert "bob-password" not in done.stdout
    assert "protection is kept by the console" in done.stdout
    file.write_text(
        "format: gantry/definitions/1\n"
        "topics:\n  changed: {perm: 4}\n"
        "acls:\n  User:bob:\n    Custom:\n      - {actions: [Pub], resource: 'Topic:b'}\n"
    )
    items = mqadmin.document("apply", "-f", str(file))["items"]
    changed = {item["name"]: item for item in items}
    assert [each["field"] for each in changed["changed"]["changes"]] == ["perm"]
    mqadmin("apply", "-f", str(file), "--dry-run")
    text = mqadmin("exportDefinitions").stdout
    assert "changed: {order: false, perm: 4, readQueueNums: 2, writeQueueNums: 2}" in text
    assert "Topic:a" not in text


def test_what_cannot_be_applied_is_named(secured: Cluster, tmp_path: Path) -> None:
    mqadmin, file = signing(secured), tmp_path / "wrong.yaml"
    file.write_text(
        "format: gantry/definitions/1\n"
        "topics:\n  elsewhere: {brokers: {broker-x: {perm: 6}}}\n"
        "users:\n  carol: {userType: Normal}\n"
    )
    failed = mqadmin("apply", "-f", str(file), code=1)
    assert "no broker broker-x" in failed.stdout
    assert "needs a password" in failed.stdout
    file.write_text("format: gantry/definitions/1\ntopic: {}\n")
    assert "did you mean 'topics'" in mqadmin("apply", "-f", str(file), code=1).stderr
    assert "cannot be read" in mqadmin("apply", "-f", str(tmp_path / "none"), code=1).stderr
