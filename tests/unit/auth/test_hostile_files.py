"""Hostile access control files: nothing crashes, and the decisions in force stay as they are.

FUZZ_FILES and FUZZ_SEED change the number of mutated files and their content; a failure names both.
"""

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from core_broker import yaml_nodes
from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.files import FILE_BYTES_MAX, Acl1Files
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl1.rules import Acl1Rules
from core_broker.auth.acl2.model import User, UserType
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.contracts import Refusal, Request
from core_broker.auth.signature import SigningKey, signed_fields
from core_broker.broker.acl1_accounts import accounts_of
from core_broker.errors import SettingsError
from core_broker.remoting.codes import LanguageCode, RequestCode

FILES = int(os.environ.get("FUZZ_FILES", "300"))
SEED = int(os.environ.get("FUZZ_SEED", "18"))

HERE = "10.0.0.1"
SECRETS = {"orders-1": "secret-of-orders-1", "admin-1": "secret-of-admin-1"}
TEXT = f"""\
globalWhiteRemoteAddresses:
- 10.10.103.7
accounts:
- accessKey: orders-1
  secretKey: {SECRETS["orders-1"]}
  whiteRemoteAddress: 10.10.104.7
  defaultTopicPerm: DENY
  topicPerms:
  - Orders=PUB
  groupPerms:
  - G=SUB
- accessKey: admin-1
  secretKey: {SECRETS["admin-1"]}
  admin: true
""".encode()
BILLION = b"a: &a [x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c]\n" % (98 + n, 98 + n, 97 + n, 97 + n) for n in range(24)
)
#: Broken files, and a part of the error.
BROKEN: dict[str, tuple[bytes, str]] = {
    "a bomb of aliases": (BILLION, "anchors and aliases are not supported"),
    "a list within itself": (b"accounts: &a\n- *a\n", "anchors and aliases are not supported"),
    "an alias to an account": (
        TEXT.replace(b"- accessKey: orders-1", b"- &x\n  accessKey: orders-1") + b"- *x\n",
        "anchors and aliases are not supported",
    ),
    "a merged account": (TEXT + b"- <<: {admin: true}\n  accessKey: orders-2\n", "is no text"),
    "flow nesting": (b"accounts: " + b"[" * 100_000, "no YAML"),
    "block nesting": (b"- " * 100_000, "no YAML"),
    "nested keys": (b"? " * 100_000, "no YAML"),
    "nested maps": (b"{a: " * 100_000, "no YAML"),
    "a key twice": (TEXT + b"  admin: false\n", "has the key 'admin' twice"),
    "accounts twice": (TEXT + b"accounts: []\n", "has the key 'accounts' twice"),
    "accounts as text": (b"accounts: all\n", "accounts is no list"),
    "accounts as map": (b"accounts: {orders-1: secret}\n", "accounts is no list"),
    "an account as number": (b"accounts: [7]\n", "an account is no map"),
    "admin as list": (TEXT.replace(b"true", b"[true]"), "admin is no text"),
    "admin as number": (TEXT.replace(b"true", b"1"), "neither true nor false"),
    "a secret as map": (TEXT.replace(b": secret-of-admin-1", b": {a: b}"), "is no text"),
    "a secret as date": (TEXT.replace(b"secret-of-admin-1", b"2026-01-01"), "quote the value"),
    "a Python object": (b"accounts: !!python/object/apply:os.system [id]\n", "is not supported"),
    "a Java object": (b"a: !!javax.script.ScriptEngineManager [x]\n", "is not supported"),
    "a NUL": (TEXT.replace(b"Orders", b"Ord\0ers"), "no YAML"),
    "UTF-16": (TEXT.decode().encode("utf-16"), "is no UTF-8 text"),
    "Latin-1": (TEXT.replace(b"Orders", b"Ord\xe9rs"), "is no UTF-8 text"),
    "half a character": (TEXT + b"# \xe5\xaf", "is no UTF-8 text"),
    "a surrogate": (TEXT + b"# \xed\xa0\x80", "is no UTF-8 text"),
    "two documents": (TEXT + b"---\n" + TEXT, "no YAML"),
    "10 MB of comments": (b"# comment\n" * 1_000_000, f"more than {FILE_BYTES_MAX} bytes"),
    "10 MB of one value": (b"accounts: " + b"x" * 10_000_000, f"more than {FILE_BYTES_MAX} bytes"),
    "another YAML": (b"%YAML 9.9\n---\n" + TEXT, "no YAML"),
    "a later YAML": (b"%YAML 1.3\n---\n" + TEXT, "the version of %YAML is not supported"),
    "a version in the middle": (
        TEXT.replace(b"topicPerms:\n", b"topicPerms:\n%YAML 9.9\n"),
        "the version of %YAML is not supported",
    ),
    "nothing": (b"", "is empty now"),
}
#: What mutations insert. No part makes an administrator, or trusts an address.
_PARTS = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\t", b"\n", b"\n\n", b"  ", b"#"),
    *(b"&a ", b"*a", b"!!str ", b"!x ", b"<<: ", b"? ", b"- ", b": ", b"|\n", b">\n", b"'", b'"'),
    *(b"[", b"]", b"{", b"}", b",", b"%YAML 9.9\n", b"---\n", b"...\n", b"~", b"0x10", b"1e3"),
    *(b"accounts:\n", b"- accessKey: orders-2\n", b"  secretKey: secret-of-orders-2\n", b"=SUB"),
    *(b"[" * 50, b"a" * 5_000, b"\xe5\xaf\x86", b"  topicPerms: [Orders=SUB]\n", b"DENY", b"PUB|"),
)


def mutated(seed: int) -> Iterator[bytes]:
    """Endless damaged files; equal for equal seeds."""
    chance = random.Random(seed)
    while True:
        content = bytearray(TEXT)
        for _ in range(chance.randrange(1, 4)):
            begin = chance.randrange(len(content) + 1)
            end = min(len(content), begin + chance.choice((0, 0, 1, 5, 40)))
            content[begin:end] = chance.choice(_PARTS)
        yield bytes(content)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path, TEXT)
    return tmp_path


def write(home: Path, content: bytes) -> None:
    path = home / "conf/plain_acl.yml"
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name("new")
    fresh.write_bytes(content)
    fresh.replace(path)  # another inode: the file counts as changed


def poll(files: Acl1Files) -> None:
    """Poll twice: the first poll notices the change, the second loads the files."""
    files.poll(2_000)
    files.poll(3_000)


def is_admitted(
    rules: Acl1Rules, account: str, secret: str, *, code: int = RequestCode.SEND_MESSAGE
) -> bool:
    fields = {"topic": "Orders"}
    if account:
        fields["AccessKey"] = account
    if secret:
        fields["Signature"] = SigningKey(secret).sign(signed_fields(fields))
    try:
        rules.admit(HERE, Request(code, 399, LanguageCode.JAVA, fields, b""))
    except Refusal:
        return False
    return True


def check_nobody_else(rules: Acl1Rules) -> None:
    """No request without the right key passes, and no account but admin-1 administers."""
    senders = [("", ""), ("nobody-1", "secret-of-nobody")]
    senders += [(name, secret) for name in rules.accounts for secret in ("", "another-secret")]
    assert [each for each in senders if is_admitted(rules, *each)] == []
    admins = [name for name, account in rules.accounts.items() if account.is_admin]
    assert len(admins) <= 1
    for name in rules.accounts.keys() - {*admins, "admin-1"}:
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        assert not is_admitted(rules, name, SECRETS.get(name, f"secret-of-{name}"), code=code)


def check_decisions(rules: Acl1Rules) -> None:
    check_nobody_else(rules)
    code = RequestCode.UPDATE_AND_CREATE_TOPIC
    assert is_admitted(rules, "orders-1", SECRETS["orders-1"])
    assert is_admitted(rules, "admin-1", SECRETS["admin-1"], code=code)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_keeps_the_decisions(name: str, home: Path) -> None:
    content, problem = BROKEN[name]
    files = Acl1Files(home, Mode.STRICT)
    before = files.start(1_000)
    write(home, content)
    poll(files)
    assert problem in files.problem
    assert str(home / "conf/plain_acl.yml") in files.problem
    assert len(files.problem) < 1_000
    assert files.rules is before
    check_decisions(files.rules)


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "nothing"])
def test_a_broken_file_ends_start_and_migration(name: str, home: Path) -> None:
    write(home, BROKEN[name][0])
    with pytest.raises(RulesError):
        Acl1Files(home, Mode.STRICT).start(1_000)
    with pytest.raises(SettingsError, match=r"the accounts of ACL 1\.0 cannot be read"):
        accounts_of(home, AccessTables())


def test_mutated_files_never_open_the_broker(home: Path) -> None:
    """A file is refused and keeps the rules, or gives rights to no other sender."""
    files = Acl1Files(home, Mode.STRICT)
    files.start(1_000)
    refused = 0
    for number, content in enumerate(islice(mutated(SEED), FILES)):
        before = files.rules
        write(home, content)
        try:
            poll(files)
            if files.problem:
                refused += 1
                assert files.rules is before
                assert not any(secret in files.problem for secret in SECRETS.values())
            check_nobody_else(files.rules)
        except Exception as error:
            raise AssertionError(f"seed {SEED}, file {number}: {content!r}") from error
    assert 0 < refused < FILES
    write(home, TEXT)
    poll(files)
    assert files.problem == ""
    check_decisions(files.rules)


def test_mutated_files_never_change_present_users(home: Path) -> None:
    """Migration refuses a file or adds users; super users only from the file's administrator."""
    present = User("orders-1", "password-of-orders")
    tables = AccessTables({"orders-1": present}, {})
    created = 0
    for number, content in enumerate(islice(mutated(SEED), FILES)):
        write(home, content)
        try:
            after = accounts_of(home, tables)
        except SettingsError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {SEED}, file {number}: {content!r}") from error
        created += len(after.created)
        assert after.tables.users["orders-1"] is present, (SEED, number)
        assert "User:orders-1" not in after.tables.acls, (SEED, number)
        supers = [user for user in after.tables.users.values() if user.type is UserType.SUPER]
        assert len(supers) <= 1, (SEED, number)
    assert created


@pytest.mark.parametrize("text", ["- a\n" * 500, "[" + "a," * 500, "a: b\n" * 500])
def test_the_nodes_of_a_file_are_bounded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading ends at the limit, whatever follows."""
    monkeypatch.setattr(yaml_nodes, "NODES_MAX", 100)
    with pytest.raises(RulesError, match=r"line \d+: more than 100 keys and values; divide"):
        read_acl_file("f.yml", text + "\n}", 0)
