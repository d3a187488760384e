"""The access control of the benchmark of the console is readable by a broker."""

from pathlib import Path

from benchmarks.access_load import SIGNING, write_access
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl2.model import PolicyType
from core_broker.auth.acl2.stored import decode
from core_broker.client import Credentials


def test_users_and_accounts_are_readable(tmp_path: Path) -> None:
    settings, signing = write_access(tmp_path, 12)
    assert "aclEnable=true\nauthenticationEnabled=true\n" in settings
    assert f"rocketmqHome={tmp_path / 'rocketmq'}\n" in settings
    assert Credentials.from_file(signing) == SIGNING

    tables = decode((tmp_path / "store" / "config" / "auth.json").read_bytes())
    assert [each.username for each in tables.users.values() if each.is_super] == ["benchmark"]
    assert (len(tables.users), len(tables.acls)) == (13, 12)
    assert len(tables.acls["User:user-00011"].entries(PolicyType.CUSTOM)) == 5

    text = (tmp_path / "rocketmq" / "conf" / "plain_acl.yml").read_text()
    file = read_acl_file("plain_acl.yml", text, 0)
    assert len(file.accounts) == 13
    assert file.accounts[0].access_key == SIGNING.access_key
    assert not file.warnings
