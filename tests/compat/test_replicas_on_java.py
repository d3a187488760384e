"""The console's replicas on Java 5.3.3: controllers, roles, lag, epochs, election, failover."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from console.gateway import Cluster, gateway
from console.gateway.replicas.controllers import controller_groups
from console.gateway.replicas.electing import elect_master
from console.gateway.replicas.listing import timed_replica_sets
from console.gateway.replicas.model import ReplicaSet
from tests.api.conftest import browser
from tests.api.traffic import poll
from tests.compat import installing
from tests.compat.java_broker import JavaBroker, JavaController, java_replica
from tests.support.cluster import free_broker_port

#: Bound of every wait, seconds: a Java broker answers once it has sampled its rates.
WAIT_S = 120.0
NAME = "broker-a"

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 6 * WAIT_S)


@pytest.fixture
def brokers(
    tmp_path: Path,
    namesrv_addr: str,
    settings: Settings,
    db: None,
    record_property: Callable[[str, object], None],
) -> Iterator[list[JavaBroker]]:
    """Two Java brokers under a Java controller, in the console as cluster `java`."""
    record_property("client", f"java-broker-{installing.JAVA5_VERSION}")
    settings.CONSOLE_CLUSTERS = {"java": namesrv_addr}
    with ExitStack() as undo:
        try:
            controller = JavaController(tmp_path / "controller", 0, [free_broker_port()])
            made = [
                java_replica(tmp_path / f"broker-{n}", namesrv_addr, [controller.addr])
                for n in (1, 2)
            ]
        except installing.CannotInstall as reason:
            pytest.skip(f"Java broker: {reason}")
        for program in (controller, *made):
            undo.callback(program.kill)
            program.start()
        undo.callback(gateway.close)
        yield made


def replica_set(cluster: Cluster) -> ReplicaSet | None:
    return cluster.ask(timed_replica_sets).value.get(NAME)


def whole(cluster: Cluster) -> ReplicaSet:
    """Wait until both replicas are in sync, have answered everything, and have equal logs.

    An election on logs without messages leaves their last epoch as it was.
    """

    def complete() -> ReplicaSet | None:
        found = replica_set(cluster)
        if found is None or len(found.in_sync) != 2 or not found.has_master:
            return None
        up = [one for one in found.replicas if one.state == "up" and one.is_alive and one.version]
        epochs = [one.last_epoch.number for one in up if one.last_epoch is not None]
        ends = {found.confirm_offset, *(one.end_offset for one in up)}
        is_equal = len(epochs) == 2 and len(set(epochs)) == 1 and len(ends) == 1
        return found if is_equal and None not in ends else None

    found = poll(complete, WAIT_S)
    assert found is not None
    return found


def test_replicas_of_java_are_shown_and_elected(brokers: list[JavaBroker]) -> None:
    cluster = gateway.cluster("java")
    found = whole(cluster)
    master, slave = found.replicas
    assert {each.addr for each in found.replicas} == {each.addr for each in brokers}
    epoch = found.master_epoch
    assert found.mode == "controllers"
    assert epoch is not None
    assert (master.role, slave.role) == ("master", "slave")
    assert {each.number for each in found.in_sync} == {master.number, slave.number} == {1, 2}
    (group,) = cluster.ask(controller_groups).value
    assert group.leader is not None
    assert (group.leader.name, group.down) == ("n0", ())

    user = User.objects.create_superuser("staff", password="staff-password")
    text = browser(user).get("/clusters/java/replicas/").content.decode()
    for addr in (master.addr, slave.addr, group.leader.addr):
        assert addr in text
    (shown,) = re.findall(r'data-epoch="(\d+)"', text)
    assert int(shown) >= epoch

    assert slave.number is not None
    result = cluster.do(elect_master, NAME, slave.number)
    assert (result.addr, result.before_addr) == (slave.addr, master.addr)
    assert result.epoch is not None
    assert result.epoch > epoch
    now = whole(cluster)
    assert now.replicas[0].addr == slave.addr

    killed = next(each for each in brokers if each.addr == slave.addr)
    killed.kill()
    after = poll(lambda: taken_over(cluster, master.addr), WAIT_S)
    assert after is not None
    lost = next(each for each in after.replicas if each.addr == slave.addr)
    assert (lost.state, lost.is_in_sync, lost.is_alive) == ("down", False, False)


def taken_over(cluster: Cluster, addr: str) -> ReplicaSet | None:
    """The set once a replica is its master alone."""
    found = replica_set(cluster)
    if found is None or found.master is None or found.master.addr != addr:
        return None
    return found if found.has_master and len(found.in_sync) == 1 else None
