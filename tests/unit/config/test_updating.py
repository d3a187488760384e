"""Updates of settings by requests 25 and 318: all or none, updatable keys only."""

import difflib
from typing import Any

import pytest

from core_broker.config import BrokerConfig, NamesrvConfig
from core_broker.config.assignments import SUGGESTED_KEY_CHARS_MAX, SUGGESTIONS_MAX
from core_broker.config.updating import updated_settings
from core_broker.errors import SettingsError


def test_an_update_applies_all_or_nothing() -> None:
    config = BrokerConfig(broker_name="b", flush_interval_commit_log=500)
    updated = updated_settings(
        config, "flushIntervalCommitLog=501\nbrokerName=b\nhighSpeedMode=true\n"
    )
    assert updated.flush_interval_commit_log == 501
    assert config.flush_interval_commit_log == 500
    with pytest.raises(SettingsError) as raised:
        updated_settings(config, "flushIntervalCommitLog=0\nbrokerName=c\nflushIntervlCommitLog=1")
    assert [problem.key for problem in raised.value.problems] == [
        "brokerName",
        "flushIntervlCommitLog",
        "flushIntervalCommitLog",
    ]
    assert raised.value.problems[1].nearest == "flushIntervalCommitLog"


def test_paths_of_the_name_server_cannot_be_changed_by_a_request() -> None:
    with pytest.raises(SettingsError):
        updated_settings(NamesrvConfig(), "kvConfigPath=/etc/passwd\n")


@pytest.mark.parametrize("key", BrokerConfig.no_effect_keys())
def test_a_key_without_effect_is_refused_with_its_reason(key: str) -> None:
    config = BrokerConfig()
    value = dict(config.items())[key]
    assert updated_settings(config, f"{key}={value}\n") == config
    with pytest.raises(SettingsError) as raised:
        updated_settings(config, f"{key}={value}0\n")
    assert f"no effect here: {BrokerConfig.no_effect_keys()[key]}" in str(raised.value)


@pytest.mark.parametrize("config", [BrokerConfig(), NamesrvConfig()])
def test_suggestions_are_limited_in_number_and_key_length(
    config: BrokerConfig | NamesrvConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with thousands of unknown keys must not stop the event loop."""
    compared = []
    original = difflib.get_close_matches

    def counting(word: str, *rest: Any) -> list[str]:
        compared.append(word)
        return original(word, *rest)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    known = min(config.updatable_keys())
    keys = [known + "x" * SUGGESTED_KEY_CHARS_MAX, *(f"{known}{n}" for n in range(20_000))]
    with pytest.raises(SettingsError) as raised:
        updated_settings(config, "".join(f"{key}=1\n" for key in keys))
    assert len(compared) == SUGGESTIONS_MAX
    suggested = [problem.key for problem in raised.value.problems if problem.nearest == known]
    assert suggested == keys[1 : SUGGESTIONS_MAX + 1]
