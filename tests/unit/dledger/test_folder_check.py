"""Settings that would hide messages of the store are refused before anything is changed."""

from pathlib import Path

import pytest

from core_broker.broker.assembly import assemble
from core_broker.config import BrokerConfig
from core_broker.dledger.folder_check import check_folder
from core_broker.errors import SettingsError
from tests.support.stores import Bench

MEMBER = {"enable_d_leger_commit_log": True, "d_leger_self_id": "n0"}


def fill(folder: Path, **settings: object) -> None:
    bench = Bench(folder, **settings).open()
    bench.put_many(3)
    bench.store.close()


def config_of(folder: Path, **settings: object) -> BrokerConfig:
    return BrokerConfig(store_path_root_dir=str(folder), **settings)  # type: ignore[arg-type]


def test_old_records_beside_entries_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(SettingsError, match=r"enableDLegerCommitLog = 'true': .*commitlog has"):
        check_folder(config_of(tmp_path, **MEMBER))
    check_folder(config_of(tmp_path))


def test_old_records_in_another_folder_are_refused(tmp_path: Path) -> None:
    other = {"store_path_commit_log": str(tmp_path / "log")}
    fill(tmp_path / "store", **other)
    with pytest.raises(SettingsError, match="enableDLegerCommitLog=false until consumers"):
        check_folder(config_of(tmp_path / "store", **MEMBER, **other))


def test_entries_are_hidden_by_no_setting(tmp_path: Path) -> None:
    fill(tmp_path, **MEMBER)
    check_folder(config_of(tmp_path, **MEMBER))
    for settings, key in (
        ({}, "enableDLegerCommitLog = 'false'"),
        (MEMBER | {"d_leger_self_id": "n1"}, "dLegerSelfId = 'n1': .*dledger-n0/data has"),
        (MEMBER | {"store_path_d_ledger_commit_log": str(tmp_path / "x")}, "dLegerSelfId = 'n0'"),
    ):
        with pytest.raises(SettingsError, match=key):
            check_folder(config_of(tmp_path, **settings))
    away = tmp_path / "dledger-n0"
    away.rename(tmp_path / "moved")
    check_folder(config_of(tmp_path))


def test_a_log_without_a_message_hides_nothing(tmp_path: Path) -> None:
    """A broker that was started once has an empty file."""
    Bench(tmp_path).open().store.close()
    assert list((tmp_path / "commitlog").iterdir())
    check_folder(config_of(tmp_path, **MEMBER))
    check_folder(config_of(tmp_path / "missing", **MEMBER))


def test_a_broker_refuses_before_it_opens_the_store(tmp_path: Path) -> None:
    fill(tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(SettingsError, match="commitlog has messages"):
        assemble(config_of(tmp_path, **MEMBER), None)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files


def test_the_used_folder_may_have_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    fill(store, **MEMBER)
    (tmp_path / "link").symlink_to(store)
    monkeypatch.chdir(tmp_path)
    for name in ("link/dledger-n0/data", "store/dledger-n0/data", "store/../store/dledger-n0/data"):
        used = {"store_path_d_ledger_commit_log": name}
        check_folder(config_of(store, **MEMBER, **used))
        check_folder(config_of(tmp_path / "link", **MEMBER, **used))


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    # Address 0 of a process is not readable, for root neither.
    (tmp_path / "commitlog" / "0").symlink_to("/proc/self/mem")
    with pytest.raises(SettingsError, match=r"storePathRootDir = .*commitlog cannot be read"):
        check_folder(config_of(tmp_path, **MEMBER))
