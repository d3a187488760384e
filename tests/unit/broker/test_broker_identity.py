"""brokerIdentity: RocketMQ's bytes, and files of other brokers."""

from pathlib import Path
from typing import Any

import pytest

from core_broker.broker.broker_identity import Application, BrokerIdentity
from core_broker.config import BrokerConfig
from core_broker.errors import SettingsError


def identity(folder: Path, **settings: Any) -> BrokerIdentity:
    defaults = {"broker_cluster_name": "C", "broker_name": "b", "store_path_root_dir": str(folder)}
    return BrokerIdentity(BrokerConfig(**(defaults | settings)))


def test_the_files_have_the_bytes_of_rocketmq(tmp_path: Path) -> None:
    own = identity(tmp_path)
    assert own.load() is None
    assert own.load_application() is None
    application = Application(2, "10.0.0.1:10911;1700000000000")
    own.save_application(application)
    temp = tmp_path / "brokerIdentity-temp"
    assert temp.read_bytes() == b"C#b#2#10.0.0.1:10911;1700000000000"
    assert own.load_application() == application
    own.save(2)
    assert (tmp_path / "brokerIdentity").read_bytes() == b"C#b#2"
    assert not temp.exists()
    assert own.load() == 2


def test_the_path_of_the_settings_is_used(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere"
    identity(tmp_path, store_path_broker_identity=str(path)).save(3)
    assert path.read_bytes() == b"C#b#3"


@pytest.mark.parametrize("content", [b"C#other#2", b"C#b#x", b"C#b#0", b"C#b", b"\xff#b#2"])
def test_the_identity_of_another_broker_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "brokerIdentity").write_bytes(content)
    with pytest.raises(SettingsError, match="storePathBrokerIdentity"):
        identity(tmp_path).load()


def test_an_unusable_application_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "brokerIdentity-temp").write_bytes(b"C#b#2")
    assert identity(tmp_path).load_application() is None


def test_names_that_break_the_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="brokerName"):
        identity(tmp_path, broker_name="a#b")
