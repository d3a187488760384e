"""state/delay_levels.py and state/delay_progress.py: the levels, and how far delivery has come."""

import pytest

from core_broker.config import DELAY_LEVELS
from core_broker.errors import ProtocolError, SettingsError
from core_broker.state.delay_levels import DelayLevels
from core_broker.state.delay_progress import DelayProgress, is_due


def test_the_default_table_has_eighteen_levels() -> None:
    levels = DelayLevels(DELAY_LEVELS)
    assert levels.level_max == 18
    assert [levels.delay_ms(level) for level in (1, 3, 5, 18)] == [1000, 10_000, 60_000, 7_200_000]


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (18, 18), (19, 18), (10**9, 18)])
def test_a_level_above_the_table_is_capped(asked: int, given: int) -> None:
    assert DelayLevels(DELAY_LEVELS).capped(asked) == given


@pytest.mark.parametrize("text", ["", "  ", "10", "10x", "s", "-5s", "1s " * 2000])
def test_a_wrong_table_names_the_setting(text: str) -> None:
    with pytest.raises(SettingsError, match="messageDelayLevel"):
        DelayLevels(text)


def test_due_now_later_and_after_the_clock_was_set_back() -> None:
    assert is_due(1_000, 1_000, 10_000)
    assert not is_due(1_001, 1_000, 10_000)
    assert not is_due(11_000, 1_000, 10_000)
    assert is_due(11_001, 1_000, 10_000)


def test_progress_survives_in_javas_form() -> None:
    progress = DelayProgress()
    progress.advance(3, 5)
    progress.advance(1, 2)
    assert progress.encode() == b'{"offsetTable":{1:2,3:5}}'
    again = DelayProgress()
    again.restore(progress.encode())
    assert [again.offset(level) for level in (1, 2, 3)] == [2, 0, 5]


def test_standing_still_is_no_change() -> None:
    progress = DelayProgress()
    progress.advance(1, 2)
    changes = progress.changes
    progress.advance(1, 2)
    assert progress.changes == changes


def test_garbage_is_refused() -> None:
    with pytest.raises(ProtocolError):
        DelayProgress().restore(b'{"offsetTable":[1]}')
