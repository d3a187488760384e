"""Which silence matches an episode, among many."""

import fnmatch
from typing import Any

import pytest

from console.services.alarms.models import Episode, Silence
from console.services.alarms.silences import ActiveSilences

EPISODE: dict[str, Any] = {"cluster": "shop", "rule_id": 7, "kind": "group", "name": "orders-1"}


def matched(*found: dict[str, Any], **changes: Any) -> int | None:
    """The number of the silence that matches the episode, in the order of the arguments."""
    numbered = [Silence(pk=number, **each) for number, each in enumerate(found)]
    silence = ActiveSilences(numbered).of(Episode(**EPISODE | changes))
    return None if silence is None else silence.pk


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"cluster": "shop"},
        {"rule_id": 7},
        {"kind": "group"},
        {"pattern": "orders-1"},
        {"pattern": "orders-*"},
        {"pattern": "orders-?"},
        {"cluster": "shop", "rule_id": 7, "kind": "group", "pattern": "*-1"},
    ],
)
def test_a_silence_matches(fields: dict[str, Any]) -> None:
    assert matched(fields) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"cluster": "other"},
        {"rule_id": 8},
        {"kind": "topic"},
        {"pattern": "orders"},
        {"pattern": "Orders-*"},
        {"pattern": "orders.1"},
        {"pattern": "rders-1"},
        {"pattern": "orders-1|x"},
    ],
)
def test_another_silence_does_not_match(fields: dict[str, Any]) -> None:
    assert matched(fields) is None


def test_the_first_of_several_wins_whatever_its_fields() -> None:
    named, all_of_rule, nothing = {"pattern": "orders-*"}, {"rule_id": 7}, {"kind": "topic"}
    assert matched(nothing, named, all_of_rule) == 1
    assert matched(nothing, all_of_rule, named) == 1
    assert matched(nothing, {"pattern": "o*"}, named) == 1


def test_an_episode_of_a_deleted_rule_matches_silences_of_all_rules() -> None:
    assert matched({"rule_id": 7}, {}, rule_id=None) == 1


def test_each_pattern_is_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of `fnmatch` holds 256 patterns, and 500 silences are possible."""
    translated = []

    def counting(pattern: str) -> str:
        translated.append(pattern)
        return translate(pattern)

    translate = fnmatch.translate
    monkeypatch.setattr(fnmatch, "translate", counting)
    found = ActiveSilences(Silence(pattern=f"group-{number}-*") for number in range(400))
    episodes = [Episode(**EPISODE | {"name": f"group-{number}-x"}) for number in range(400)]
    shown = [silence.pattern for each in episodes if (silence := found.of(each))]
    assert shown == [f"group-{number}-*" for number in range(400)]
    assert len(translated) == 400
