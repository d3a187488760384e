"""Java clients and tools with accounts of ACL 1.0, and Java brokers with Gantry's files."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.compat import installing
from tests.compat.conftest import COMMANDS, require
from tests.compat.foreign import ForeignClient
from tests.compat.java_broker import JavaBroker
from tests.compat.record_acl1 import VERSION, decisions, decisions_of_java
from tests.support.acl1_matrix import FILE, recorded
from tests.support.cluster import Cluster

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class JavaTools:
    """Java's mqadmin with an account in conf/tools.yml."""

    def __init__(self, kind: str, folder: Path, namesrv_addr: str, account: str) -> None:
        require(kind)
        home = folder / f"{kind}-{account}"
        home.mkdir()
        environment = {**os.environ, "HOME": str(home)}
        command = COMMANDS[kind](environment)
        keys = f"accessKey: {account}\nsecretKey: secret-of-{account}\n"
        (home / "conf" / "tools.yml").write_text(keys)
        self.client = ForeignClient(command, environment, home / "client.log")
        self._namesrv_addr = namesrv_addr

    def __call__(self, *arguments: str) -> str:
        count = len(self.client.of("printed"))
        self.client.command("mqadmin", arguments=[*arguments, "-n", self._namesrv_addr])
        return str(self.client.wait_for("printed", count + 1, 90)[-1]["text"])


def test_javas_mqadmin_administers_and_sends(stack: ExitStack, tmp_path: Path) -> None:
    """The commands for accounts are in 4.9.8 only; the file is then read by a Java broker."""
    conf = tmp_path / "home/conf"
    conf.mkdir(parents=True)
    file = conf / "plain_acl.yml"
    file.write_text("# A comment.\n" + FILE)
    cluster = stack.enter_context(
        Cluster(tmp_path, acl_enable=True, rocketmq_home=tmp_path / "home")
    )

    def tools(kind: str, account: str) -> JavaTools:
        made = JavaTools(kind, tmp_path, cluster.namesrv_addr, account)
        stack.callback(made.client.kill)
        return made

    target = ("-b", cluster.broker_addr)
    admin = tools("java", "admin-1")
    made = admin("updateTopic", *target, "-t", "Mine")
    assert "create topic to" in made, made
    new = ("updateAclConfig", *target, "-a", "newcomer", "-s", "secret-of-newcomer")
    printed = admin(*new, "-t", "Mine=PUB|SUB", "-g", "CG=SUB")
    assert "create or update plain access config to" in printed, printed
    printed = admin("updateGlobalWhiteAddr", *target, "-g", "127.0.0.9,127.0.0.7")
    assert "update global white remote addresses to" in printed, printed
    assert file.read_text().startswith("# A comment.\n")
    for kind in ("java", "java5"):
        newcomer = tools(kind, "newcomer")
        printed = newcomer("sendMessage", "-t", "Mine", "-p", "hello")
        assert "SEND_OK" in printed, printed
        printed = newcomer("updateTopic", *target, "-t", "Other")
        assert "Need admin permission for request code=17" in printed, printed
    refused = tools("java", "defaults")(*new, "-m", "true")
    assert "Need admin permission for request code=50" in refused, refused

    broker = JavaBroker(VERSION, tmp_path, tmp_path / "java", "127.0.0.1:1", acl_enable=True)
    (broker.home / "conf" / "plain_acl.yml").write_text(file.read_text())
    stack.callback(broker.kill)
    broker.start()
    ours = {(title, name): out for title, name, out in decisions(broker.port)}
    assert ours == recorded()

    printed = admin("deleteAclConfig", *target, "-a", "newcomer")
    assert "delete plain access config account from" in printed, printed
    assert "newcomer" not in file.read_text()


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
