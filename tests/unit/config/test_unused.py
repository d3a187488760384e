"""Keys of RocketMQ without effect: the table is complete, every key has a reason and a warning."""

import re
from pathlib import Path

import pytest

from core_broker.config import BrokerConfig, NamesrvConfig
from core_broker.config.loading import load_broker_config, load_namesrv_config
from core_broker.config.settings import key
from core_broker.config.unsupported import REFUSED_KEYS, REFUSED_VALUES
from core_broker.config.unused import KEYS_WITHOUT_EFFECT
from core_broker.config.updating import updated_settings
from core_broker.errors import SettingsError

KEYS_OF_ROCKETMQ = [
    line
    for line in (Path(__file__).parent / "rocketmq-keys.txt").read_text().splitlines()
    if not line.startswith("#")
]
SETTINGS = {*BrokerConfig.keys(), *NamesrvConfig.keys()}
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "settings.md"


def test_every_key_of_rocketmq_is_known() -> None:
    assert len(KEYS_OF_ROCKETMQ) > 150
    assert not [
        key
        for key in KEYS_OF_ROCKETMQ
        if key not in SETTINGS and key not in KEYS_WITHOUT_EFFECT and key not in REFUSED_KEYS
    ]


def test_the_table_has_no_settings_and_no_refused_keys() -> None:
    assert not SETTINGS & KEYS_WITHOUT_EFFECT.keys()
    assert not REFUSED_KEYS & KEYS_WITHOUT_EFFECT.keys()


def test_a_file_with_every_key_starts_without_unknown_ones(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    own = dict(BrokerConfig().items())
    keys = {*KEYS_OF_ROCKETMQ, *REFUSED_KEYS} - (NamesrvConfig.keys().keys() - own.keys())
    lines = [f"{key}={own.get(key, 'false')}" for key in sorted(keys)]
    conf.write_text("\n".join(lines))
    (warning,) = load_broker_config(["-c", str(conf)], {}).warnings
    assert "without effect here" in warning
    assert "sendMessageThreadPoolNums" in warning
    assert "enableDLegerCommitLog" not in warning, "false is the behaviour here"


def test_a_setting_without_effect_is_warned_about_when_it_differs_from_the_default(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("flushCommitLogTimed=false\nslaveTimeout=3000\nhighSpeedMode=true\n")
    environ = {"ROCKETMQ_DUPLICATION_ENABLE": "true", "ROCKETMQ_OFFSET_CHECK_IN_SLAVE": "false"}
    assert load_broker_config(["-c", str(conf)], environ).warnings == (
        f"{conf}: without effect here (-p tells why): flushCommitLogTimed, highSpeedMode",
        "environment: ROCKETMQ_DUPLICATION_ENABLE has no effect here",
    )


def test_a_setting_without_effect_cannot_be_updatable() -> None:
    with pytest.raises(ValueError, match="without effect"):
        key(1, updatable=True, no_effect="no code reads the key")
    for settings in (BrokerConfig, NamesrvConfig):
        assert not settings.updatable_keys() & settings.no_effect_keys().keys()


@pytest.mark.parametrize(("key", "value"), REFUSED_VALUES)
def test_values_refused_in_a_file_are_refused_in_the_environment_too(key: str, value: str) -> None:
    load = load_namesrv_config if key in NamesrvConfig.keys() else load_broker_config  # noqa: SIM118
    with pytest.raises(SettingsError, match="not available"):
        load([], {f"ROCKETMQ_{key}": value.upper()})
    load([], {f"ROCKETMQ_{key}": "ASYNC_MASTER" if key == "brokerRole" else "false"})


def test_a_request_may_contain_refused_keys_that_are_off() -> None:
    config = BrokerConfig()
    assert updated_settings(config, "clusterTest=false\nhighSpeedMode=x\n") == config
    with pytest.raises(SettingsError, match="not available"):
        updated_settings(config, "clusterTest=true\n")


def test_keys_without_effect_are_comments_behind_the_settings() -> None:
    for settings, listing in (
        (BrokerConfig, load_broker_config(["-p"], {}).listing),
        (NamesrvConfig, load_namesrv_config(["-p"], {}).listing),
    ):
        assert listing is not None
        for name, reason in (settings.no_effect_keys() | KEYS_WITHOUT_EFFECT).items():
            assert f"# {name}: {reason}\n" in listing
        assert "# clusterTest=true: use false; forwarding to another environment" in listing
    important = load_broker_config(["-m"], {}).listing
    assert important is not None
    assert "#" not in important


def test_the_document_lists_keys_without_effect() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    section = document[document.index("## Keys without effect") :]
    rows = dict(re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", section, re.M))
    documented = {
        key: reason for reason, keys in rows.items() for key in re.findall(r"`(\w+)`", keys)
    }
    assert documented == KEYS_WITHOUT_EFFECT
