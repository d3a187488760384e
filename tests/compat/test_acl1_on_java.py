"""Java clients and tools with accounts of ACL 1.0, and Java brokers with Gantry's files."""

from pathlib import Path

import pytest

from tests.compat import installing
from tests.compat.record_acl1 import decisions, decisions_of_java
from tests.support.acl1_matrix import FILE, recorded
from tests.support.cluster import Cluster

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


def test_java_still_decides_as_recorded(tmp_path: Path) -> None:
    try:
        installing.java_broker_classpath(installing.JAVA_BROKER_VERSIONS[0])
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    assert {(title, name): out for title, name, out in decisions_of_java(tmp_path)} == recorded()


def test_a_gantry_broker_decides_as_java(tmp_path: Path) -> None:
    """The same matrix through sockets, fast paths and slow paths."""
    conf = tmp_path / "home/conf"
    conf.mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(FILE)
    settings = {"acl_enable": True, "acl_java_checks": True, "max_access_failures": 0}
    with Cluster(tmp_path, rocketmq_home=tmp_path / "home", **settings) as cluster:
        port = int(cluster.broker_addr.rpartition(":")[2])
        for _ in range(2):  # the second time, fast paths remember what was admitted
            ours = {(title, name): out for title, name, out in decisions(port)}
            assert ours == recorded()
