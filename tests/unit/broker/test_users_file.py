"""Users of a broker: settings, file and start."""

import json
import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.gate import Gate
from core_broker.broker.users_file import users_file
from core_broker.config import BrokerConfig
from core_broker.errors import SettingsError, StoreCorrupt

INIT = json.dumps({"username": "root", "password": "secret-of-root"})
INNER = json.dumps({"accessKey": "inner", "secretKey": "secret-of-inner"})


def config(folder: Path, **settings: Any) -> BrokerConfig:
    return BrokerConfig(
        **{"store_path_root_dir": str(folder), "authentication_enabled": True} | settings
    )


def loaded(folder: Path, **settings: Any) -> AccessTables:
    users = users_file(config(folder, **settings), Gate())
    assert users is not None
    users.load()
    return users.owner.tables


def test_the_users_of_the_settings_are_created_once(tmp_path: Path) -> None:
    first = loaded(
        tmp_path, init_authentication_user=INIT, inner_client_authentication_credentials=INNER
    )
    assert [(user.username, user.is_super) for user in first.users.values()] == [
        ("root", True),
        ("inner", True),
    ]
    file = tmp_path / "config" / "auth.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert loaded(tmp_path) == first
    changed = json.dumps({"username": "root", "password": "another"})
    assert loaded(tmp_path, init_authentication_user=changed) == first


def test_without_authentication_there_are_no_users(tmp_path: Path) -> None:
    assert users_file(config(tmp_path, authentication_enabled=False), None) is None


DAMAGED = [
    *("", "{", "[]", '{"users":{"a":{"username":"a"}}}'),
    '{"users":{"a":{"username":"b","password":"p"}}}',
    '{"acls":{"User:a":{"policies":[]}}}',
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_stops_the_start(tmp_path: Path, content: str) -> None:
    """Without users nobody could connect, and with other users the wrong ones."""
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "auth.json"
    file.write_text(content)
    with pytest.raises(StoreCorrupt, match=r"auth\.json"):
        loaded(tmp_path, init_authentication_user=INIT)
    assert file.read_text() == content


@pytest.mark.parametrize(
    "settings",
    [
        {"authentication_enabled": False, "authorization_enabled": True},
        {"init_authentication_user": '{"username":"root","password":'},
        {"init_authentication_user": '{"username":"root","password":""}'},
        {"init_authentication_user": "secret-of-root"},
        {"inner_client_authentication_credentials": INIT},
        {"authentication_whitelist": "28,x"},
        {"authorization_whitelist": "28;26"},
    ],
)
def test_wrong_settings_stop_the_start(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as error:
        users_file(config(tmp_path, **settings), Gate())
    assert "secret-of" not in str(error.value)


def test_lists_of_codes(tmp_path: Path) -> None:
    gate = Gate()
    assert users_file(config(tmp_path, authentication_whitelist=" 28, 26 ,"), gate)
    assert gate.generations == (1,)


def test_a_start_with_a_key_encrypts_the_passwords(tmp_path: Path) -> None:
    plain = loaded(tmp_path, init_authentication_user=INIT)
    file = tmp_path / "config" / "auth.json"
    assert b"secret-of-root" in file.read_bytes()
    keys = [b64encode(os.urandom(32)).decode() for _ in range(2)]
    key_file = tmp_path / "auth.key"
    for content in (keys[0], f"{keys[1]}\n{keys[0]}", keys[1]):
        key_file.write_text(content)
        assert loaded(tmp_path, auth_encryption_key_file=str(key_file)) == plain
        assert b"secret-of-root" not in file.read_bytes()
    before = file.read_bytes()
    with pytest.raises(StoreCorrupt, match="is encrypted"):
        loaded(tmp_path)
    assert file.read_bytes() == before


def test_accounts_of_acl_1_become_users(tmp_path: Path) -> None:
    settings = {"migrate_auth_from_v1_enabled": True, "rocketmq_home": str(tmp_path)}
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "plain_acl.yml"
    file.write_text("accounts:\n- {accessKey: from-acl1, secretKey: secret-of-acl1}\n")
    users = loaded(tmp_path, init_authentication_user=INIT, **settings)
    assert list(users.users) == ["from-acl1", "root"]
    assert loaded(tmp_path) == users, "a migration is saved"
    file.write_text("accounts: 7\n")
    with pytest.raises(SettingsError, match="migrateAuthFromV1Enabled"):
        loaded(tmp_path, **settings)
    with pytest.raises(SettingsError, match="rocketmqHome"):
        loaded(tmp_path, migrate_auth_from_v1_enabled=True)
