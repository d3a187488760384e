"""The commands for accounts of ACL 1.0: Java's mqadmin 4.9.8 and Gantry's, at a broker of each.

The brokers are RocketMQ 4.9.7, which rewrites its file, and Gantry. The four outputs of a command
are equal, and at the end both files have the same accounts.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core_broker.auth.acl1.reading import read_acl_file, secret_keys
from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.compat.secured import ACCOUNTS, ADMINISTRATOR, SecuredCluster, secret_of
from tests.compat.test_acl1_on_java import JavaTools
from tests.compat.test_users import Run, gantry_run

NEW = ("updateAclConfig", "-a", "newcomer", "-s", "another-secret")
#: Options after the broker's address, of commands that succeed and of commands that fail.
STEPS: tuple[tuple[str, ...], ...] = (
    (*NEW, "-t", "Mine=PUB|SUB,Other=DENY", "-g", "CG=SUB"),
    (*NEW, "-m", "true", "-w", "10.0.0.*", "-i", "PUB", "-u", "SUB"),
    ("updateAclConfig", "-a", "short", "-s", "long-enough"),
    ("updateAclConfig", "-a", "long-enough", "-s", "short"),
    (*NEW, "-t", "Mine=NONSENSE"),
    (*NEW, "-g", "CG"),
    ("clusterAclConfigVersion",),
    ("updateGlobalWhiteAddr", "-g", "10.10.103.*,192.168.0.*"),
    ("deleteAclConfig", "-a", "newcomer"),
    ("deleteAclConfig", "-a", "newcomer"),
    ("updateAclConfig", "-a", "kept-account", "-s", "kept-secret", "-t", "Mine=SUB"),
    ("clusterAclConfigVersion",),
)
#: Code and first line of the remark of a refused request, in the output of either tool.
REFUSED = re.compile(r"(?:CODE: |_FAILED \()(2\d\d)(?:  DESC: |\): )(.*)")
#: What Gantry's tool adds to the remark.
EXPLAINED = re.compile(r" The access rule was not \w+\.$")
SECRET = re.compile(r"secretKey=\S+")
#: The account as text; Java's tool prints the object's hash code.
ACCOUNT = re.compile(r".*PlainAccessConfig[@{]")
#: A row of clusterAclConfigVersion: cluster, broker, address, file, counter, time.
VERSION = re.compile(r"(\S+ +\S+ +\S+ +)\S*/conf/plain_acl\.yml +(\d+) .*")

pytestmark = pytest.mark.timeout(installing.MAVEN_SECONDS_MAX + 200)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def essence(printed: str, addr: str) -> list[str]:
    """The lines of an output without address, path, time and secret; code and remark of a refusal.

    A version's line ends with the counter of changes.
    """
    if refused := REFUSED.search(printed):
        remark = EXPLAINED.sub("", refused[2]).rstrip(".")
        return [f"{refused[1]} {SECRET.sub('secretKey=', remark)}"]
    lines = [VERSION.sub(r"\1\2", line) for line in printed.replace(addr, "ADDR").splitlines()]
    return [line.rstrip() for line in lines if line.strip() and not ACCOUNT.match(line)]


def outputs(run: Run, addr: str) -> list[list[str]]:
    return [essence(run(step[0], "-b", addr, *step[1:]), addr) for step in STEPS]


def without_counters(steps: list[list[str]]) -> list[list[str]]:
    return [[re.sub(r"(ADDR +)\d+$", r"\1", line) for line in lines] for lines in steps]


def test_commands_have_equal_outputs(stack: ExitStack, tmp_path: Path) -> None:
    version = installing.JAVA_BROKER_VERSIONS[0]
    gantry = stack.enter_context(SecuredCluster("acl1", tmp_path))
    try:
        broker = JavaBroker(version, tmp_path, tmp_path / "java", "127.0.0.1:1", acl_enable=True)
    except installing.CannotInstall as reason:
        pytest.skip(f"Java broker: {reason}")
    rules = broker.home / "conf" / "plain_acl.yml"
    rules.write_text(ACCOUNTS)
    stack.callback(broker.kill)
    broker.start()
    java = JavaTools("java", tmp_path, gantry.namesrv_addr, ADMINISTRATOR)
    stack.callback(java.client.kill)
    own = gantry_run(gantry.namesrv_addr, ADMINISTRATOR, secret_of(ADMINISTRATOR))

    first = outputs(java, broker.addr)
    assert first[2][0].startswith("209 The accessKey=short and secretKey= cannot be null")
    assert outputs(java, gantry.broker_addr) == first
    second = outputs(own, broker.addr)
    assert outputs(own, gantry.broker_addr) == second
    assert without_counters(second) == without_counters(first)
    assert content(rules) == content(gantry.rules)
    assert "kept-account" in gantry.rules.read_text()


def content(file: Path) -> list[object]:
    """White list, accounts and secrets of a file."""
    text = file.read_text()
    found = read_acl_file("plain_acl.yml", text, loaded_ms=0)
    accounts = [
        (a.access_key, a.white_address, a.is_admin, a.default_topic_perm, a.default_group_perm)
        for a in found.accounts
    ]
    perms = [account.perms for account in found.accounts]
    return [found.white_list, accounts, perms, secret_keys(text)]
