"""The files of access control: loading, reload, broken files, and changes by commands."""

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl1.accounts import RETRY_PREFIX
from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.files import Acl1Files
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl1.rewriting import drop_account, put_account, put_white_list
from core_broker.remoting.bodies import DataVersion

TEXT = """\
# Accounts of the shop.
globalWhiteRemoteAddresses:
  - 10.10.103.*   # office
accounts:
  # sends orders
  - accessKey: orders-1
    secretKey: 0912345678901234
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    topicPerms:
      - Orders=PUB   # nothing else
  - accessKey: admin-1
    secretKey: "a-secret-of-the-admin"
    admin: yes
"""
VERSION = DataVersion(1_700_000_000_000, 4)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / "conf/plain_acl.yml", TEXT)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name("new")
    fresh.write_text(text)
    fresh.replace(path)  # another inode: the file counts as changed


def started(home: Path) -> Acl1Files:
    files = Acl1Files(home, Mode.STRICT)
    files.start(1_000)
    return files


def polled(files: Acl1Files) -> Any:
    """Poll twice: the first poll sees the change, the second loads it."""
    assert files.poll(2_000) is None
    return files.poll(3_000)


def names(files: Acl1Files) -> set[str]:
    return set(files.rules.accounts)


def account(name: str, extra: str = "") -> str:
    return f"- {{accessKey: {name}, secretKey: secret-of-{name}{extra}}}\n"


def test_all_files_make_one_generation(home: Path) -> None:
    write(home / "conf/acl/b.yml", "accounts:\n" + account("second-1", ", admin: true"))
    write(home / "conf/acl/deep/a.yaml", "accounts:\n" + account("third-1"))
    write(home / "conf/acl/a.yml", "accounts:\n" + account("second-1"))
    write(home / "conf/acl/notes.txt", "- no access control file")
    write(home / "conf/acl/..data/old.yml", "accounts:\n" + account("hidden"))
    write(home / "conf/acl/white.yml", "globalWhiteRemoteAddresses: [10.1.1.1, 10.10.103.*]\n")
    files = started(home)
    assert names(files) == {"orders-1", "admin-1", "second-1", "third-1"}
    assert [pattern.text for pattern in files.rules.white_list] == ["10.1.1.1", "10.10.103.*"]
    # a.yml comes first, and the account of b.yml with more rights is left out, with a warning.
    assert not files.rules.accounts["second-1"].is_admin
    assert any("second-1 is in" in warning for warning in files.warnings)
    assert set(files.versions) == {
        str(home / "conf" / name)
        for name in ("plain_acl.yml", "acl/a.yml", "acl/b.yml", "acl/deep/a.yaml", "acl/white.yml")
    }


def test_a_missing_default_file_is_made_empty_and_private(tmp_path: Path) -> None:
    files = started(tmp_path)
    assert files.rules.accounts == {}
    assert stat.S_IMODE((tmp_path / "conf/plain_acl.yml").stat().st_mode) == 0o600
    assert files.versions == {}


def test_a_broken_file_ends_the_start_and_is_named(home: Path) -> None:
    write(home / "conf/acl/x.yml", "accounts:\n- accessKey: short\n")
    with pytest.raises(RulesError, match=r"x\.yml: account short: line 2: accessKey needs"):
        started(home)


def test_a_change_is_in_force_after_two_polls(home: Path) -> None:
    files = started(home)
    assert files.poll(2_000) is None
    before = files.rules
    write(home / "conf/plain_acl.yml", TEXT.replace("Orders=PUB", "Orders=SUB"))
    rules = polled(files)
    assert rules.generation == before.generation + 1
    assert rules.accounts["orders-1"].perms == {"Orders": Perm.SUB}
    assert before.accounts["orders-1"].perms == {"Orders": Perm.PUB}  # never changed
    write(home / "conf/acl/new.yml", "accounts:\n" + account("added-1"))
    assert "added-1" in polled(files).accounts
    (home / "conf/acl/new.yml").unlink()
    assert "added-1" not in polled(files).accounts


def test_a_file_that_is_being_written_is_not_loaded(home: Path) -> None:
    files = started(home)
    path = home / "conf/plain_acl.yml"
    for part in range(1, 5):
        write(path, TEXT[: len(TEXT) * part // 5])
        assert files.poll(2_000) is None
        assert files.problem == ""
    write(path, TEXT)
    assert polled(files) is not None


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("accounts: [", "no YAML"),
        ("accounts:\n- {accessKey: orders-1, secretKey: x}\n", "secretKey needs at least 7"),
        ("", "is empty now; write `accounts: []`"),
        ("# nothing\n", "is empty now"),
        ("x: \ud800".encode("utf-8", "surrogatepass").decode("latin-1"), None),
    ],
)
def test_a_broken_file_keeps_the_rules_and_says_so(
    home: Path, broken: str, problem: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    files = started(home)
    path = home / "conf/plain_acl.yml"
    fresh = path.with_name("new")
    fresh.write_bytes(broken.encode("latin-1"))
    fresh.replace(path)
    caplog.clear()
    assert polled(files) is None
    assert files.poll(4_000) is None
    assert names(files) == {"orders-1", "admin-1"}
    assert (problem or "is no UTF-8 text") in files.problem
    assert files.failures == 1
    errors = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert errors == [f"access control: the rules in force stay: {files.problem}"]
    # A command would drop the operator's unfinished change.
    with pytest.raises(RulesError, match="Repair the files first"):
        files.drop_account("orders-1", 5_000)
    write(path, TEXT.replace("orders-1", "orders-2"))
    assert set(polled(files).accounts) == {"orders-2", "admin-1"}
    assert files.problem == ""


def test_a_missing_default_file_keeps_the_rules(home: Path) -> None:
    files = started(home)
    (home / "conf/plain_acl.yml").unlink()
    files.poll(2_000)
    assert files.poll(3_000) is None
    assert "plain_acl.yml" in files.problem
    assert names(files) == {"orders-1", "admin-1"}


def test_a_command_changes_file_and_rules_at_once(home: Path) -> None:
    files = started(home)
    path = home / "conf/plain_acl.yml"
    path.chmod(0o640)
    values = {"accessKey": "orders-1", "secretKey": "another-secret-0123", "admin": False}
    rules = files.put_account(values | {"topicPerms": ["Orders=PUB|SUB"]}, 5_000)
    assert rules.accounts["orders-1"].perms == {"Orders": Perm.PUB | Perm.SUB}
    assert files.versions == {str(path): DataVersion(5_000, 1)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    backup = path.with_name("plain_acl.yml.bak")
    assert backup.read_text() == TEXT
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    text = path.read_text()
    assert "# Accounts of the shop." in text
    assert "# sends orders" in text
    assert "0912345678901234" not in text
    # The poll does not load the command's own change again.
    assert files.poll(6_000) is None
    assert files.poll(7_000) is None
    rules = files.drop_account("orders-1", 8_000)
    assert set(rules.accounts) == {"admin-1"}
    assert files.versions == {str(path): DataVersion(8_000, 2)}
    assert sorted(path.parent.iterdir()) == [path, backup]


def test_an_account_is_changed_in_its_own_file(home: Path) -> None:
    write(home / "conf/acl/b.yml", "accounts:\n" + account("second-1"))
    files = started(home)
    values = {"accessKey": "second-1", "secretKey": "another-secret-0123", "admin": True}
    assert files.put_account(values, 5_000).accounts["second-1"].is_admin
    assert (home / "conf/plain_acl.yml").read_text() == TEXT
    new = {"accessKey": "third-1", "secretKey": "another-secret-0123", "groupPerms": ["G=SUB"]}
    assert files.put_account(new, 6_000).accounts["third-1"].perms == {RETRY_PREFIX + "G": Perm.SUB}
    assert "third-1" in (home / "conf/plain_acl.yml").read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.put_account({"accessKey": "x", "secretKey": "another-secret"}, 1),
        lambda files: files.put_account(
            {"accessKey": "orders-1", "secretKey": "another-secret", "topicPerms": ["x"]}, 1
        ),
        lambda files: files.put_account(
            {"accessKey": "new-one-1", "secretKey": "abcdefgh", "whiteRemoteAddress": "host"}, 1
        ),
        lambda files: files.drop_account("nobody-1", 1),
        lambda files: files.put_white_list(["10.0.0.{1", "2}"], "", 1),
        lambda files: files.put_white_list(["*"], "/etc/passwd", 1),
        lambda files: files.put_white_list(["*"], "conf/../conf/plain_acl.yml", 1),
    ],
)
def test_a_bad_command_writes_nothing(home: Path, change: Any) -> None:
    files = started(home)
    with pytest.raises(RulesError):
        change(files)
    assert (home / "conf/plain_acl.yml").read_text() == TEXT
    assert list((home / "conf").iterdir()) == [home / "conf/plain_acl.yml"]
    assert files.rules.generation == 1


def test_a_failed_write_keeps_file_and_rules(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = started(home)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core_broker.auth.acl1.files.replace_file", full)
    with pytest.raises(OSError, match="No space"):
        files.drop_account("orders-1", 5_000)
    assert names(files) == {"orders-1", "admin-1"}
    assert (home / "conf/plain_acl.yml").read_text() == TEXT


def test_the_white_list_is_replaced_in_the_named_file(home: Path) -> None:
    write(home / "conf/acl/b.yml", "globalWhiteRemoteAddresses: [10.1.1.1]\n")
    files = started(home)
    path = str(home / "conf/acl/b.yml")
    rules = files.put_white_list(["10.2.2.2", "*"], path, 5_000)
    assert [each.text for each in rules.white_list] == ["10.2.2.2", "*", "10.10.103.*"]
    rules = files.put_white_list([], "", 6_000)
    assert [each.text for each in rules.white_list] == ["10.2.2.2", "*"]


def test_a_rewritten_file_keeps_comments_and_layout() -> None:
    values = {"accessKey": "new-one-1", "secretKey": "0123456701", "admin": True}
    text = put_account(TEXT, values | {"groupPerms": ["G=SUB"], "topicPerms": []}, VERSION)
    added = """\
  - accessKey: new-one-1
    secretKey: '0123456701'
    admin: true
    topicPerms: []
    groupPerms:
      - G=SUB
dataVersion:
  - counter: 4
    timestamp: 1700000000000
"""
    assert text == TEXT + added
    assert drop_account(text, "new-one-1", VERSION) == TEXT + added[added.index("dataVersion") :]


def test_files_of_rocketmq_5_can_be_rewritten() -> None:
    text = """accounts:
- !!org.apache.rocketmq.common.PlainAccessConfig
  accessKey: account1
  admin: false
  defaultGroupPerm: null
  secretKey: '12345678901234567'
  topicPerms: []
"""
    values = {"accessKey": "account1", "secretKey": "12345678901234567", "admin": True}
    changed = put_account(text, values, VERSION)
    assert "- !!org.apache.rocketmq.common.PlainAccessConfig\n  accessKey: account1" in changed
    assert read_acl_file("f", changed, 0).accounts[0].is_admin


@pytest.mark.parametrize("text", ["", "# only a comment", "\n", "accounts:\n", "accounts: []\n"])
def test_a_file_without_accounts_gets_one(text: str) -> None:
    values = {"accessKey": "account1", "secretKey": "true-or-false"}
    changed = put_account(text, values, VERSION)
    file = read_acl_file("f", changed, 0)
    assert [each.access_key for each in file.accounts] == ["account1"]
    assert file.version == VERSION
    assert changed.startswith(text.rstrip(" []\n"))


PRINTABLE = st.text(
    alphabet=st.one_of(
        st.sampled_from("'\"#:-*&!%@`{}[],|>?~=/\\ 0123456789eE_+.yestruENOL"),
        st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["C", "Z"]),
    ),
    min_size=7,
    max_size=20,
).filter(lambda text: text == text.strip())


@given(key=PRINTABLE, secret=PRINTABLE, topic=PRINTABLE)
def test_what_is_written_is_read_again(key: str, secret: str, topic: str) -> None:
    topic = topic.replace("=", "").strip() or "T"
    values = {"accessKey": key, "secretKey": secret, "topicPerms": [f"{topic}=PUB"], "admin": True}
    file = read_acl_file("f", put_account(TEXT, values, VERSION), 0)
    (added,) = [each for each in file.accounts if each.access_key == key]
    assert added.perms == {topic: Perm.PUB}
    assert added.is_admin
    assert added.signing_key.sign(b"x") != file.accounts[0].signing_key.sign(b"x")
    assert len(file.accounts) == 3
    again = drop_account(put_account(TEXT, values, VERSION), key, VERSION)
    assert [each.access_key for each in read_acl_file("f", again, 0).accounts] == [
        "orders-1",
        "admin-1",
    ]


@given(patterns=st.lists(st.sampled_from(["*", "10.0.0.{1,2}", "::1", "1:2:3:*", "10.0.0.0/8"])))
def test_a_written_white_list_is_read_again(patterns: list[str]) -> None:
    file = read_acl_file("f", put_white_list(TEXT, patterns, VERSION), 0)
    assert [each.text for each in file.white_list] == patterns
    assert len(file.accounts) == 2
